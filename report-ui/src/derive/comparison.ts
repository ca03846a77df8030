// A comparison -> the sentences, rows and pairs of bars that the page shows.
//
// Owns the words of measures and what is said of a change. Figures come as they are.

import type { Change, RecordingComparison, ComparedRecording, FindingChange, FunctionChange, LedgerChange, Measure } from "../generated/comparison-page";
import { shellCommand } from "../display-text";
import { inUnit, percent, quantityInterval, quantityValue } from "../format";
import type { LedgerRow, Quantity } from "../types";
import { barOf, isWaiting, ORDER, UNEXPLAINED, type BarPart, type LedgerBar } from "./ledger-bars";
import { strong, type Words } from "./words";

/** All measures in the order of the table; `part` is one that is part of, or belongs to, the one before. */
export const MEASURES: ReadonlyMap<Measure, { words: string; part?: boolean }> = new Map([
  ["time_to_ready", { words: "time to ready" }],
  ["cpu_time", { words: "CPU time" }],
  ["sampled_cpu_time", { words: "CPU time, from samples" }],
  ["sampled_kernel_time", { words: "of it in the kernel", part: true }],
  ["kernel_thread_time", { words: "CPU time of the kernel's own threads" }],
  ["background_reclaim", { words: "background reclaim" }],
  ["faults", { words: "page faults" }],
  ["faults_by_kernel", { words: "by the kernel's counters", part: true }],
  ["fault_time", { words: "time in page faults", part: true }],
  ["allocations", { words: "allocations (mmap, mremap, brk)" }],
  ["allocated_bytes", { words: "bytes allocated", part: true }],
  ["map_time", { words: "time in these calls", part: true }],
  ["releases", { words: "memory given back, calls" }],
  ["release_time", { words: "time in giving memory back", part: true }],
  ["off_cpu_time", { words: "time off the CPU, mostly idle" }],
  ["runnable_time", { words: "waiting for a CPU", part: true }],
]);

export function measureWords(measure: Measure): string {
  return MEASURES.get(measure)?.words ?? measure;
}

export type Per = RecordingComparison["per"];

/** A launch has one time to ready, however long. */
export function perOf(measure: Measure, per: Per): Per {
  return measure === "time_to_ready" ? "recording" : per;
}

export function figure(q: Quantity, per: Per, signed = false): string {
  return quantityValue(q, signed) + (per === "second" ? "/s" : "");
}

/** The interval of a difference, or what it is of what was before. */
export function beside(change: Change): string {
  const interval = quantityInterval(change.difference);
  if (interval !== null) return `${interval}`;
  const { before, difference } = change;
  return before.value > 0 && difference.value !== 0 ? (difference.value > 0 ? "+" : "") + percent(difference.value / before.value) : "";
}

/** Less is better, and only an interval beside zero says that it is less. */
export function judged({ difference: { low, high } }: Change): "helps" | "hurts" | null {
  if (low === null || high === null) return null;
  return high < 0 ? "helps" : low > 0 ? "hurts" : null;
}

export function titleOf({ before, after }: RecordingComparison): string {
  const command = (side: ComparedRecording[]): string => shellCommand(side[0]?.command ?? []);
  return command(before) === command(after) ? command(before) : `${command(before)} → ${command(after)}`;
}

/** `2 recordings of 10.0 to 10.1 s`. */
export function sideWords(side: readonly ComparedRecording[]): string {
  const lengths = side.map((r) => r.length.value);
  const [shortest, longest] = [Math.min(...lengths), Math.max(...lengths)];
  const length = longest - shortest < 0.005 * longest ? inUnit(longest, "s") : `${inUnit(shortest, "s")} to ${inUnit(longest, "s")}`;
  return `${side.length === 1 ? "one recording" : `${side.length} recordings`} of ${length}`;
}

