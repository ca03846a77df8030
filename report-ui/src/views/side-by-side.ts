// Launches of one command beside each other: a stacked bar each on one scale, and the table of the spans that grew.

import { launchesPlaceText, readLaunchesPlace } from "../derive/place-in-page";
import { barSentence, CATEGORIES, ORDER, partDid, partWords, UNEXPLAINED, type BarPart, type BarRow } from "../derive/ledger-bars";
import { growthAnswer, growthOf, launchesPicture, launchNames, scopeWords, spanOwner, spanPart, spanWords, type Growth, type LaunchGroup, type LaunchRow, type Scope, type SpanGrowth } from "../derive/side-by-side";
import { count, duration, inUnit, percent } from "../format";
import type { Category, Nanos, SideBySide } from "../types";
import { wordsOf } from "./answer";
import { h, isolated, section, type Child } from "./element";
import type { LaunchSelector } from "./launch-selector";
import { drawBar, stepThrough, swatch } from "./ledger-bar";
import { sortableTable, type Column } from "./sortable-table";
import type { Tooltip, TooltipLine } from "./tooltip";

/** Spans before "show all". */
const SPANS = 12;
/** Launches of which each has a column without being asked for. */
const COLUMNS = 6;

export interface SideBySideView {
  element: HTMLElement;
  /** Goes to the place in the page's address; once it is in the page. */
  start: () => void;
}

/** `selector` is null where the page has no timeline. */
export function sideBySideView(data: SideBySide, tooltip: Tooltip, selector: LaunchSelector | null): SideBySideView {
  const picture = launchesPicture(data);
  const entries = new Map<number, HTMLDetailsElement>();
  const hasGroups = data.groups.length > 1;
  let scope: Scope = "all";
  let open: number | null = null;

  const keepPlace = (): void => history.replaceState(null, "", `#${launchesPlaceText({ group: scope === "all" ? null : scope, launch: open })}`);
  const opened = (index: number, isOpen: boolean): void => {
    if (isOpen ? open === index : open !== index) return;
    open = isOpen ? index : null;
    keepPlace();
  };
  const list = picture.groups.map((group) => groupOf(group, hasGroups, (row) => launchEntry(row, group.median, picture.longest, tooltip, selector), entries, opened));
  const chosen = h("select", {}, ...(["all", ...data.groups.keys()] as Scope[]).map((s) => h("option", { value: String(s) }, scopeWords(data.groups, s))));
  const answer = h("p", { class: "grown", role: "status" });
  const tables = h("div", { class: "grown-tables" });
  const parts = [...ORDER, UNEXPLAINED].filter((part): part is BarPart => picture.groups.some((g) => g.rows.some((r) => r.bar.segments.some((s) => s.row.part === part))));

  function fill(): void {
    const growth = growthOf(data, scope);
    answer.replaceChildren(...wordsOf(growthAnswer(data, growth)));
    tables.replaceChildren(...growthTables(data, growth, selector));
  }
  chosen.addEventListener("change", () => {
    scope = chosen.value === "all" ? "all" : Number(chosen.value);
    fill();
    keepPlace();
  });
  fill();

  const element = section(
    "side-by-side",
    "Launches side by side",
    h("p", { class: "quiet" }, "Each bar is the critical path of a recorded launch until it was ready: every moment stands in one category. All bars have one scale; the line across a group's bars is its median. Open a bar for its figures; the arrow keys step through its parts.", selector && " Categories in the table of the shown launch, and spans that grew, lead to the longest of them in the timeline."),
    picture.notes.length > 0 && h("ul", { class: "quiet" }, ...picture.notes.map((n) => h("li", {}, n))),
    h("ul", { class: "legend-parts", "aria-label": "Colours" }, ...parts.map((part) => h("li", { title: partDid(part) }, swatch(part), " ", partWords(part)))),
    h("div", { class: "ledger" }, headOf(picture.longest), ...list),
    h("details", { class: "launches-table" }, h("summary", {}, "All launches as a table"), launchesTable(data, parts)),
    h("h3", {}, "Which span grew"),
    hasGroups && h("div", { class: "controls" }, h("label", {}, "From the fastest to the slowest of ", chosen)),
    answer,
    tables,
  );

  function goToPlace(): void {
    const place = readLaunchesPlace(location.hash);
    if (!place) return;
    scope = place.group !== null && hasGroups && place.group < data.groups.length ? place.group : "all";
    chosen.value = String(scope);
    fill();
    const entry = place.launch === null ? undefined : entries.get(place.launch);
    open = entry ? place.launch : null;
    if (entry) entry.open = true;
    (entry ?? element).scrollIntoView();
  }
  return {
    element,
    start: () => {
      addEventListener("hashchange", goToPlace);
      goToPlace();
    },
  };
}

