// The columns of an evidence table: which, in what order, under which heading, and how a cell reads.
//
// Rows come from the findings as objects whose keys are known here only by their words: a key tells
// what it is (`pages_needed`, `blocked_ms`) and its unit. Owns order and headings, no drawing.

import { count, inUnit, percent, significant } from "../format";
import type { Cell } from "../types";
import { cellOrder, cellText, isQuantity, keyText } from "./cell";

export type Row = Record<string, Cell>;

export interface EvidenceColumn {
  key: string;
  /** With the unit where cells carry none. */
  label: string;
  hint: string;
  numeric: boolean;
  /** Of use to few readers: shown on demand where the table is wide. */
  extra: boolean;
  text: (row: Row) => string;
  order: (row: Row) => number | string | null;
}

/** What says which thing a row is about, the narrowest last. */
const IDENTIFYING = ["path", "file", "section", "kind", "process", "name", "pid", "tid", "cause", "access", "function", "stack", "factor"];
/** What a reader looks for, in the order of the argument: needed, read, wasted, in what order, at what cost. */
const TELLING = [/^launch/, /^(?:pages|bytes)_needed$|^needed/, /^(?:pages|bytes)_read$|^read/, /wasted?(?:_|$)/, /^steps|jumps/, /blocked/, /unexplained/, /size/];
/** Breakdowns of other columns. */
const BREAKDOWN = /^pages_by_|^median_kib_/;
/** Up to so many columns a table is not wide. */
const WIDE = 10;
const STEPS = ["steps_forward", "steps_backward", "steps_adjacent"] as const;
const MILLIS_PER: Record<string, number> = { ns: 1e-6, us: 1e-3, ms: 1, s: 1e3 };

export function evidenceColumns(rows: readonly Row[]): EvidenceColumn[] {
  const keys = [...new Set(rows.flatMap((r) => Object.keys(r)))].filter((k) => rows.some((r) => r[k] !== null && r[k] !== undefined));
  const folded = STEPS.every((k) => keys.includes(k));
  const own = keys.filter((k) => !(folded && (STEPS as readonly string[]).includes(k))).map((k) => columnOf(k, rows));
  const columns = folded ? [...own, stepsColumn()] : own;
  const rank = new Map(columns.map((c, i) => [c, rankOf(c) * 1000 + i]));
  columns.sort((a, b) => rank.get(a)! - rank.get(b)!);
  if (columns.length <= WIDE) for (const c of columns) c.extra = false;
  return columns;
}

function rankOf(column: EvidenceColumn): number {
  const named = IDENTIFYING.indexOf(column.key);
  if (named >= 0) return named;
  if (BREAKDOWN.test(column.key)) return 80;
  const telling = TELLING.findIndex((t) => t.test(column.key));
  if (telling >= 0) return 40 + telling;
  return column.numeric ? 60 : 30;
}

function columnOf(key: string, rows: readonly Row[]): EvidenceColumn {
  const cells = rows.map((r) => r[key] ?? null);
  const numeric = cells.some((c) => typeof c === "number" || (c !== null && isQuantity(c)));
  // Identifiers are numbers to sort by, and not to measure.
  const read = numeric ? reading(key) : null;
  return {
    key,
    label: read?.label ?? keyText(key),
    hint: key.replace(/_/g, " "),
    numeric,
    extra: BREAKDOWN.test(key),
    text: (row) => {
      const cell = row[key];
      if (cell === undefined) return "–";
      if (cell === null) return "unknown";
      return typeof cell === "number" && read ? read.text(cell) : cellText(key, cell);
    },
    order: (row) => cellOrder(row[key] ?? null),
  };
}

/** A numeric key as heading with unit, and the text of its cells without; null where cells carry their own. */
function reading(key: string): { label: string; text: (n: number) => string } | null {
  const words = key.split("_");
  const last = words[words.length - 1]!;
  const named = (drop: number): string => words.slice(0, words.length - drop).join(" ") || key;
  const millis = MILLIS_PER[last];
  if (millis !== undefined && words.length > 1) return { label: `${named(1)}, ms`, text: (n) => significant(n * millis) };
  if (last === "percent" && words.length > 1) return { label: `${named(1)}, %`, text: (n) => percent(n / 100).replace(/\u00a0%$/, "") };
  if (words[0] === "pages" && words.length > 1) return { label: `${words.slice(1).join(" ")}, pages`, text: count };
  const kib = words.indexOf("kib");
  if (kib >= 0) return { label: `${[...words.slice(0, kib), ...words.slice(kib + 1)].join(" ")}, KiB`, text: significant };
  if (last === "bytes" && words.length > 1) return { label: named(1), text: (n) => inUnit(n, "bytes") };
  return null;
}

function stepsColumn(): EvidenceColumn {
  return {
    key: "steps",
    label: "jumps fwd / back / adj.",
    hint: "Between one needed page and the next in time. Sorts by backward jumps, which readahead does not foresee.",
    numeric: true,
    extra: false,
    text: (row) => {
      const counts = STEPS.map((k) => row[k]);
      if (counts.every((c) => c === undefined)) return "–";
      return counts.map((c) => (typeof c === "number" ? count(c) : "unknown")).join(" / ");
    },
    order: (row) => cellOrder(row["steps_backward"] ?? null),
  };
}
