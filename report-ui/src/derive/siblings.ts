// Children of one kind -> bars from their forks on, and how much of their work is the same.
//
// Owns that sentence. What is alike is decided where the recording is read; nothing is concluded from bars that look alike.

import { count, duration, percent } from "../format";
import type { Nanos, SiblingKind, SiblingStart } from "../types";
import { UNEXPLAINED, type LedgerBar } from "./ledger-bars";
import { barOfTimes, median } from "./side-by-side";
import { strong, type Words } from "./words";

export interface SiblingBar {
  child: SiblingStart;
  bar: LedgerBar;
  /** Of its CPU time to the end of its start, what others do too; null where that is not known. */
  share: number | null;
  /** CPU time of that work, and how much all of it is. */
  alike: string;
}

export interface SiblingPicture {
  /** The kind, and how many there are. Foreign text. */
  title: string;
  bars: SiblingBar[];
  longest: Nanos;
  answer: Words;
}

export const END_WORDS: Record<SiblingStart["end"], string> = { ready: "to ready", exited: "to its end; never seen to wait for events", last_alike: "to the last file that others open too; neither ready nor ended" };

/** Null where the work is not all in the start that is drawn, and where the start is drawn to the end of that work: all would be the same. */
function shareAlike({ alike, cpu_ns, time_ns, end }: SiblingStart): number | null {
  return alike && end !== "last_alike" && cpu_ns > 0 && alike.until_ns <= time_ns && alike.cpu_ns <= cpu_ns ? alike.cpu_ns / cpu_ns : null;
}

function alikeText(child: SiblingStart, share: number | null): string {
  if (!child.alike) return "not known";
  const own = duration(child.alike.cpu_ns);
  return share === null ? own : `${own} (${percent(share)})`;
}

export function siblingPicture(kind: SiblingKind): SiblingPicture {
  const bars = kind.children.map((child): SiblingBar => {
    const share = shareAlike(child);
    const bar = barOfTimes(`pid ${child.pid}`, `forked at ${duration(child.forked_ns)}, ${END_WORDS[child.end]}`, child.time_ns, child.times, null);
    // The categories of one thread between two moments leave nothing over.
    return { child, bar: { ...bar, rows: bar.rows.filter((r) => r.part !== UNEXPLAINED) }, share, alike: alikeText(child, share) };
  });
  const how = kind.executed ? "executed" : "forked without exec";
  return { title: `${kind.kind}: ${count(bars.length)} children, ${how}`, bars, longest: Math.max(...bars.map((b) => b.child.time_ns), 0), answer: answer(bars) };
}

function answer(bars: readonly SiblingBar[]): Words {
  const some = bars.filter((b) => b.child.alike !== null);
  if (some.length === 0) return ["What they do alike is not known: no three of them were seen to open the same files one after the other."];
  const middle = (of: (b: SiblingBar) => number): number => median(some.map(of)) ?? 0;
  const who = some.length === bars.length ? "Each does the same work" : `${count(some.length)} of ${count(bars.length)} do the same work`;
  const shares = some.flatMap((b) => b.share ?? []);
  const part = shares.length === some.length ? `, ${percent(median(shares) ?? 0)} of what a child runs until it is ready or ends` : "";
  const words: Words = [`${who}: in the middle `, strong(`${duration(middle((b) => b.child.alike!.cpu_ns))} of CPU`), `${part}, in ${count(middle((b) => b.child.alike!.steps))} steps from one file to the next. Together `, strong(duration(some.reduce((sum, b) => sum + b.child.alike!.cpu_ns, 0))), "."];
  const doubtful = some.reduce((sum, b) => sum + b.child.alike!.doubtful_ns, 0);
  if (doubtful > 0) words.push(` A further ${duration(doubtful)} can be work of each child's own.`);
  return words;
}