function headOf(longest: Nanos): HTMLElement {
  return h("div", { class: "ledger-head quiet", "aria-hidden": "true" }, h("span", {}, "recording"), h("span", {}, `full length: ${duration(longest)}`), h("span", { class: "num" }, "time"), h("span", { class: "num" }, "to median"));
}

function groupOf(group: LaunchGroup, named: boolean, entryOf: (row: LaunchRow) => HTMLDetailsElement, entries: Map<number, HTMLDetailsElement>, opened: (index: number, isOpen: boolean) => void): HTMLElement {
  const rows = group.rows.map((row) => {
    const details = entryOf(row);
    details.addEventListener("toggle", () => opened(row.index, details.open));
    entries.set(row.index, details);
    return details;
  });
  const launches = `${count(rows.length)} ${rows.length === 1 ? "launch" : "launches"}`;
  const what = group.median === null || rows.length < 2 ? launches : `${launches}, median ${duration(group.median)}`;
  return h("div", { class: "launch-group" }, named ? h("h3", {}, isolated(group.name || "ungrouped"), h("span", { class: "quiet" }, `: ${what}`)) : h("p", { class: "quiet" }, what), h("div", { class: "ledger-bars" }, ...rows));
}

const plain = (row: BarRow): string => (row.time === null ? "not known" : `${inUnit(row.time.value, "ms")}${row.share === null ? "" : ` (${percent(row.share)})`}`);

/** With its sign, unless it is nothing. */
function signed(ns: Nanos): string {
  return (ns > 0 ? "+" : "") + duration(ns);
}

/** A line across a bar. */
export function markAt(share: number, title: string): HTMLElement {
  const mark = h("span", { class: "bar-mark", title });
  mark.style.left = `${Math.min(Math.max(share, 0), 1) * 100}%`;
  return mark;
}

function launchEntry({ index, launch, bar, isMiddle, fromMedian }: LaunchRow, middle: Nanos | null, longest: Nanos, tooltip: Tooltip, selector: LaunchSelector | null): HTMLDetailsElement {
  const tags = [...(isMiddle ? ["median"] : []), ...(launch.is_shown ? ["shown on this page"] : []), ...(launch.is_ready ? [] : ["never ready"])];
  const drawn = drawBar(bar, longest > 0 ? launch.time_ns / longest : 0, barSentence(bar, plain));
  const summary = h(
    "summary",
    {},
    h("span", { class: "ledger-name" }, isolated(bar.name), tags.length > 0 && h("span", { class: "quiet" }, ` ${tags.join(", ")}`)),
    h("span", { class: "ledger-track marked" }, drawn.element, middle !== null && longest > 0 && markAt(middle / longest, `median ${duration(middle)}`)),
    h("span", { class: "num" }, duration(launch.time_ns)),
    h("span", { class: "num quiet" }, fromMedian === null ? "" : signed(fromMedian)),
  );
  const describe = (part: BarPart): TooltipLine[] => {
    const row = bar.rows.find((r) => r.part === part)!;
    return [{ heading: partWords(part) }, { note: partDid(part) }, { label: "time", value: plain(row) }, { label: "of", value: [duration(launch.time_ns), ", ", isolated(bar.name)] }];
  };
  stepThrough(summary, [drawn], bar.segments.map((s) => s.row.part), tooltip, describe);
  const details = h("details", { class: isMiddle ? "ledger-entry middle" : "ledger-entry" }, summary);
  details.addEventListener("toggle", () => {
    if (!details.open || details.childElementCount > 1) return;
    const select = selector?.launch(index);
    const table = barTable(`${launch.recording}, ${bar.detail}`, bar.rows, select && selector ? (part) => selector.span(part, null) : undefined);
    if (selector) details.append(select ? h("button", { type: "button", class: "link show-elsewhere", onclick: select }, "Show this launch in the timeline and the other parts") : h("p", { class: "quiet show-elsewhere" }, "The timeline of this page is that of the launch which is shown; a page of this recording has its own."));
    details.append(h("div", { class: "table-frame", tabindex: 0, role: "region", "aria-label": bar.name }, table));
  });
  return details;
}

