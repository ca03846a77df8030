// The time ledger -> bars: what each part of a bar is, where it lies, and what is said of it.
//
// Owns the names and the order of the categories, and the arithmetic of the bars. A bar's parts stand
// in the same order everywhere, so that bars can be compared; the rows of its table come as they are.

import { count } from "../format";
import type { Category, LedgerProcess, LedgerRow, LedgerSum, LedgerThread, HtmlLedger, Quantity } from "../types";

export const UNEXPLAINED = "unexplained";
export type BarPart = Category | typeof UNEXPLAINED;

/** All categories in the order of a bar: running, in faults and calls, kept from running, and `waits` for what others do. */
export const CATEGORIES: ReadonlyMap<Category, { words: string; did: string; waits?: boolean }> = new Map([
  ["user", { words: "user", did: "ran in user mode" }],
  ["kernel", { words: "kernel", did: "ran in the kernel, outside of page faults and recorded memory calls" }],
  ["on_cpu", { words: "user or kernel", did: "ran; too little is known to tell user from kernel" }],
  ["minor_fault", { words: "minor faults", did: "ran in page faults that read nothing" }],
  ["major_fault", { words: "major faults", did: "ran in page faults that read, or waited for storage in one" }],
  ["memory_call", { words: "memory calls", did: "ran in mmap, munmap, mremap, brk or madvise" }],
  ["other_io", { words: "other I/O", did: "waited for storage in a system call" }],
  ["runnable", { words: "runnable", did: "could run; another task had the CPU" }],
  ["throttled", { words: "throttled", did: "could run; its cgroup had used up its quota" }],
  ["stolen", { words: "stolen", did: "ran, as far as this system knows; the hypervisor had the CPU" }],
  ["lock", { words: "locks", did: "waited on a futex: for a lock, a condition, another thread", waits: true }],
  ["pipe_or_socket", { words: "pipes, sockets", did: "waited in a read or write for somebody else", waits: true }],
  ["kernel_wait", { words: "kernel waits", did: "waited for a lock inside the kernel, or for anything else there", waits: true }],
  ["child", { words: "children", did: "waited for a child process", waits: true }],
  ["events", { words: "events", did: "waited in poll, epoll, select or for a signal", waits: true }],
  ["timer", { words: "timers", did: "slept until a time", waits: true }],
  ["stopped", { words: "stopped", did: "stopped by a signal, a tracer or a freezer", waits: true }],
]);

export const ORDER: readonly Category[] = [...CATEGORIES.keys()];

/** Whether a thread that has nothing to do spends its time so. */
export function isWaiting(part: BarPart): boolean {
  return part !== UNEXPLAINED && CATEGORIES.get(part)?.waits === true;
}

export function partWords(part: BarPart): string {
  return part === UNEXPLAINED ? UNEXPLAINED : (CATEGORIES.get(part)?.words ?? part);
}

export function partDid(part: BarPart): string {
  return part === UNEXPLAINED ? "in no category: lost, not recorded, or counted otherwise by the scheduler" : (CATEGORIES.get(part)?.did ?? "");
}

/** A line of a bar's table. */
export interface BarRow {
  part: BarPart;
  /** Null for unexplained time that is not known. */
  time: Quantity | null;
  /** Of the bar's whole; null where that is nothing, or `time` is not known. */
  share: number | null;
}

/** A piece of a bar, from `from` to `to` as fractions of its length. */
export interface Segment {
  row: BarRow;
  from: number;
  to: number;
}

export interface LedgerBar {
  /** Whose it is; left out for a sum. */
  of?: { pid: number; process: string; tid: number | null };
  /** Process and, of a thread, its name. Foreign text. */
  name: string;
  /** Numbers that tell it from others. */
  detail: string;
  /** All of its time, ms: of a process, that of its threads together. */
  whole: number;
  /** What the bar's length stands for, ms: more than `whole` where the rows have more. */
  length: number;
  segments: Segment[];
  /** Largest first; what is unexplained is always the last. */
  rows: BarRow[];
  unexplained: BarRow;
  /** Whether it stands for several that have no bar of their own. */
  isSum: boolean;
}

export interface LedgerPicture {
  processes: LedgerBar[];
  threads: LedgerBar[];
  /** All processes together. */
  total: LedgerBar;
  /** What a reader must know, one sentence each. */
  notes: string[];
}

