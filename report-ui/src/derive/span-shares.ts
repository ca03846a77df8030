// Many spans under one pixel -> the share of each state in it.
//
// Owns the level of detail: a picture costs as much as it has pixels, however many spans lie under them. Sums of blocks are made
// once; a pixel over many spans takes the difference of two of them and looks only at the spans at its edges.

import type { Line, Timeline } from "./timeline";

/** Spans of a block. */
const BLOCK = 64;

export interface Shares {
  timeline: Timeline;
  /** For each block and state the time of all blocks before it. */
  sums: Float64Array;
  /** Scratch: time by state of the pixel at hand. */
  time: Float64Array;
}

export function sharesOf(timeline: Timeline): Shares {
  const { starts, states, page } = timeline;
  const kinds = page.states.length;
  const blocks = Math.ceil(starts.length / BLOCK);
  const sums = new Float64Array((blocks + 1) * kinds);
  for (let b = 0; b < blocks; b++) {
    const [from, to] = [b * kinds, (b + 1) * kinds];
    for (let s = 0; s < kinds; s++) sums[to + s] = sums[from + s]!;
    for (let i = b * BLOCK, end = Math.min(starts.length - 1, i + BLOCK); i < end; i++) {
      // The entry that ends a line has no state, and no length.
      const state = states[i]!;
      if (state < kinds) sums[to + state]! += starts[i + 1]! - starts[i]!;
    }
  }
  return { timeline, sums, time: new Float64Array(kinds) };
}

export interface ColumnSink {
  /** Pixels that one state has whole. */
  run: (x0: number, x1: number, state: number) => void;
  /** A pixel with several states, or one in part: time by state, of `whole`. */
  mixed: (x: number, time: Float64Array, whole: number) => void;
}

/** Goes through the pixels of a line from `t0` to `t1`, `width` of them. */
export function columnsOf(shares: Shares, line: Line, t0: number, t1: number, width: number, sink: ColumnSink): void {
  const { starts, states } = shares.timeline;
  const step = (t1 - t0) / width;
  const [begin, end] = [starts[line.first]!, starts[line.last]!];
  if (line.first === line.last || begin >= t1 || end <= t0) return;
  let x = Math.max(0, Math.floor((begin - t0) / step));
  const stop = Math.min(width, Math.ceil((end - t0) / step));
  let i = firstSpan(starts, line.first, line.last, t0 + x * step);
  while (x < stop) {
    const [a, b] = [t0 + x * step, t0 + (x + 1) * step];
    if (starts[i + 1]! <= a) i = firstSpan(starts, i, line.last, a);
    if (starts[i]! <= a && starts[i + 1]! >= b) {
      const until = Math.max(x + 1, Math.min(stop, Math.floor((starts[i + 1]! - t0) / step)));
      sink.run(x, until, states[i]!);
      x = until;
      continue;
    }
    i = addUp(shares, i, line.last, a, b);
    sink.mixed(x, shares.time, step);
    x++;
  }
}

/** The last span that begins at or before `at`, from `low` on: near ones are found in a few steps. */
function firstSpan(starts: Float64Array, low: number, last: number, at: number): number {
  let reach = 1;
  while (low + reach < last && starts[low + reach]! <= at) {
    low += reach;
    reach *= 2;
  }
  let high = Math.min(low + reach, last);
  while (low + 1 < high) {
    const middle = (low + high) >> 1;
    if (starts[middle]! <= at) low = middle;
    else high = middle;
  }
  return low;
}

/** Time by state from `a` to `b`, beginning with span `i`; gives the span at `b`. */
function addUp({ timeline: { starts, states, page }, sums, time }: Shares, i: number, last: number, a: number, b: number): number {
  const kinds = page.states.length;
  time.fill(0);
  const end = firstSpan(starts, i, last, b);
  const add = (span: number): void => {
    const [from, to] = [Math.max(starts[span]!, a), Math.min(starts[span + 1]!, b)];
    if (to > from && span < last) time[states[span]!]! += to - from;
  };
  // Whole blocks between the first span and the last, which may reach beyond the pixel.
  const firstBlock = Math.ceil((i + 1) / BLOCK);
  const lastBlock = Math.floor(end / BLOCK);
  if (firstBlock < lastBlock) {
    for (let span = i; span < firstBlock * BLOCK; span++) add(span);
    for (let s = 0; s < kinds; s++) time[s]! += sums[lastBlock * kinds + s]! - sums[firstBlock * kinds + s]!;
    for (let span = lastBlock * BLOCK; span <= end; span++) add(span);
  } else for (let span = i; span <= end; span++) add(span);
  return end;
}

/** Time by state of a line from `from` to `to`. */
export function timesBetween(shares: Shares, line: Line, from: number, to: number): Float64Array {
  if (line.first === line.last) return new Float64Array(shares.time.length);
  addUp(shares, firstSpan(shares.timeline.starts, line.first, line.last, from), line.last, from, to);
  return shares.time.slice();
}