/** The rows of a bar. What `select` gives shows the longest span of a row in the timeline. */
export function barTable(caption: string, rows: readonly BarRow[], select: (part: BarPart) => (() => void) | null = () => null): HTMLElement {
  const nameOf = (part: BarPart): Child[] => [swatch(part), " ", selectable(partWords(part), select(part))];
  const line = (r: BarRow): HTMLElement => h("tr", { class: r.part === UNEXPLAINED ? "total" : null, title: partDid(r.part) }, h("th", { scope: "row" }, ...nameOf(r.part)), h("td", { class: "num" }, r.time === null ? "not known" : inUnit(r.time.value, "ms")), h("td", { class: "num" }, r.share === null ? "" : percent(r.share)));
  return h("table", { class: "compact" }, h("caption", {}, caption), h("thead", {}, h("tr", {}, ...["Category", "Time", "Share"].map((t, i) => h("th", { scope: "col", class: i > 0 ? "num" : null }, t)))), h("tbody", {}, ...rows.map(line)));
}

/** Text that shows the longest of its spans in the timeline, where there is one. */
function selectable(text: string, select: (() => void) | null): Child {
  return select ? h("button", { type: "button", class: "link", title: "Show the longest of them on the critical path in the timeline", onclick: select }, text) : text;
}

function launchesTable(data: SideBySide, parts: readonly BarPart[]): HTMLElement {
  const names = launchNames(data.launches);
  const rows = data.launches.map((launch, i) => ({ launch, name: names[i]! }));
  type Row = (typeof rows)[number];
  const time = ({ launch }: Row, part: BarPart): Nanos => (part === UNEXPLAINED ? launch.unexplained_ns : (launch.times.find((t) => t.category === (part as Category))?.time_ns ?? 0));
  const columns: Column<Row>[] = [
    { key: "launch", label: "Launch", sortBy: (r) => r.name, cell: (r) => isolated(r.name) },
    ...(data.groups.length > 1 ? [{ key: "group", label: "Group", sortBy: (r: Row) => data.groups[r.launch.group]!, cell: (r: Row) => isolated(data.groups[r.launch.group]!) }] : []),
    { key: "time", label: "To ready", numeric: true, sortBy: (r) => r.launch.time_ns, cell: (r) => (r.launch.is_ready ? duration(r.launch.time_ns) : `${duration(r.launch.time_ns)}, never ready`) },
    ...parts.map((part): Column<Row> => ({ key: part, label: partWords(part), hint: partDid(part), numeric: true, sortBy: (r) => time(r, part), cell: (r) => duration(time(r, part)) })),
  ];
  return sortableTable(columns, rows, { caption: "Time to ready of each launch by category of its critical path", limit: 30 });
}

