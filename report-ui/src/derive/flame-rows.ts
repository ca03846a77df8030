// The rows of a flame graph -> the graph of some of them.
//
// Owns decoding and its checks, which part of a row lies in a time, and the trees of that part. They have the nodes of the whole
// trees, so what is folded there is folded here too, and both directions add up to the same. Rows are decoded when they are first
// wanted, not when the page opens: there may be hundreds of thousands.

import type { FlameGraph, FlameThreads, FlameTree, FlameWeight, Nanos } from "../types";
import { numbersOf } from "./columns";
import { ROOT, type Direction } from "./flame-tree";

/** Its message is meant for the reader. */
export class BrokenRows extends Error {}

export interface TimedRows {
  /** In the order of time. */
  at: Float64Array;
  weight: Float64Array;
  /** Index into the threads of the flame graphs. */
  thread: Float64Array;
  /** The node of each tree that has the row as its own. */
  nodes: Record<Direction, Float64Array>;
  /** Whether weights are times, which a row lasts from `at` on. */
  lasts: boolean;
}

const LASTING: ReadonlySet<FlameWeight> = new Set(["off_cpu", "fault_time"]);

/** The rows of a graph of a page with so many threads; null where it has none. Throws `BrokenRows`. */
export function readRows(graph: FlameGraph, threads: number): TimedRows | null {
  const { rows, callees, callers } = graph;
  if (!rows || !callees || !callers) return null;
  const { count, place_count } = rows;
  const place = column(rows.places, count, place_count, "places");
  const nodes = (text: string, tree: FlameTree): Float64Array => {
    const ofPlace = column(text, place_count, tree.depth.length, "nodes");
    return place.map((p) => ofPlace[p]!);
  };
  let at = rows.first_ns;
  return {
    at: column(rows.gaps, count, Infinity, "gaps").map((gap) => (at += gap)),
    weight: column(rows.weights, count, Infinity, "weights"),
    thread: column(rows.threads, count, threads, "threads"),
    nodes: { callees: nodes(rows.callees, callees), callers: nodes(rows.callers, callers) },
    lasts: LASTING.has(graph.weight),
  };
}

function column(text: string, count: number, below: number, what: string): Float64Array {
  let numbers: Float64Array | null;
  try {
    numbers = numbersOf(text, count);
  } catch (cause) {
    throw new BrokenRows(`The column of ${what} is no base64.`, { cause });
  }
  if (!numbers) throw new BrokenRows(`The column of ${what} has another length than it says.`);
  const bad = numbers.findIndex((n) => n >= below);
  if (bad >= 0) throw new BrokenRows(`Entry ${bad} of ${what} is ${numbers[bad]}, of which there are ${below}.`);
  return numbers;
}

/** What is wanted of the rows; null for all. */
export interface Wanted {
  /** A moment where both are one. */
  time: { from: Nanos; to: Nanos } | null;
  /** By number of the thread, whether it is wanted. */
  threads: Uint8Array | null;
}

/** Which threads belong to a process that is wanted and, where `tid` is one, are this thread. */
export function threadsWanted(threads: FlameThreads, nameOf: (frame: number) => string, tid: number | null, isWanted: (pid: number, name: string) => boolean): Uint8Array {
  const name = new Map<number, string>();
  return Uint8Array.from(threads.pid, (pid, i) => {
    const frame = threads.process[i]!;
    if (!name.has(frame)) name.set(frame, nameOf(frame));
    return (tid === null || threads.tid[i] === tid) && isWanted(pid, name.get(frame)!) ? 1 : 0;
  });
}

export interface Part {
  /** Rows of which something is in it. */
  rows: number;
  /** What they have in it. */
  total: number;
  trees: Record<Direction, FlameTree>;
}

/** The trees of what is wanted. Of a row that lasts beyond the time, what lies within it counts; of a moment all of the row that it lies in. */
export function partOf(graph: FlameGraph, rows: TimedRows, { time, threads }: Wanted): Part {
  const { at, weight, thread, lasts } = rows;
  const own = { callees: new Float64Array(graph.callees!.depth.length), callers: new Float64Array(graph.callers!.depth.length) };
  const isMoment = time !== null && time.from === time.to;
  let count = 0;
  let total = 0;
  for (let i = 0; i < at.length; i++) {
    if (time && at[i]! > time.to) break;
    if (threads && threads[thread[i]!] === 0) continue;
    let amount = weight[i]!;
    if (time) {
      const end = lasts ? at[i]! + amount : at[i]!;
      if (end < time.from) continue;
      if (lasts && !isMoment) amount = Math.min(end, time.to) - Math.max(at[i]!, time.from);
      if (amount <= 0) continue;
    }
    count++;
    total += amount;
    own.callees[rows.nodes.callees[i]!]! += amount;
    own.callers[rows.nodes.callers[i]!]! += amount;
  }
  return { rows: count, total, trees: { callees: treeOf(graph.callees!, own.callees), callers: treeOf(graph.callers!, own.callers) } };
}

/** A tree of the same nodes with other weights: those with none are left out, and children come heaviest first again. */
export function treeOf(tree: FlameTree, own: Float64Array): FlameTree {
  const nodes = tree.depth.length;
  const weight = Float64Array.from(own);
  const parent = new Int32Array(nodes);
  const path: number[] = [];
  for (let node = 0; node < nodes; node++) {
    path.length = tree.depth[node]!;
    parent[node] = path[path.length - 1] ?? ROOT;
    path.push(node);
  }
  for (let node = nodes - 1; node > 0; node--) weight[parent[node]!]! += weight[node]!;
  const children = new Map<number, number[]>();
  for (let node = 1; node < nodes; node++) {
    if (weight[node] === 0) continue;
    const siblings = children.get(parent[node]!);
    if (siblings) siblings.push(node);
    else children.set(parent[node]!, [node]);
  }
  const made: FlameTree = { depth: [], frame: [], weight: [], smallest: tree.smallest };
  const next = [ROOT];
  for (let node = next.pop(); node !== undefined; node = next.pop()) {
    made.depth.push(tree.depth[node]!);
    made.frame.push(tree.frame[node]!);
    made.weight.push(weight[node]!);
    // Last in is first out: the lightest goes in first.
    const below = children.get(node);
    if (below) next.push(...below.sort((a, b) => weight[a]! - weight[b]! || b - a));
  }
  return made;
}
