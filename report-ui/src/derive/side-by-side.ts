// Launches of one command -> bars by group, and the spans that grew.
//
// Owns medians, which launches are laid beside which, and the order of the spans. Times come as they are. A span of the critical path that a
// launch does not have took no time there; a child that it did not have has no time, which is not nothing.

import { baseName } from "../display-text";
import { count, duration, percent } from "../format";
import type { CategoryTime, LaunchBeside, LedgerRow, Nanos, Quantity, SideBySide, SpanBeside, SpanName } from "../types";
import { barOf, partWords, UNEXPLAINED, type BarPart, type LedgerBar } from "./ledger-bars";
import { strong, type Words } from "./words";

/** Launches that are laid beside each other: all, or those of a group. */
export type Scope = number | "all";

export interface LaunchRow {
  /** Index into the launches of the data. */
  index: number;
  launch: LaunchBeside;
  bar: LedgerBar;
  /** The one in the middle of its group. */
  isMiddle: boolean;
  /** Less the median of its group; null where it is not counted in it. */
  fromMedian: Nanos | null;
}

export interface LaunchGroup {
  name: string;
  /** In the order of the data. */
  rows: LaunchRow[];
  /** Of the launches that got ready, or of all where none did. */
  median: Nanos | null;
}

export interface LaunchesPicture {
  groups: LaunchGroup[];
  /** What the full length of a bar stands for. */
  longest: Nanos;
  notes: string[];
}

export interface SpanGrowth {
  name: SpanName;
  /** By launch of the data. */
  times: (Nanos | null)[];
  fastest: Nanos | null;
  slowest: Nanos | null;
  /** From the fastest to the slowest launch of the scope; null where either has no such span. */
  growth: Nanos | null;
  /** Of all counted launches of the scope. */
  median: Nanos | null;
  /** By group. */
  medians: (Nanos | null)[];
  /** The median of the last group less that of the first; null with one group, or where either has none. */
  difference: Nanos | null;
}

export interface Growth {
  /** Indices into the launches; null where the scope has less than two. */
  fastest: number | null;
  slowest: number | null;
  /** On the critical path: they add up to the launches, with `others`. What grew most comes first. */
  path: SpanGrowth[];
  /** Children, which overlap with it. */
  children: SpanGrowth[];
  /** Growth of all on the path that has no row. */
  others: Nanos;
}

const ms = (ns: Nanos): Quantity => ({ value: ns / 1e6, low: null, high: null, unit: "ms" });

export function median(values: readonly number[]): number | null {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
}

/** A bar of what a launch, or the start of a child, has by category; null for unexplained time that is not known. */
export function barOfTimes(name: string, detail: string, whole: Nanos, times: readonly CategoryTime[], unexplained: Nanos | null): LedgerBar {
  const rows = [...times].sort((a, b) => b.time_ns - a.time_ns).map(({ category, time_ns }): LedgerRow => ({ category, time: ms(time_ns), share: null }));
  return barOf(name, detail, ms(whole), rows, unexplained === null ? null : ms(unexplained));
}

/** Names of recordings, as short as they still differ. */
export function launchNames(launches: readonly Pick<LaunchBeside, "recording">[]): string[] {
  const bases = launches.map((l) => baseName(l.recording));
  if (new Set(bases).size === bases.length) return bases;
  const parts = launches.map((l) => l.recording.split("/"));
  const shortest = Math.min(...parts.map((p) => p.length));
  let common = 0;
  while (common + 1 < shortest && parts.every((p) => p[common] === parts[0]![common])) common++;
  return parts.map((p) => p.slice(common).join("/"));
}

/** The launches that figures are made of: those that got ready, or all where none did. */
function counted(launches: readonly LaunchBeside[], scope: Scope): number[] {
  const all = launches.map((_, i) => i).filter((i) => scope === "all" || launches[i]!.group === scope);
  const ready = all.filter((i) => launches[i]!.is_ready);
  return ready.length > 0 ? ready : all;
}

export function launchesPicture(data: SideBySide): LaunchesPicture {
  const names = launchNames(data.launches);
  const groups = data.groups.map((name, group): LaunchGroup => {
    const of = counted(data.launches, group);
    const inOrder = [...of].sort((a, b) => data.launches[a]!.time_ns - data.launches[b]!.time_ns);
    const middle = inOrder[(inOrder.length - 1) >> 1];
    const value = median(of.map((i) => data.launches[i]!.time_ns));
    const rows = data.launches.flatMap((launch, index): LaunchRow[] => {
      if (launch.group !== group) return [];
      const bar = barOfTimes(names[index]!, launch.is_ready ? "to ready" : "never ready: to its end", launch.time_ns, launch.times, launch.unexplained_ns);
      return [{ index, launch, bar, isMiddle: index === middle && of.length > 2, fromMedian: value !== null && of.length > 1 && of.includes(index) ? launch.time_ns - value : null }];
    });
    return { name, rows, median: value };
  });
  return { groups: groups.filter((g) => g.rows.length > 0), longest: Math.max(...data.launches.map((l) => l.time_ns), 0), notes: notes(data) };
}

