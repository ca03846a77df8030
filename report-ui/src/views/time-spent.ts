// The table of where time goes.

import { timeTable, type TimeRow } from "../derive/time-spent";
import { quantityValue } from "../format";
import type { Diagnosis } from "../types";
import { h, section } from "./element";

/** Null where the diagnosis has no recording of which it is known. */
export function timeSpentView(diagnosis: Diagnosis | null): HTMLElement | null {
  const table = timeTable(diagnosis?.time ?? []);
  if (!table) return null;
  return section(
    "time-spent",
    "Where the time goes",
    h("p", { class: "quiet" }, "What the time to ready of a recorded launch went to, followed back through wake-ups, and what all processes ran. Every moment stands in one row."),
    h(
      "div",
      { class: "table-frame", tabindex: 0, role: "region", "aria-label": "Where the time goes" },
      h(
        "table",
        {},
        h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Part"), ...table.columns.map((text) => h("th", { scope: "col", class: "num" }, text)))),
        h("tbody", {}, ...table.rows.map(row), row(table.whole)),
      ),
    ),
    ...table.notes.map((text) => h("p", { class: "quiet" }, text)),
  );
}

function row(one: TimeRow): HTMLTableRowElement {
  return h("tr", {}, h("th", { scope: "row" }, one.title), ...one.cells.map((time) => h("td", { class: "num" }, time ? quantityValue(time) : h("span", { class: "quiet" }, "–"))));
}
