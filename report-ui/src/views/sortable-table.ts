// A table whose columns sort by a click or the keyboard. Owns sorting and the cut-off of long tables.

import { h, type Child } from "./element";

export interface Column<Row> {
  key: string;
  label: string;
  /** Explains the column in its header's tooltip. */
  hint?: string;
  numeric?: boolean;
  /** The first click sorts downwards; numbers always do. */
  largestFirst?: boolean;
  /** Shown on demand. */
  extra?: boolean;
  /** What to sort by; null sorts last in both directions. */
  sortBy: (row: Row) => number | string | null;
  cell: (row: Row) => Child;
}

interface Options {
  caption: string;
  /** Rows before "show all". */
  limit: number;
  sortedBy?: { key: string; descending: boolean };
}

export function sortableTable<Row>(allColumns: Column<Row>[], rows: readonly Row[], options: Options): HTMLElement {
  let sorted = [...rows];
  let by = options.sortedBy ?? null;
  let limit = options.limit;
  let columns = allColumns.filter((c) => !c.extra);
  const extra = allColumns.length - columns.length;
  const body = h("tbody");
  const heads = new Map(allColumns.map((c) => [c, headOf(c)]));
  const headRow = h("tr");
  const more = h("button", { type: "button", class: "more", onclick: () => ((limit = Infinity), fill()) });
  const table = h("table", { class: "sortable" }, h("caption", { class: "quiet" }, h("div", {}, options.caption)), h("thead", {}, headRow), body);

  const wider = h("button", { type: "button", class: "more", hidden: extra === 0, onclick: () => ((columns = [...allColumns]), (wider.hidden = true), fill()) }, extra === 1 ? "Show 1 more column" : `Show ${extra} more columns`);

  function headOf(column: Column<Row>): HTMLElement {
    const button = h("button", { type: "button", title: column.hint ?? null, onclick: () => sort(column) }, column.label);
    return h("th", { scope: "col", class: column.numeric ? "num" : null, "data-key": column.key }, button);
  }

  function sort(column: Column<Row>): void {
    const descending = by?.key === column.key ? !by.descending : (column.numeric ?? column.largestFirst ?? false);
    by = { key: column.key, descending };
    const sign = descending ? -1 : 1;
    sorted = [...rows].sort((a, b) => {
      const [x, y] = [column.sortBy(a), column.sortBy(b)];
      if (x === y) return 0;
      if (x === null) return 1;
      if (y === null) return -1;
      return x < y ? -sign : sign;
    });
    fill();
  }

  function fill(): void {
    headRow.replaceChildren(...columns.map((c) => heads.get(c)!));
    heads.forEach((head, column) => {
      head.setAttribute("aria-sort", by?.key === column.key ? (by.descending ? "descending" : "ascending") : "none");
    });
    body.replaceChildren(
      ...sorted.slice(0, limit).map((row) => h("tr", {}, ...columns.map((c) => h("td", { class: c.numeric ? "num" : null }, c.cell(row))))),
    );
    more.hidden = sorted.length <= limit;
    more.textContent = `Show all ${sorted.length.toLocaleString("en")} rows`;
  }

  fill();
  // Focusable, because a wide table scrolls sideways and the keyboard must reach that too.
  const frame = h("div", { class: "table-frame", tabindex: 0, role: "region", "aria-label": options.caption }, table);
  return h("div", {}, frame, more, " ", wider);
}