export function ledgerPicture(ledger: HtmlLedger): LedgerPicture {
  const { busiest, other_processes, other_threads } = ledger;
  const processes = busiest.processes.map(ofProcess);
  const threads = busiest.threads.map(ofThread);
  if (other_processes) processes.push(ofSum(other_processes, "process", "processes"));
  if (other_threads) threads.push(ofSum(other_threads, "thread", "threads"));
  return { processes, threads, total: sum(processes), notes: notes(ledger) };
}

function ofProcess(p: LedgerProcess): LedgerBar {
  return { ...barOf(p.process, `pid ${p.pid}, ${things(p.threads, "thread", "threads")}`, p.thread_time, p.rows, p.unexplained), of: { pid: p.pid, process: p.process, tid: null } };
}

function ofThread(t: LedgerThread): LedgerBar {
  const name = t.thread === null || t.thread === t.process ? t.process : `${t.thread} (${t.process})`;
  return { ...barOf(name, `pid ${t.pid}, thread ${t.tid}`, t.wall, t.rows, t.unexplained), of: { pid: t.pid, process: t.process, tid: t.tid } };
}

function ofSum(s: LedgerSum, one: string, many: string): LedgerBar {
  return { ...barOf(`${count(s.count)} other ${s.count === 1 ? one : many}`, "the least busy, together", s.thread_time, s.rows, s.unexplained), isSum: true };
}

function things(n: number, one: string, many: string): string {
  return `${count(n)} ${n === 1 ? one : many}`;
}

/** A bar of rows that are part of `whole`. */
export function barOf(name: string, detail: string, whole: Quantity, rows: readonly LedgerRow[], unexplained: Quantity | null): LedgerBar {
  const share = (ms: number): number | null => (whole.value > 0 ? ms / whole.value : null);
  const shown = rows.map((r): BarRow => ({ part: r.category, time: r.time, share: share(r.time.value) }));
  const rest: BarRow = { part: UNEXPLAINED, time: unexplained, share: unexplained ? share(unexplained.value) : null };
  const all = [...shown, rest];
  const drawn = [...ORDER, UNEXPLAINED].flatMap((part) => all.filter((r) => r.part === part && r.time !== null && r.time.value > 0));
  const sumOfRows = drawn.reduce((s, r) => s + r.time!.value, 0);
  const length = Math.max(whole.value, sumOfRows);
  let at = 0;
  const segments = drawn.map((row): Segment => {
    const from = at;
    at = Math.min(at + row.time!.value / length, 1);
    return { row, from, to: at };
  });
  return { name, detail, whole: whole.value, length, segments, rows: all, unexplained: rest, isSum: false };
}

/** All bars as one; its rows have no intervals. */
function sum(bars: readonly LedgerBar[]): LedgerBar {
  const ms = (value: number): Quantity => ({ value, low: null, high: null, unit: "ms" });
  const times = new Map<Category, number>();
  let whole = 0;
  let unexplained: number | null = null;
  for (const b of bars) {
    whole += b.whole;
    for (const { part, time } of b.rows) {
      if (time === null) continue;
      if (part === UNEXPLAINED) unexplained = (unexplained ?? 0) + time.value;
      else times.set(part, (times.get(part) ?? 0) + time.value);
    }
  }
  const rows = [...times].sort((a, b) => b[1] - a[1]).map(([category, value]): LedgerRow => ({ category, time: ms(value), share: null }));
  return barOf("all processes", "together", ms(whole), rows, unexplained === null ? null : ms(unexplained));
}

function notes({ busiest }: HtmlLedger): string[] {
  const all: string[] = [];
  if (busiest.incomplete_threads > 0) all.push(`${things(busiest.incomplete_threads, "thread is", "threads are")} left out: begin or end was not recorded.`);
  if (busiest.lost_intervals > 0) all.push(`${things(busiest.lost_intervals, "interval", "intervals")} off the CPU were lost; their time is unexplained.`);
  const unchecked = busiest.processes.reduce((n, p) => n + p.unchecked_threads, 0);
  if (unchecked > 0) all.push(`Of ${things(unchecked, "thread", "threads")} it is not known how much is unexplained.`);
  if (!busiest.has_memory_calls) all.push("Memory calls were not recorded; they are part of kernel.");
  return all;
}

/** The bar in one sentence, for those who do not see it. */
export function barSentence(bar: LedgerBar, text: (row: BarRow) => string): string {
  return `${bar.name}, ${bar.detail}: ${bar.rows.map((r) => `${partWords(r.part)} ${text(r)}`).join(", ")}.`;
}
