// The columns of the timeline -> lines of spans that can be looked into, and who woke whom.
//
// Owns decoding, the checks without which a picture could fail, and finding what is at a moment. A span is an index into `starts`
// and `states`; each line has one entry more than spans, whose start is where its last span ends.

import type { Nanos, PageTimeline, TimelineDevice, TimelineLine } from "../types";
import { bytesOf, numbersOf } from "./columns";
import { firstAtOrAfter } from "./file-reads";

/** State of the entry that ends a line. */
const END = 255;

export interface Line {
  /** Of a thread; null for a device. */
  thread: TimelineLine | null;
  device: TimelineDevice | null;
  /** Index of its first span, and after its last. */
  first: number;
  last: number;
}

export interface Timeline {
  page: PageTimeline;
  /** Threads, then devices. */
  lines: Line[];
  starts: Float64Array;
  states: Uint8Array;
  wakes: { at: Float64Array; waker: Float64Array; woken: Float64Array };
  /** Null where there is none. A thread of -1 is not on the page. */
  path: { from: Float64Array; to: Float64Array; thread: Int32Array; state: Uint8Array } | null;
  /** The first begin and the last end of all. */
  from: Nanos;
  to: Nanos;
}

export class BrokenTimeline extends Error {}

function need<T>(value: T | null, what: string): T {
  if (value === null) throw new BrokenTimeline(`The timeline has a column of ${what} of another length than it says.`);
  return value;
}

function bytesFor(text: string, count: number, below: number, what: string): Uint8Array {
  const bytes = bytesOf(text);
  if (bytes.length !== count) need(null, what);
  const bad = bytes.findIndex((b) => b >= below);
  if (bad >= 0) throw new BrokenTimeline(`Entry ${bad} of ${what} names ${bytes[bad]}, of which there are ${below}.`);
  return bytes;
}

function indices(text: string, count: number, below: number, what: string): Float64Array {
  const numbers = need(numbersOf(text, count), what);
  const bad = numbers.findIndex((n) => n >= below);
  if (bad >= 0) throw new BrokenTimeline(`Entry ${bad} of ${what} names ${numbers[bad]}, of which there are ${below}.`);
  return numbers;
}

/** Sums of lengths, each begun where the one before ends. */
function running(first: number, gaps: Float64Array): Float64Array {
  let at = first;
  return gaps.map((gap) => (at += gap));
}

export function readTimeline(page: PageTimeline): Timeline {
  const { spans, wakes, threads, devices } = page;
  const states = bytesFor(spans.states, spans.count, Math.min(page.states.length, END), "states");
  const lengths = need(numbersOf(spans.lengths, spans.count), "lengths");
  const owners: (TimelineLine | TimelineDevice)[] = [...threads, ...devices];
  const listed = owners.reduce((sum, o) => sum + o.spans, 0);
  if (listed !== spans.count) throw new BrokenTimeline(`The lines have ${listed} spans, of which there are ${spans.count}.`);
  const bad = threads.findIndex((t) => !(t.process >= 0 && t.process < page.processes.length));
  if (bad >= 0) throw new BrokenTimeline(`Thread ${bad} names process ${threads[bad]!.process}, of which there are ${page.processes.length}.`);
  const starts = new Float64Array(spans.count + owners.length);
  const all = new Uint8Array(spans.count + owners.length);
  let [from, to, at, next] = [Infinity, -Infinity, 0, 0];
  const lines = owners.map((owner, i): Line => {
    const first = at;
    let t = owner.began_ns;
    for (let s = 0; s < owner.spans; s++) {
      starts[at] = t;
      all[at++] = states[next]!;
      t += lengths[next++]!;
    }
    starts[at] = t;
    all[at] = END;
    from = Math.min(from, owner.began_ns);
    to = Math.max(to, t);
    const line = { first, last: at++ };
    return i < threads.length ? { thread: owner as TimelineLine, device: null, ...line } : { thread: null, device: owner as TimelineDevice, ...line };
  });
  const count = threads.length;
  return {
    page,
    lines,
    starts,
    states: all,
    wakes: {
      at: running(wakes.first_ns, need(numbersOf(wakes.gaps, wakes.count), "wake-ups")),
      waker: indices(wakes.wakers, wakes.count, count, "wakers"),
      woken: indices(wakes.woken, wakes.count, count, "threads that were woken"),
    },
    path: page.path && readPath(page.path, count, page.states.length),
    from: Number.isFinite(from) ? from : 0,
    to: Number.isFinite(to) ? to : 0,
  };
}

function readPath(path: NonNullable<PageTimeline["path"]>, threads: number, states: number): NonNullable<Timeline["path"]> {
  const gaps = need(numbersOf(path.gaps, path.count), "steps");
  const lengths = need(numbersOf(path.lengths, path.count), "steps");
  const from = new Float64Array(path.count);
  let at = path.from_ns;
  const to = lengths.map((length, i) => {
    from[i] = at + gaps[i]!;
    return (at = from[i]! + length);
  });
  const thread = Int32Array.from(indices(path.threads, path.count, threads + 1, "threads of the path"), (n) => (n === threads ? -1 : n));
  return { from, to, thread, state: bytesFor(path.states, path.count, states, "states of the path") };
}

/** The last span of a line that begins at or before `at`; null outside of the line. */
export function spanAt({ starts }: Timeline, line: Line, at: Nanos): number | null {
  let [low, high] = [line.first, line.last];
  if (low === high || at < starts[low]! || at >= starts[high]!) return null;
  while (low + 1 < high) {
    const middle = (low + high) >> 1;
    if (starts[middle]! <= at) low = middle;
    else high = middle;
  }
  return low;
}

/** The span of a thread that begins and ends at these moments. */
export function exactSpan(timeline: Timeline, pid: number, tid: number, { from, to }: { from: Nanos; to: Nanos }): { line: number; span: number } | null {
  const { page, lines, starts } = timeline;
  for (const [line, one] of lines.entries()) {
    if (one.thread?.tid !== tid || page.processes[one.thread.process]!.pid !== pid) continue;
    const span = spanAt(timeline, one, from);
    if (span !== null && starts[span] === from && starts[span + 1] === to) return { line, span };
  }
  return null;
}

/** The wake-up that ended this span of a thread; that at its begin ended the one before. */
export function wakeOf(timeline: Timeline, thread: number, span: number): number | null {
  const { at, woken } = timeline.wakes;
  const [from, to] = [timeline.starts[span]!, timeline.starts[span + 1]!];
  // A wake-up is recorded a moment before the thread stands in a run queue, so it may come before the end of the wait.
  for (let i = firstAtOrAfter(at, from); i < at.length && at[i]! <= to; i++) if (woken[i] === thread && at[i]! > from) return i;
  return null;
}
