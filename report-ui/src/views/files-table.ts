// What each file cost: a sortable table beside the picture.

import type { FileRow } from "../derive/io-totals";
import { bytes, count, duration, percent, significant } from "../format";
import { h, pathText, type Child } from "./element";
import { sortableTable, type Column } from "./sortable-table";

export function filesTable(rows: readonly FileRow[], pageSize: number, show: (file: number) => void): HTMLElement {
  const largest = Math.max(1, ...rows.map((r) => r.pagesRead));
  const number = (value: number | null): Child => (value === null ? h("span", { class: "quiet" }, "unknown") : count(value));
  const columns: Column<FileRow>[] = [
    {
      key: "path",
      label: "File",
      sortBy: (r) => r.path,
      cell: (r) => (r.reads > 0 ? h("button", { type: "button", class: "link", onclick: () => show(r.index) }, pathText(r.path)) : pathText(r.path)),
    },
    { key: "size", label: "Size", numeric: true, sortBy: (r) => r.size, cell: (r) => bytes(r.size) },
    { key: "picture", label: "Needed, wasted", hint: "Solid: pages read and needed. Hatched: read, never needed. Grey: not known.", largestFirst: true, sortBy: (r) => r.pagesRead, cell: (r) => shareBar(r, largest) },
    { key: "needed", label: "Needed", hint: `Pages of ${bytes(pageSize)} that a launch without readahead asked for`, numeric: true, sortBy: (r) => r.pagesNeeded, cell: (r) => number(r.pagesNeeded) },
    { key: "read", label: "Read", hint: "Pages read", numeric: true, sortBy: (r) => r.pagesRead, cell: (r) => count(r.pagesRead) },
    { key: "waste", label: "Wasted", hint: "Pages read and never needed", numeric: true, sortBy: (r) => r.pagesWasted, cell: (r) => [number(r.pagesWasted), r.wastedShare === null ? null : h("span", { class: "quiet" }, ` ${percent(r.wastedShare)}`)] },
    { key: "reads", label: "Reads", hint: "Contiguous insertions into the page cache", numeric: true, sortBy: (r) => r.reads, cell: (r) => count(r.reads) },
    { key: "per-read", label: "Mean read", numeric: true, extra: true, sortBy: (r) => r.pagesPerRead, cell: (r) => (r.reads > 0 ? bytes(r.pagesPerRead * pageSize) : "none") },
    {
      key: "jumps",
      label: "Jumps fwd / back / adj.",
      hint: "Between one needed page and the next in time. Sorts by backward jumps, which readahead does not foresee.",
      numeric: true,
      sortBy: (r) => r.backward,
      cell: (r) => (r.forward === null ? h("span", { class: "quiet" }, "unknown") : [count(r.forward), " / ", count(r.backward ?? 0), " / ", count(r.adjacent ?? 0)]),
    },
    { key: "blocked", label: "Blocked", hint: "Time that threads waited for this file; threads may wait at once", numeric: true, sortBy: (r) => r.blocked, cell: (r) => duration(r.blocked) },
    { key: "first", label: "First use", numeric: true, extra: true, sortBy: (r) => r.firstUse, cell: (r) => (r.firstUse === null ? h("span", { class: "quiet" }, "none") : significantTime(r.firstUse)) },
  ];
  return sortableTable(columns, rows, { caption: `Per file, in pages of ${bytes(pageSize)}; a name leads to its picture`, limit: 12, sortedBy: { key: "read", descending: true } });
}

function significantTime(ns: number): string {
  return ns < 1e10 ? `${significant(ns / 1e6)} ms` : duration(ns);
}

const BAR_WIDTH = 90;

function shareBar(r: FileRow, largest: number): Child {
  const scale = (pages: number): number => (pages / largest) * BAR_WIDTH;
  const wasted = r.pagesWasted ?? 0;
  const solid = scale(r.pagesRead - wasted);
  const part = (kind: string, width: number): HTMLElement => {
    const element = h("span", { class: kind });
    element.style.width = `${width}px`;
    return element;
  };
  return h("span", { class: "share", "aria-hidden": "true" }, part(r.pagesWasted === null ? "unknown" : "needed", Math.max(solid, 0.5)), part("wasted", scale(wasted)));
}