/** The largest changes in sentences. */
export function comparisonAnswer(comparison: RecordingComparison): Words {
  const { per, totals, functions } = comparison;
  const said = (c: Change): string => `${figure(c.before, per)} before, ${figure(c.after, per)} after`;
  const total = totals.find((t) => t.measure === "cpu_time") ?? totals.find((t) => t.measure === "sampled_cpu_time");
  const words: Words = total ? ["CPU time: ", strong(said(total.change)), ". "] : ["CPU time was not recorded on both sides. "];
  // Functions come with the largest difference first.
  for (const [measure, what] of [["sampled_cpu_time", "CPU"], ["allocated_bytes", "Allocated"]] as const) {
    const most = functions.find((f) => f.measure === measure && f.function !== null);
    if (most) words.push(`${what} in ${shortName(most.function!)}: `, strong(said(most.change)), ". ");
  }
  const gone = comparison.findings.filter((f) => f.state === "gone").length;
  const fresh = comparison.findings.filter((f) => f.state === "new").length;
  if (gone + fresh > 0) words.push(`Findings: ${[gone > 0 ? `${gone} gone` : "", fresh > 0 ? `${fresh} new` : ""].filter((t) => t !== "").join(", ")}.`);
  return words;
}

/** A function without its parameters; templates keep theirs. */
export function shortName(name: string): string {
  const anonymous = "(anonymous namespace)";
  const at = name.indexOf("(", name.startsWith(anonymous) ? anonymous.length : 0);
  return at > 0 ? name.slice(0, at) : name;
}

export function stateWords(f: FindingChange): string {
  return { gone: "gone", new: "new", both: "on both sides", unknown: "on one side; the other could not show it" }[f.state];
}

/** The measures that functions have, in the order of the page, each with its rows. */
export function functionTables(functions: readonly FunctionChange[]): { measure: Measure; rows: FunctionChange[] }[] {
  const order: Measure[] = ["sampled_cpu_time", "allocated_bytes", "allocations", "fault_time", "faults", "release_time", "releases", "off_cpu_time"];
  return order.map((measure) => ({ measure, rows: functions.filter((f) => f.measure === measure) })).filter((t) => t.rows.length > 0);
}

export interface LedgerPair {
  /** Null for all together. */
  program: string | null;
  before: LedgerBar;
  after: LedgerBar;
  /** Every row, the largest differences first; what is unexplained is the last. */
  rows: { part: BarPart; change: Change }[];
}

/** A pair of bars for all programs together and for each. Without waits, a bar has the time in which threads ran or were kept from it. */
export function ledgerPairs(ledger: readonly LedgerChange[], withWaits: boolean): LedgerPair[] {
  const programs = [...new Set(ledger.map((l) => l.program))];
  const pairs = programs.map((program): LedgerPair => {
    const rows = ledger.filter((l) => l.program === program).map((l) => ({ part: l.category ?? UNEXPLAINED, change: l.change }) as const);
    rows.sort((a, b) => Number(a.part === UNEXPLAINED) - Number(b.part === UNEXPLAINED));
    const side = (name: "before" | "after"): LedgerBar => {
      const shown = rows.filter((r) => r.part !== UNEXPLAINED && (withWaits || !isWaiting(r.part)));
      const rest = rows.find((r) => r.part === UNEXPLAINED)?.change[name] ?? null;
      const whole = shown.reduce((sum, r) => sum + r.change[name].value, rest?.value ?? 0);
      return barOf(program ?? "all programs", name, { value: Math.max(whole, 0), low: null, high: null, unit: "ms" }, shown.map((r): LedgerRow => ({ category: r.part as LedgerRow["category"], time: r.change[name], share: null })), rest);
    };
    return { program, before: side("before"), after: side("after"), rows };
  });
  const size = (p: LedgerPair): number => Math.max(p.before.length, p.after.length);
  return pairs.filter((p) => p.program === null || size(p) > 0).sort((a, b) => Number(a.program !== null) - Number(b.program !== null) || size(b) - size(a));
}

/** The parts that either bar has, in the order of a bar. */
export function partsOf(pair: LedgerPair): BarPart[] {
  const drawn = new Set([...pair.before.segments, ...pair.after.segments].map((s) => s.row.part));
  return [...ORDER, UNEXPLAINED].filter((part): part is BarPart => drawn.has(part as BarPart));
}
