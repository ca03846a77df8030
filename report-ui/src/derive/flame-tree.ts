// The columns of a flame graph -> where its boxes lie, which of them a text finds, and what each
// function has.
//
// Owns the arithmetic on trees; a node is its index in the columns, so a subtree is a range of them.

import type { FlameGraphs, FlameTree } from "../types";

export const ROOT = 0;

/** What nodes are called. */
export type FlameNames = Pick<FlameGraphs, "frames" | "places">;
/** From the processes to the innermost functions, or from these outwards. */
export type Direction = "callees" | "callers";

export interface FlameIndex {
  tree: FlameTree;
  /** Caller; the root is its own. */
  parent: Int32Array;
  /** Index after the last node below. */
  end: Int32Array;
  /** Weight to the left of the node. */
  left: Float64Array;
  /** Weight that no child has. */
  own: Float64Array;
}

export function indexTree(tree: FlameTree): FlameIndex {
  const nodes = tree.depth.length;
  const parent = new Int32Array(nodes);
  const end = new Int32Array(nodes).fill(nodes);
  const left = new Float64Array(nodes);
  const own = Float64Array.from(tree.weight);
  // For each level of the node at hand the one it goes through, and where its next child begins.
  const path: number[] = [ROOT];
  const next: number[] = [0];
  for (let node = 1; node < nodes; node++) {
    const depth = tree.depth[node]!;
    for (let d = depth; d < path.length; d++) end[path[d]!] = node;
    path.length = depth;
    next.length = depth;
    const caller = path[depth - 1]!;
    parent[node] = caller;
    left[node] = next[depth - 1]!;
    next[depth - 1]! += tree.weight[node]!;
    own[caller]! -= tree.weight[node]!;
    path.push(node);
    next.push(left[node]!);
  }
  return { tree, parent, end, left, own };
}

/** From the node outwards to the root. */
export function callersOf(index: FlameIndex, node: number): number[] {
  const all: number[] = [];
  for (let n = node; n !== ROOT; ) all.push((n = index.parent[n]!));
  return all;
}

export interface Box {
  node: number;
  /** From the top. */
  row: number;
  /** Fractions of the picture's width. */
  from: number;
  to: number;
}

/** Nearest callers of the node that is zoomed to which have a row of their own; the root always has one. */
const NEAREST_CALLERS = 6;
/** Rows below the node that is zoomed to; deeper ones show when a lower node is zoomed to. */
export const MOST_ROWS = 200;

/** The boxes of a picture in which `focus` has the whole width; those narrower than `narrowest` are left out. */
export function boxesOf(index: FlameIndex, focus: number, narrowest: number): { boxes: Box[]; rows: number; isCut: boolean } {
  const { tree, end, left } = index;
  const callers = callersOf(index, focus);
  const nearest = callers.slice(0, NEAREST_CALLERS);
  if (callers.length > NEAREST_CALLERS) nearest.push(ROOT);
  nearest.reverse();
  const boxes = nearest.map((node, row): Box => ({ node, row, from: 0, to: 1 }));
  const [from, whole, depth] = [left[focus]!, tree.weight[focus]!, tree.depth[focus]!];
  let rows = boxes.length;
  let isCut = false;
  for (let node = focus; node < end[focus]!; ) {
    const width = node === focus ? 1 : whole > 0 ? tree.weight[node]! / whole : 0;
    const below = tree.depth[node]! - depth;
    if (width < narrowest || below >= MOST_ROWS) {
      isCut ||= below >= MOST_ROWS;
      node = end[node]!;
      continue;
    }
    const at = whole > 0 ? (left[node]! - from) / whole : 0;
    boxes.push({ node, row: nearest.length + below, from: at, to: Math.min(at + width, 1) });
    rows = Math.max(rows, nearest.length + below + 1);
    node++;
  }
  return { boxes, rows, isCut };
}

/** The nodes whose function or file has this in its name, in any case, and the weight below them, each row once. */
export function found(index: FlameIndex, graphs: FlameNames, text: string): { nodes: Uint8Array; weight: number; count: number } {
  const { tree, end } = index;
  const wanted = text.trim().toLowerCase();
  const nodes = new Uint8Array(tree.depth.length);
  let weight = 0;
  let count = 0;
  if (wanted === "") return { nodes, weight, count };
  const { frames, places } = graphs;
  const frameFits = frames.name.map((name, i) => {
    const { kind, name: file } = places[frames.place[i]!]!;
    return kind !== "whole" && kind !== "folded" && (name.toLowerCase().includes(wanted) || file.toLowerCase().includes(wanted));
  });
  let until = 0;
  for (let node = 0; node < nodes.length; node++) {
    if (!frameFits[tree.frame[node]!]) continue;
    nodes[node] = 1;
    count++;
    if (node < until) continue;
    weight += tree.weight[node]!;
    until = end[node]!;
  }
  return { nodes, weight, count };
}

export interface FlameFunction {
  frame: number;
  /** Weight of its own. */
  own: number;
  /** With what it called, each row once, however often it calls itself. */
  all: number;
}

/** What each function has in a tree of callees; what is folded away is a function too. */
export function functionsOf(index: FlameIndex): FlameFunction[] {
  const { tree, end, own } = index;
  const byFrame = new Map<number, FlameFunction>();
  /** For each frame, where the outermost of its nodes ends that holds the node at hand. */
  const until = new Map<number, number>();
  for (let node = 1; node < tree.depth.length; node++) {
    const frame = tree.frame[node]!;
    let f = byFrame.get(frame);
    if (!f) byFrame.set(frame, (f = { frame, own: 0, all: 0 }));
    f.own += own[node]!;
    if (node < (until.get(frame) ?? 0)) continue;
    f.all += tree.weight[node]!;
    until.set(frame, end[node]!);
  }
  return [...byFrame.values()].sort((a, b) => b.own - a.own || b.all - a.all);
}

/** The files with most weight of their own, heaviest first: those that get a colour of their own. */
export function heaviestFiles(index: FlameIndex, graphs: FlameNames, most: number): number[] {
  const sums = new Map<number, number>();
  for (const { frame, own } of functionsOf(index)) {
    const place = graphs.frames.place[frame]!;
    if (graphs.places[place]!.kind === "file") sums.set(place, (sums.get(place) ?? 0) + own);
  }
  return [...sums].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, most).map(([place]) => place);
}

/** The node that an arrow key leads to: caller, heaviest callee, or the one beside it. */
export function neighbour(index: FlameIndex, node: number, key: "ArrowUp" | "ArrowDown" | "ArrowLeft" | "ArrowRight"): number {
  const { parent, end } = index;
  if (key === "ArrowUp") return parent[node]!;
  if (key === "ArrowDown") return node + 1 < end[node]! ? node + 1 : node;
  if (node === ROOT) return node;
  const last = end[parent[node]!]!;
  if (key === "ArrowRight") return end[node]! < last ? end[node]! : node;
  for (let before = parent[node]! + 1; before < node; before = end[before]!) if (end[before] === node) return before;
  return node;
}
