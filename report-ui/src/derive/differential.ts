// A differential flame graph -> trees of one side's widths, what each node changed by, and its colour.
//
// Owns the rule of the colours. As in Brendan Gregg's differential flame graphs a box is red where there is
// more after and blue where there is less, for what is its own, and the stronger, the larger the change is beside
// the largest of all boxes. Figures are those of one recording or one second; nothing else makes the sides equal.

import type { DifferentialGraph, DifferentialTree } from "../generated/comparison-page";
import type { FlameTree } from "../types";
import { functionsOf, indexTree, ROOT, type Direction } from "./flame-tree";

export type Side = "before" | "after";
/** What a colour tells of a box: what no callee of it has, or all of it. */
export type Of = "own" | "all";

/** Figures of the nodes of both sides together, a column each, of one recording or second. */
export interface Differences {
  before: Float64Array;
  after: Float64Array;
  ownBefore: Float64Array;
  ownAfter: Float64Array;
}

export function differences(graph: DifferentialGraph, tree: DifferentialTree): Differences {
  const scaled = (column: readonly number[], of: number): number[] => column.map((w) => (of > 0 ? w / of : 0));
  const [before, after] = [scaled(tree.before, graph.before_of), scaled(tree.after, graph.after_of)];
  return { before: Float64Array.from(before), after: Float64Array.from(after), ownBefore: ownOf(tree, before), ownAfter: ownOf(tree, after) };
}

function ownOf(tree: DifferentialTree, weight: number[]): Float64Array {
  const { own } = indexTree({ depth: tree.depth, frame: tree.frame, weight, smallest: 0 });
  // Sums were divided: what is left of nothing is not less than nothing.
  return own.map((w) => Math.max(w, 0));
}

/** After minus before of a node. */
export function change(d: Differences, node: number, of: Of): number {
  return of === "own" ? d.ownAfter[node]! - d.ownBefore[node]! : d.after[node]! - d.before[node]!;
}

export interface SideTree {
  /** Nodes that have something on this side, and the root. */
  tree: FlameTree;
  /** Their numbers in the tree of both. */
  nodes: number[];
}

export function sideTree(tree: DifferentialTree, weight: Float64Array): SideTree {
  const nodes: number[] = [];
  for (let node = 0; node < tree.depth.length; node++) if (node === ROOT || weight[node]! > 0) nodes.push(node);
  const column = (values: ArrayLike<number>): number[] => nodes.map((n) => values[n]!);
  return { tree: { depth: column(tree.depth), frame: column(tree.frame), weight: column(weight), smallest: tree.smallest_share * weight[ROOT]! }, nodes };
}

/** Steps of a colour: 0 for no change worth one, to 4 for the largest; negative for less. */
export const STEPS = 4;
/** From which share of the largest change on a change has step 1, 2, 3, 4. */
export const STEP_FROM = [0.01, 0.05, 0.2, 0.5] as const;

/** The largest change of any node, which has the strongest colour. */
export function largestChange(d: Differences, of: Of): number {
  let largest = 0;
  for (let node = 0; node < d.before.length; node++) largest = Math.max(largest, Math.abs(change(d, node, of)));
  return largest;
}

export function stepOf(value: number, largest: number): number {
  if (largest <= 0) return 0;
  const share = Math.abs(value) / largest;
  const step = STEP_FROM.filter((from) => share >= from).length;
  return value < 0 ? -step : step;
}

/** What is only on one side: weight of the outermost nodes that the other has nothing of. */
export function onlyThere(tree: DifferentialTree, here: Float64Array, there: Float64Array): number {
  let sum = 0;
  // Depth below which everything belongs to a node that was counted.
  let counted = Infinity;
  for (let node = 0; node < tree.depth.length; node++) {
    const depth = tree.depth[node]!;
    if (depth > counted) continue;
    counted = Infinity;
    if (here[node]! > 0 && there[node]! === 0) {
      sum += here[node]!;
      counted = depth;
    }
  }
  return sum;
}

export interface FunctionDifference {
  frame: number;
  ownBefore: number;
  ownAfter: number;
  allBefore: number;
  allAfter: number;
}

/** What each function has on both sides, the largest changes of their own first. */
export function functionDifferences(tree: DifferentialTree, d: Differences): FunctionDifference[] {
  const byFrame = new Map<number, FunctionDifference>();
  const of = (frame: number): FunctionDifference => {
    let known = byFrame.get(frame);
    if (!known) byFrame.set(frame, (known = { frame, ownBefore: 0, ownAfter: 0, allBefore: 0, allAfter: 0 }));
    return known;
  };
  const functions = (weight: Float64Array): ReturnType<typeof functionsOf> => functionsOf(indexTree(sideTree(tree, weight).tree));
  for (const f of functions(d.before)) Object.assign(of(f.frame), { ownBefore: Math.max(f.own, 0), allBefore: f.all });
  for (const f of functions(d.after)) Object.assign(of(f.frame), { ownAfter: Math.max(f.own, 0), allAfter: f.all });
  const size = (f: FunctionDifference): number => Math.abs(f.ownAfter - f.ownBefore);
  return [...byFrame.values()].sort((a, b) => size(b) - size(a) || b.allBefore + b.allAfter - a.allBefore - a.allAfter);
}

/** Whether the change of each node may be chance: its interval holds zero. Null where nothing is known of chance. */
export function chanceOf(tree: DifferentialTree, of: Of): Uint8Array | null {
  if (!tree.chance) return null;
  const isChance = new Uint8Array(tree.depth.length);
  for (const node of tree.chance[of]) isChance[node] = 1;
  return isChance;
}

/** What colours tell: of inverted graphs always all of a box, because its own is only what its process has. */
export function colourOf(direction: Direction, chosen: Of): Of {
  return direction === "callers" ? "all" : chosen;
}
