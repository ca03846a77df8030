// Paints the boxes of a flame graph onto a canvas.
//
// Owns how boxes are filled and their text. Leaves where they lie to `derive/flame-tree.ts`, events to
// `flame-graph.ts`, and which colour a box has to what the graph is of.

import type { Box } from "../derive/flame-tree";
import { displayText } from "../display-text";
import type { PlaceKind } from "../types";

/** Height of a row in CSS pixels. */
export const ROW = 18;
/** Files with a colour of their own; the style sheet has as many. */
export const FILE_COLOURS = 5;
/** Narrower boxes have no text, in CSS pixels. */
const TEXT_FROM = 28;
const PADDING = 4;

const KIND_VARIABLES: Partial<Record<PlaceKind, string>> = { process: "process", whole: "process", folded: "folded", unknown: "folded", kernel: "kernel", vdso: "kernel", generated: "generated" };

/** The custom property of a place's colour; `files` are those with a colour of their own. */
export function placeVariable(kind: PlaceKind, fileRank: number): string {
  const name = KIND_VARIABLES[kind];
  return `--flame-${name ?? (fileRank >= 0 ? fileRank : "file")}`;
}

export interface FlamePaint {
  fill: (node: number) => string;
  text: string;
  found: string;
  font: string;
}

/** Colours of the style sheet as it is now; `colour` names the custom property of a node's. */
export function flamePaint(colour: (node: number) => string): FlamePaint {
  const style = getComputedStyle(document.documentElement);
  const known = new Map<string, string>();
  const get = (name: string): string => {
    let value = known.get(name);
    if (value === undefined) known.set(name, (value = style.getPropertyValue(name).trim()));
    return value;
  };
  return {
    fill: (node) => get(colour(node)),
    text: get("--text"),
    found: get("--flame-found"),
    font: `12px ${getComputedStyle(document.body).fontFamily}`,
  };
}

export interface Scene {
  boxes: readonly Box[];
  /** Name of a node. */
  name: (node: number) => string;
  /** Callers of the node that is zoomed to are paler. */
  focusRow: number;
  /** Nodes that the search found. */
  found: Uint8Array;
  isSearching: boolean;
}

/** Paints at the canvas's own size; `width` is in CSS pixels. */
export function paintFlames(context: CanvasRenderingContext2D, width: number, ratio: number, paint: FlamePaint, scene: Scene): void {
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, context.canvas.width, context.canvas.height);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.font = paint.font;
  context.textBaseline = "middle";
  for (const box of scene.boxes) {
    const [x, y] = [box.from * width, box.row * ROW];
    const boxWidth = (box.to - box.from) * width;
    // A gap between boxes, but none that would eat a narrow one.
    const drawn = boxWidth > 3 ? boxWidth - 1 : Math.max(boxWidth, 0.5);
    const isFound = scene.found[box.node] === 1;
    context.globalAlpha = box.row < scene.focusRow ? 0.55 : scene.isSearching && !isFound ? 0.45 : 1;
    context.fillStyle = isFound ? paint.found : paint.fill(box.node);
    context.fillRect(x, y, drawn, ROW - 1);
    context.globalAlpha = 1;
    if (boxWidth < TEXT_FROM) continue;
    context.fillStyle = paint.text;
    const text = fitted(context, displayText(scene.name(box.node)), drawn - 2 * PADDING);
    if (text !== "") context.fillText(text, x + PADDING, y + ROW / 2);
  }
}

/** As much of the text as has room, with a mark where it goes on. */
function fitted(context: CanvasRenderingContext2D, text: string, room: number): string {
  // No letter is narrower than 2 pixels at this size; the rest need not be measured.
  const most = text.slice(0, Math.ceil(room / 2));
  const width = context.measureText(most).width;
  if (width <= room && most === text) return text;
  let [fits, fails] = [0, most.length + 1];
  while (fits + 1 < fails) {
    const middle = (fits + fails) >> 1;
    if (context.measureText(`${most.slice(0, middle)}…`).width <= room) fits = middle;
    else fails = middle;
  }
  return fits === 0 ? "" : `${most.slice(0, fits)}…`;
}