function notes(data: SideBySide): string[] {
  const all: string[] = [];
  const unready = data.launches.filter((l) => !l.is_ready).length;
  if (unready > 0 && unready < data.launches.length) all.push(`${launchesWord(unready)} never got ready and ${unready === 1 ? "is" : "are"} in no median.`);
  if (data.command_lines > 1) all.push(`The launches have ${count(data.command_lines)} different command lines: they may not be of one command.`);
  if (data.left_out > 0) all.push(`${launchesWord(data.left_out)} ${data.left_out === 1 ? "is" : "are"} left out.`);
  if (data.without_path.length > 0) all.push(`The critical path is not known of ${data.without_path.map(baseName).join(", ")}: no launch was recorded, or no waits (record with --off-cpu).`);
  const lossy = data.launches.filter((l) => l.lost > 0).length;
  if (lossy > 0) all.push(`Events were lost in ${launchesWord(lossy)}: time that they held is in other rows.`);
  return all;
}

function launchesWord(n: number): string {
  return `${count(n)} ${n === 1 ? "launch" : "launches"}`;
}

/** What grew between the fastest and the slowest launch of the scope, and between the groups. */
export function growthOf(data: SideBySide, scope: Scope): Growth {
  const { launches } = data;
  const of = counted(launches, scope);
  const inOrder = [...of].sort((a, b) => launches[a]!.time_ns - launches[b]!.time_ns);
  const [fastest, slowest] = of.length < 2 ? [null, null] : [inOrder[0]!, inOrder[inOrder.length - 1]!];
  const groups = data.groups.map((_, group) => counted(launches, group));
  const spans = data.spans.map((span) => spanGrowth(span, of, fastest, slowest, groups));
  const most = (s: SpanGrowth): number => s.growth ?? s.difference ?? -Infinity;
  spans.sort((a, b) => (most(b) === most(a) ? 0 : most(b) - most(a)));
  const other = (index: number | null): Nanos => (index === null ? 0 : (data.other_spans_ns[index] ?? 0));
  return { fastest, slowest, path: spans.filter((s) => s.name.kind === "path"), children: spans.filter((s) => s.name.kind !== "path"), others: other(slowest) - other(fastest) };
}

function spanGrowth({ name, times_ns }: SpanBeside, of: readonly number[], fastest: number | null, slowest: number | null, groups: readonly number[][]): SpanGrowth {
  const times = name.kind === "path" ? times_ns.map((t) => t ?? 0) : times_ns;
  const at = (index: number | null): Nanos | null => (index === null ? null : (times[index] ?? null));
  const middle = (indices: readonly number[]): Nanos | null => median(indices.flatMap((i) => times[i] ?? []));
  const medians = groups.map(middle);
  const [first, last] = [medians[0] ?? null, medians.length > 1 ? (medians[medians.length - 1] ?? null) : null];
  const [fast, slow] = [at(fastest), at(slowest)];
  return { name, times, fastest: fast, slowest: slow, growth: fast === null || slow === null ? null : slow - fast, median: middle(of), medians, difference: first === null || last === null ? null : last - first };
}

/** Whose span it is. Foreign text. */
export function spanOwner(name: SpanName): string {
  if (name.kind !== "path") return `${name.child} ${count(name.number)}`;
  return name.thread === null || name.thread === name.program ? name.program : `${name.thread} (${name.program})`;
}

export function spanPart(name: SpanName): BarPart | null {
  return name.kind === "path" ? (name.category ?? UNEXPLAINED) : null;
}

/** What the span is. */
export function spanWords(name: SpanName): string {
  const part = spanPart(name);
  if (part !== null) return partWords(part);
  return name.kind === "child_start" ? "fork to ready" : "fork to end";
}

export function scopeWords(groups: readonly string[], scope: Scope): string {
  return scope === "all" ? "all launches" : `${groups[scope] || "ungrouped"} launches`;
}

/** The growth in a sentence: how much, and the span that has most of it. */
export function growthAnswer(data: SideBySide, { fastest, slowest, path }: Growth): Words {
  if (fastest === null || slowest === null) return ["One launch: nothing to compare it with in this group."];
  const names = launchNames(data.launches);
  const whole = data.launches[slowest]!.time_ns - data.launches[fastest]!.time_ns;
  const words: Words = ["The slowest, ", strong(names[slowest]!), ", takes ", strong(duration(whole)), " more than the fastest, ", strong(names[fastest]!), "."];
  const most = path[0];
  if (most?.growth && most.growth > 0 && whole > 0) words.push(" ", strong(duration(most.growth)), ` of it (${percent(most.growth / whole)}) is ${spanWords(most.name)} in `, strong(spanOwner(most.name)), ".");
  return words;
}
