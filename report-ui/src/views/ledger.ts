// Where the time went: a stacked bar for each process and thread, and the table behind it.

import { barSentence, ledgerPicture, partDid, partWords, UNEXPLAINED, type BarRow, type LedgerBar } from "../derive/ledger-bars";
import { count, inUnit, percent, quantityInterval, quantityValue } from "../format";
import { isOfProcess, type Selection, type Selections } from "../selection";
import type { HtmlLedger } from "../types";
import { h, isolated, section, type Child } from "./element";
import { drawBar, stepThrough, swatch } from "./ledger-bar";
import type { Tooltip, TooltipLine } from "./tooltip";

/** Bars before "show all". */
const PROCESSES = 6;
const THREADS = 12;

/** `selections` is null where there is no other part to be filtered. */
export function ledgerView(ledger: HtmlLedger, tooltip: Tooltip, selections: Selections | null): HTMLElement {
  const picture = ledgerPicture(ledger);
  const body = h("div", { class: "ledger" });
  const whole = h("p", { class: "quiet", role: "status", hidden: true }, "Bars are whole lives, whatever time is selected.");
  selections?.listen((selection) => (whole.hidden = !selection?.time));
  const lists = [barList("Processes", "process, time of all its threads", picture.processes, PROCESSES, tooltip, selections), barList("Threads", "thread, time from its begin to its end", picture.threads, THREADS, tooltip, selections)];
  const scale = h("select", {}, h("option", { value: "own" }, "its own time"), h("option", { value: "same" }, "the longest time"));
  scale.addEventListener("change", () => lists.forEach((list) => list.draw(scale.value === "same")));
  lists.forEach((list) => list.draw(false));
  body.append(...lists.map((list) => list.element));
  return section(
    "ledger",
    "Where the time went",
    h("p", { class: "quiet" }, "Each moment of a thread belongs to one category; what no category has is unexplained, and spread over nothing. Busiest first: by the time in which it ran or the machine kept it from running. Open a bar for its table; the arrow keys step through its parts."),
    picture.notes.length > 0 && h("ul", { class: "quiet" }, ...picture.notes.map((n) => h("li", {}, n))),
    h("div", { class: "legend" }, h("div", { class: "table-frame", tabindex: 0, role: "region", "aria-label": "All processes together" }, rowsTable("All processes together", picture.total.rows))),
    h("div", { class: "controls" }, h("label", {}, "Full length is ", scale)),
    whole,
    body,
  );
}

/** The table is the legend of the colours too: categories, and what is unexplained as a row of its own. */
function rowsTable(caption: string, rows: readonly BarRow[]): HTMLElement {
  const hasIntervals = rows.some((r) => r.time !== null && quantityInterval(r.time) !== null);
  const head = ["Category", "Time", ...(hasIntervals ? ["95 % interval"] : []), "Share"].map((t, i) => h("th", { scope: "col", class: i > 0 ? "num" : null }, t));
  const line = (r: BarRow): HTMLElement =>
    h(
      "tr",
      { class: r.part === UNEXPLAINED ? "total" : null, title: partDid(r.part) },
      h("th", { scope: "row" }, swatch(r.part), " ", partWords(r.part)),
      h("td", { class: "num" }, timeText(r)),
      hasIntervals && h("td", { class: "num quiet" }, (r.time && quantityInterval(r.time)) ?? ""),
      h("td", { class: "num" }, r.share === null ? "" : percent(r.share)),
    );
  return h("table", { class: "compact" }, h("caption", {}, caption), h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...rows.map(line)));
}

function timeText(row: BarRow): Child {
  return row.time === null ? h("span", { class: "quiet" }, "not known") : quantityValue(row.time);
}

function plainText(row: BarRow): string {
  if (row.time === null) return "not known";
  return row.share === null ? quantityValue(row.time) : `${quantityValue(row.time)} (${percent(row.share)})`;
}

interface BarList {
  element: HTMLElement;
  draw: (sameScale: boolean) => void;
}