function growthTables(data: SideBySide, growth: Growth, selector: LaunchSelector | null): HTMLElement[] {
  const shown = data.launches.findIndex((l) => l.is_shown);
  const names = launchNames(data.launches);
  const cell = (ns: Nanos | null): Child => (ns === null ? h("span", { class: "quiet" }, "–") : duration(ns));
  const change = (ns: Nanos | null): Child => (ns === null ? h("span", { class: "quiet" }, "–") : signed(Math.round(ns)));
  const { fastest, slowest } = growth;
  const whole = fastest === null || slowest === null ? 0 : data.launches[slowest]!.time_ns - data.launches[fastest]!.time_ns;
  const group = (i: number): string => data.groups[i] || "ungrouped";
  const last = data.groups.length - 1;
  const compared: Column<SpanGrowth>[] =
    fastest === null || slowest === null
      ? []
      : [
          { key: "fastest", label: "Fastest", hint: names[fastest]!, numeric: true, sortBy: (s) => s.fastest, cell: (s) => cell(s.fastest) },
          { key: "slowest", label: "Slowest", hint: names[slowest]!, numeric: true, sortBy: (s) => s.slowest, cell: (s) => cell(s.slowest) },
          { key: "growth", label: "Growth", hint: "from the fastest to the slowest launch", numeric: true, sortBy: (s) => s.growth, cell: (s) => change(s.growth) },
        ];
  const share: Column<SpanGrowth>[] = whole > 0 ? [{ key: "share", label: "Of all growth", numeric: true, sortBy: (s) => s.growth, cell: (s) => (s.growth === null ? "" : percent(s.growth / whole)) }] : [];
  const grouped: Column<SpanGrowth>[] =
    last < 1
      ? [{ key: "median", label: "Median", numeric: true, sortBy: (s) => s.median, cell: (s) => cell(s.median) }]
      : [
          ...data.groups.map((_, i): Column<SpanGrowth> => ({ key: `median-${i}`, label: `${group(i)}, median`, numeric: true, sortBy: (s) => s.medians[i] ?? null, cell: (s) => cell(s.medians[i] ?? null) })),
          { key: "difference", label: `${group(last)} − ${group(0)}`, hint: "difference of the medians", numeric: true, sortBy: (s) => s.difference, cell: (s) => change(s.difference) },
        ];
  // With few launches the groups' medians and the ends say it all already.
  const each = data.launches.map((_, i): Column<SpanGrowth> => ({ key: `launch-${i}`, label: names[i]!, numeric: true, extra: data.launches.length <= 2 || data.launches.length > COLUMNS, sortBy: (s) => s.times[i] ?? null, cell: (s) => cell(s.times[i] ?? null) }));
  const columns = (what: string, withShare: boolean): Column<SpanGrowth>[] => [
    { key: "owner", label: what, sortBy: (s) => spanOwner(s.name), cell: (s) => isolated(spanOwner(s.name)) },
    { key: "span", label: "Span", sortBy: (s) => spanWords(s.name), cell: (s) => spanCell(s, (s.times[shown] ?? null) === null ? null : selector) },
    ...compared,
    ...(withShare ? share : []),
    ...grouped,
    ...each,
  ];
  const sortedBy = { key: compared.length > 0 ? "growth" : "difference", descending: true };
  const rest = growth.others !== 0 ? ` Spans without a row: ${signed(growth.others)}.` : "";
  const tables = [sortableTable(columns("Thread", true), growth.path, { caption: `On the critical path, by thread and category: rows add up to the launch.${rest}`, limit: SPANS, sortedBy })];
  if (growth.children.length > 0) tables.push(sortableTable(columns("Child", false), growth.children, { caption: "Children, matched by kind in the order of their forks. They overlap with the path and with each other.", limit: SPANS, sortedBy }));
  return tables;
}

function spanCell({ name }: SpanGrowth, selector: LaunchSelector | null): Child {
  const part = spanPart(name);
  if (part === null || name.kind !== "path") return spanWords(name);
  const isKnown = part === UNEXPLAINED || CATEGORIES.has(part);
  return h("span", { title: isKnown ? partDid(part) : null }, swatch(part), " ", selectable(spanWords(name), selector && selector.span(part, name)));
}
