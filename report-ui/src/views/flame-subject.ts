// What a flame graph is of: the trees of one recording, or those of two sets laid over each other.
//
// Owns what the picture needs to know of either. Leaves drawing, zoom, search and keys to
// `flame-graph.ts`, and the two kinds to `recorded-flames.ts` and `differential-flames.ts`.

import type { Direction, FlameIndex, FlameNames } from "../derive/flame-tree";
import type { Selection } from "../selection";
import type { FlameWeight, Unavailable, Unit } from "../types";
import type { Child } from "./element";
import type { TooltipLine } from "./tooltip";

export interface FlameChoice {
  weight: FlameWeight;
  label: string;
  unit: Unit;
  /** Why it cannot be drawn; null where it can. */
  unavailable: Unavailable | null;
}

/** One weight in one direction. */
export interface FlamePicture {
  index: FlameIndex;
  /** What the widths add up to. */
  total: number;
  /** The words for that: "all". */
  whole: string;
  /** That it is of what is selected alone, and what that lacks, in sentences; null where it is of everything. */
  part: string | null;
  /** What is drawn, in sentences. */
  what: string;
  /** Custom property of a node's colour. */
  colour: (node: number) => string;
  colourKeys: { variable: string; text: Child }[];
  /** Amounts of a node. */
  lines: (node: number) => TooltipLine[];
}

export interface FlameSubject {
  title: string;
  names: FlameNames;
  choices: FlameChoice[];
  /** How to read the picture, beside what is true of all flame graphs. */
  hint: string;
  /** `selected` is what another part has selected. */
  picture: (choice: FlameChoice, direction: Direction, selected: Selection | null) => FlamePicture;
  /** The same as a table. */
  table: (choice: FlameChoice, selected: Selection | null) => HTMLElement;
  /** Choices of its own; they call this to be drawn again. */
  controls: (changed: () => void) => Child[];
}
