// Where the time went before and after: two bars of one scale for each program, and the table behind them.

import type { RecordingComparison } from "../generated/comparison-page";
import { beside, figure, judged, ledgerPairs, partsOf, type LedgerPair, type Per } from "../derive/comparison";
import { barSentence, partDid, partWords, UNEXPLAINED, type BarPart, type BarRow } from "../derive/ledger-bars";
import { count } from "../format";
import { h, isolated, section } from "./element";
import { drawBar, stepThrough, swatch } from "./ledger-bar";
import type { Tooltip, TooltipLine } from "./tooltip";

/** Programs before "show all". */
const PROGRAMS = 8;

/** Null where the recordings have no ledger to compare. */
export function ledgerPairsView({ ledger, per }: RecordingComparison, tooltip: Tooltip): HTMLElement | null {
  if (ledger.length === 0) return null;
  const list = h("div", { class: "ledger-bars" });
  const more = h("button", { type: "button", class: "more", onclick: () => ((limit = Infinity), fill()) });
  const shown = h("select", {}, h("option", { value: "busy" }, "in which threads ran or were kept from running"), h("option", { value: "all" }, "with waits for others"));
  const scale = h("select", {}, h("option", { value: "same" }, "the longest bar"), h("option", { value: "own" }, "the longer of the two"));
  let limit = PROGRAMS;

  function fill(): void {
    const pairs = ledgerPairs(ledger, shown.value === "all");
    const lengthOf = (p: LedgerPair): number => Math.max(p.before.length, p.after.length);
    const longest = Math.max(...pairs.map(lengthOf), 0);
    list.replaceChildren(...pairs.slice(0, limit).map((p) => entry(p, scale.value === "same" ? longest : lengthOf(p), per, tooltip)));
    more.hidden = pairs.length <= limit;
    more.textContent = `Show all ${count(pairs.length)}`;
  }
  shown.addEventListener("change", fill);
  scale.addEventListener("change", fill);
  fill();
  return section(
    "ledger",
    "Where the time went",
    h("p", { class: "quiet" }, "Time of all threads of a program, before above and after below, on one scale. Each moment of a thread belongs to one category; what no category has is unexplained. Open a pair for its table; the arrow keys step through its parts."),
    h("div", { class: "controls" }, h("label", {}, "Bars show the time ", shown), h("label", {}, "Full length is ", scale)),
    h("div", { class: "ledger" }, list, more),
  );
}

function entry(pair: LedgerPair, fullLength: number, per: Per, tooltip: Tooltip): HTMLElement {
  const plain = (row: BarRow): string => (row.time === null ? "not known" : figure(row.time, per));
  const sides = [pair.before, pair.after];
  const bars = sides.map((bar) => drawBar(bar, fullLength > 0 ? bar.length / fullLength : 0, barSentence(bar, plain)));
  const name = pair.program === null ? "all programs" : isolated(pair.program);
  const times = sides.map((bar) => h("span", { class: "num" }, figure({ value: bar.whole, low: null, high: null, unit: "ms" }, per)));
  const summary = h(
    "summary",
    {},
    h("span", { class: "ledger-name" }, name),
    h("span", { class: "pair-side quiet" }, "before"),
    h("span", { class: "ledger-track" }, bars[0]!.element),
    times[0],
    h("span", { class: "pair-side quiet" }, "after"),
    h("span", { class: "ledger-track" }, bars[1]!.element),
    times[1],
  );
  stepThrough(summary, bars, partsOf(pair), tooltip, (part) => describe(pair, part, per));
  const details = h("details", { class: "ledger-entry ledger-pair" }, summary);
  details.addEventListener("toggle", () => {
    const label = pair.program ?? "all programs";
    if (details.open && details.childElementCount === 1) details.append(h("div", { class: "table-frame", tabindex: 0, role: "region", "aria-label": label }, rowsTable(pair, label, per)));
  });
  return details;
}

function rowsTable(pair: LedgerPair, caption: string, per: Per): HTMLElement {
  const head = ["Category", "Before", "After", "Change", "95 % interval, or in %"].map((t, i) => h("th", { scope: "col", class: i > 0 ? "num" : null }, t));
  const line = ({ part, change }: LedgerPair["rows"][number]): HTMLElement => {
    const verdict = judged(change);
    return h(
      "tr",
      { class: part === UNEXPLAINED ? "total" : null, title: partDid(part) },
      h("th", { scope: "row" }, swatch(part), " ", partWords(part)),
      h("td", { class: "num" }, figure(change.before, per)),
      h("td", { class: "num" }, figure(change.after, per)),
      h("td", { class: verdict ? `num outcome-${verdict}` : "num" }, figure(change.difference, per, true)),
      h("td", { class: "num quiet" }, beside(change)),
    );
  };
  return h("table", { class: "compact" }, h("caption", {}, caption), h("thead", {}, h("tr", {}, ...head)), h("tbody", {}, ...pair.rows.map(line)));
}

function describe(pair: LedgerPair, part: BarPart, per: Per): TooltipLine[] {
  const change = pair.rows.find((r) => r.part === part)?.change;
  const more = change ? beside(change) : "";
  return [
    { heading: partWords(part) },
    { note: partDid(part) },
    ...(change
      ? [
          { label: "before", value: figure(change.before, per) },
          { label: "after", value: figure(change.after, per) },
          { label: "change", value: `${figure(change.difference, per, true)}${more === "" ? "" : ` (${more})`}` },
        ]
      : []),
  ];
}
