// Children of one kind beside each other: bars from their forks on, and how much of their work is the same.

import { barSentence, partDid, partWords, type BarPart, type BarRow } from "../derive/ledger-bars";
import { siblingPicture, type SiblingBar, type SiblingPicture } from "../derive/siblings";
import { count, duration, inUnit, percent } from "../format";
import type { Finding, Nanos, SiblingStart, SiblingStarts } from "../types";
import type { Selections } from "../selection";
import { wordsOf } from "./answer";
import { h, isolated, section } from "./element";
import { selectChild } from "./launch-selector";
import { drawBar, stepThrough } from "./ledger-bar";
import { barTable, markAt } from "./side-by-side";
import { sortableTable } from "./sortable-table";
import type { Tooltip, TooltipLine } from "./tooltip";

/** Children of a kind before "show all". */
const CHILDREN = 8;
/** The finding that says what repeating the work costs. */
const FINDING = "repeated_child_work";

/** `selections` is null where there is no other part to be filtered. */
export function siblingsView({ kinds, left_out }: SiblingStarts, findings: readonly Finding[], tooltip: Tooltip, selections: Selections | null): HTMLElement {
  const found = findings.filter((f) => f.name === FINDING);
  return section(
    "siblings",
    "Children side by side",
    h("p", { class: "quiet" }, "What the main thread of each child did from its fork on, aligned at the forks. The line across a bar is where the last step ends that at least three children make alike: from one file that they open to the next. Open a bar for its figures; the arrow keys step through its parts."),
    ...found.map((f) => h("p", {}, f.title, ". ", h("a", { href: "#findings" }, "The finding"), ".")),
    left_out > 0 && h("p", { class: "quiet" }, `${count(left_out)} ${left_out === 1 ? "child is" : "children are"} not drawn: beyond the first of their kind, or neither ready nor ended.`),
    ...kinds.map((kind) => kindView(siblingPicture(kind), tooltip, selections && ((child) => selectChild(selections, kind.kind, child)))),
  );
}

type SelectChild = ((child: SiblingStart) => void) | null;

function kindView({ title, bars, longest, answer }: SiblingPicture, tooltip: Tooltip, select: SelectChild): HTMLElement {
  const list = h("div", { class: "ledger-bars" });
  const more = h("button", { type: "button", class: "more", onclick: () => fill(Infinity) }, `Show all ${count(bars.length)}`);
  const fill = (limit: number): void => {
    list.replaceChildren(...bars.slice(0, limit).map((bar) => entry(bar, longest, tooltip, select)));
    more.hidden = bars.length <= limit;
  };
  fill(bars.length <= CHILDREN + 2 ? Infinity : CHILDREN);
  const head = h("div", { class: "ledger-head quiet", "aria-hidden": "true" }, h("span", {}, "child"), h("span", {}, `full length: ${duration(longest)}`), h("span", { class: "num" }, "time"), h("span", { class: "num" }, "the same"));
  return h("div", { class: "ledger siblings" }, h("h3", {}, isolated(title)), h("p", {}, ...wordsOf(answer)), head, list, more, h("details", { class: "launches-table" }, h("summary", {}, "All as a table"), table(bars, title)));
}

const plain = (row: BarRow): string => (row.time === null ? "not known" : `${inUnit(row.time.value, "ms")}${row.share === null ? "" : ` (${percent(row.share)})`}`);

function entry({ child, bar, alike }: SiblingBar, longest: Nanos, tooltip: Tooltip, select: SelectChild): HTMLElement {
  const drawn = drawBar(bar, longest > 0 ? child.time_ns / longest : 0, barSentence(bar, plain));
  const until = child.alike?.until_ns ?? null;
  const summary = h(
    "summary",
    {},
    h("span", { class: "ledger-name" }, bar.name, " ", h("span", { class: "quiet" }, bar.detail)),
    h("span", { class: "ledger-track marked" }, drawn.element, until !== null && until <= longest && longest > 0 && markAt(until / longest, `alike until ${duration(until)}`)),
    h("span", { class: "num" }, duration(child.time_ns)),
    h("span", { class: "num quiet" }, alike),
  );
  const describe = (part: BarPart): TooltipLine[] => [{ heading: partWords(part) }, { note: partDid(part) }, { label: "time", value: plain(bar.rows.find((r) => r.part === part)!) }, { label: "of", value: `${duration(child.time_ns)}, ${bar.name}` }];
  stepThrough(summary, [drawn], bar.segments.map((s) => s.row.part), tooltip, describe);
  const details = h("details", { class: "ledger-entry" }, summary);
  details.addEventListener("toggle", () => {
    if (!details.open || details.childElementCount > 1) return;
    if (select) details.append(h("button", { type: "button", class: "link show-elsewhere", onclick: () => select(child) }, "Show this child in the timeline and the other parts"));
    details.append(h("div", { class: "table-frame", tabindex: 0, role: "region", "aria-label": bar.name }, barTable(`${bar.name}, ${bar.detail}`, bar.rows)));
  });
  return details;
}

function table(bars: readonly SiblingBar[], caption: string): HTMLElement {
  return sortableTable<SiblingBar>(
    [
      { key: "child", label: "Child", sortBy: (b) => b.child.pid, cell: (b) => b.bar.name },
      { key: "forked", label: "Forked at", numeric: true, sortBy: (b) => b.child.forked_ns, cell: (b) => duration(b.child.forked_ns) },
      { key: "time", label: "Start", numeric: true, sortBy: (b) => b.child.time_ns, cell: (b) => duration(b.child.time_ns) },
      { key: "cpu", label: "CPU of all its threads", numeric: true, sortBy: (b) => b.child.cpu_ns, cell: (b) => duration(b.child.cpu_ns) },
      { key: "alike", label: "The same work", hint: "CPU time of the steps that at least three children make, and its share", numeric: true, sortBy: (b) => b.child.alike?.cpu_ns ?? null, cell: (b) => b.alike },
      { key: "steps", label: "Steps", numeric: true, sortBy: (b) => b.child.alike?.steps ?? null, cell: (b) => (b.child.alike ? count(b.child.alike.steps) : "") },
    ],
    bars,
    { caption, limit: 30 },
  );
}