function barList(title: string, what: string, bars: readonly LedgerBar[], first: number, tooltip: Tooltip, selections: Selections | null): BarList {
  let selected: Selection | null = null;
  let limit = bars.length <= first + 2 ? Infinity : first;
  let sameScale = false;
  const longest = Math.max(...bars.filter((b) => !b.isSum).map((b) => b.length), 0);
  const list = h("div", { class: "ledger-bars" });
  const more = h("button", { type: "button", class: "more", onclick: () => ((limit = Infinity), fill()) }, `Show all ${count(bars.length)}`);

  function fill(): void {
    // A sum of many would make all others short: it always has its own length.
    const lengthOf = (b: LedgerBar): number => (sameScale && !b.isSum && longest > 0 ? b.length / longest : 1);
    const isMeant = ({ of }: LedgerBar): boolean => !selected || (of ? isOfProcess(selected, of.pid, of.process) && (of.tid === null || selected.tid === null || of.tid === selected.tid) : selected.processes === null);
    const meant = bars.filter(isMeant);
    list.replaceChildren(...meant.slice(0, limit).map((b) => entry(b, lengthOf(b), tooltip, selections)));
    if (meant.length === 0) list.replaceChildren(h("p", { class: "quiet" }, "None of what is selected is here."));
    more.hidden = meant.length <= limit;
  }
  const head = h("div", { class: "ledger-head quiet", "aria-hidden": "true" }, h("span", {}, what), h("span", {}), h("span", { class: "num" }, "time"), h("span", { class: "num" }, "unexplained"));
  const draw = (same: boolean): void => {
    sameScale = same;
    fill();
  };
  selections?.listen((selection) => {
    if (selection?.origin === "ledger") return;
    selected = selection;
    fill();
  });
  return { element: h("div", {}, h("h3", {}, title), head, list, more), draw };
}

function entry(bar: LedgerBar, length: number, tooltip: Tooltip, selections: Selections | null): HTMLElement {
  const picture = drawBar(bar, length, barSentence(bar, plainText));
  const rest = bar.unexplained;
  const summary = h(
    "summary",
    {},
    h("span", { class: "ledger-name" }, isolated(bar.name), " ", h("span", { class: "quiet" }, bar.detail)),
    h("span", { class: "ledger-track" }, picture.element),
    h("span", { class: "num" }, inUnit(bar.whole, "ms")),
    h("span", { class: "num" }, rest.time === null ? h("span", { class: "quiet" }, "not known") : rest.share === null ? quantityValue(rest.time) : percent(rest.share)),
  );
  stepThrough(summary, [picture], bar.segments.map((s) => s.row.part), tooltip, (part) => describe(bar, bar.segments.find((s) => s.row.part === part)!.row));
  // The table is made when it is asked for: there may be hundreds.
  const details = h("details", { class: "ledger-entry" }, summary);
  details.addEventListener("toggle", () => {
    if (details.open && details.childElementCount === 1) details.append(selectButton(bar, selections), h("div", { class: "table-frame", tabindex: 0, role: "region", "aria-label": bar.name }, rowsTable(`${bar.name}, ${bar.detail}`, bar.rows)));
  });
  return details;
}

function selectButton({ of, name, detail }: LedgerBar, selections: Selections | null): HTMLElement | string {
  if (!of || !selections) return "";
  const select = (): void => selections.select({ origin: "ledger", text: `${name}, ${detail}`, time: null, processes: [{ pid: of.pid, name: of.process }], tid: of.tid, files: null });
  return h("button", { type: "button", class: "link show-elsewhere", onclick: select }, "Show only this in the other parts");
}

function describe(bar: LedgerBar, row: BarRow): TooltipLine[] {
  const interval = row.time && quantityInterval(row.time);
  return [
    { heading: partWords(row.part) },
    { note: partDid(row.part) },
    { label: "time", value: plainText(row) },
    ...(interval ? [{ label: "95 % interval", value: interval }] : []),
    { label: "of", value: [inUnit(bar.whole, "ms"), ", ", isolated(bar.name)] },
  ];
}
