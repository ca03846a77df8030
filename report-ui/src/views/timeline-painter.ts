// Paints the lines of the timeline: states into an image's memory, and everything else over them.
//
// Owns the geometry of a frame. What it costs depends on the pixels, not on the events: states are added up per pixel, arrows are
// drawn where few enough are in view, and what lies on one pixel is drawn once.

import { decimalTicks } from "../derive/axis";
import { firstAtOrAfter } from "../derive/file-reads";
import { columnsOf, type Shares } from "../derive/span-shares";
import type { StateKind } from "../derive/timeline-states";
import { timeOnAxis } from "../format";
import { displayText } from "../display-text";
import { pixelOf } from "./palette";

export const AXIS = 34;
export const ROW = 18;
/** Height of the states within a row. */
const BAR = 13;
const BAR_TOP = 3;
/** Wake-ups in view up to which they are arrows. */
export const MOST_ARROWS = 500;
/** Changes of the critical path from thread to thread up to which lines join its pieces: more would cover the threads. */
export const MOST_JOINTS = 150;

export interface Row {
  kind: "process" | "thread" | "device";
  /** Of a process its number, else that of the line. */
  index: number;
  label: string;
}

export interface ReadTicks {
  t: Float64Array;
  asker: Uint8Array;
}

export interface TimelineColours {
  states: string[];
  askers: string[];
  ground: string;
  band: string;
  text: string;
  quiet: string;
  line: string;
  page: string;
  accent: string;
  font: string;
}

export interface Scene {
  shares: Shares;
  kinds: readonly StateKind[];
  rows: readonly Row[];
  /** By process. */
  reads: readonly ReadTicks[];
  view: { from: number; to: number };
  /** First row in sight, in CSS pixels from the top of the first. */
  scroll: number;
  left: number;
  width: number;
  height: number;
  ratio: number;
  colours: TimelineColours;
  selected: { line: number; span: number } | null;
  /** Time that another part selected. */
  marked: { from: number; to: number } | null;
  showsPath: boolean;
  showsArrows: boolean;
}

export interface Painted {
  /** Wake-ups in view, drawn or not. */
  arrows: number;
  /** Pixels at which the critical path goes to another thread, joined or not. */
  joints: number;
}

let image: ImageData | null = null;

export function paintTimeline(context: CanvasRenderingContext2D, scene: Scene): Painted {
  const { ratio, width, height, left, colours } = scene;
  const plot = width - left;
  const [w, hgt] = [Math.max(1, Math.round(plot * ratio)), Math.max(1, Math.round((height - AXIS) * ratio))];
  if (!image || image.width !== w || image.height !== hgt) image = context.createImageData(w, hgt);
  paintStates(image, scene);
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.fillStyle = colours.page;
  context.fillRect(0, 0, context.canvas.width, context.canvas.height);
  context.putImageData(image, Math.round(left * ratio), Math.round(AXIS * ratio));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const xOf = (t: number): number => left + ((t - scene.view.from) / (scene.view.to - scene.view.from)) * plot;
  const rowOf = rowsByLine(scene);
  paintLabels(context, scene);
  context.save();
  context.beginPath();
  context.rect(left, AXIS, plot, height - AXIS);
  context.clip();
  paintReads(context, scene);
  paintMilestones(context, scene, xOf);
  paintChildren(context, scene, xOf);
  const arrows = paintArrows(context, scene, xOf, rowOf);
  const joints = scene.showsPath ? paintPath(context, scene, xOf, rowOf) : 0;
  paintSelected(context, scene, xOf, rowOf);
  context.restore();
  paintAxis(context, scene, xOf);
  return { arrows, joints };
}

function visibleRows({ rows, scroll, height }: Scene): { from: number; to: number } {
  return { from: Math.max(0, Math.floor(scroll / ROW)), to: Math.min(rows.length, Math.ceil((scroll + height - AXIS) / ROW)) };
}

/** Of each line that has a row where its bar begins, in CSS pixels; also of rows that are not in sight. */
function rowsByLine({ rows, scroll }: Scene): Map<number, number> {
  const tops = new Map<number, number>();
  rows.forEach((row, i) => row.kind !== "process" && tops.set(row.index, AXIS + i * ROW - scroll + BAR_TOP));
  return tops;
}

function paintStates(image: ImageData, scene: Scene): void {
  const { shares, kinds, rows, view, ratio, colours } = scene;
  const pixels = new Uint32Array(image.data.buffer);
  const { width, height } = image;
  pixels.fill(pixelOf(colours.ground));
  const colour = Uint32Array.from(colours.states, pixelOf);
  const band = pixelOf(colours.band);
  const stack = kinds.map((_, i) => i).sort((a, b) => kinds[a]!.rank - kinds[b]!.rank);
  const { from, to } = visibleRows(scene);
  for (let r = from; r < to; r++) {
    const row = rows[r]!;
    const top = Math.round((r * ROW - scene.scroll) * ratio);
    if (row.kind === "process") {
      for (let y = Math.max(0, top), end = Math.min(height, top + Math.round(ROW * ratio)); y < end; y++) pixels.fill(band, y * width, (y + 1) * width);
      continue;
    }
    const y0 = top + Math.round(BAR_TOP * ratio);
    const tall = Math.round(BAR * ratio);
    const [yTop, yEnd] = [Math.max(0, y0), Math.min(height, y0 + tall)];
    columnsOf(shares, shares.timeline.lines[row.index]!, view.from, view.to, width, {
      run: (x0, x1, state) => {
        const c = colour[state]!;
        for (let y = yTop; y < yEnd; y++) pixels.fill(c, y * width + x0, y * width + x1);
      },
      mixed: (x, time, whole) => {
        // From the bottom up; what the line does not have of the pixel stays ground.
        let sum = 0;
        let y = y0 + tall - 1;
        for (const state of stack) {
          const share = time[state]!;
          if (share === 0) continue;
          sum += share;
          const until = y0 + tall - Math.round((Math.min(1, sum / whole)) * tall);
          for (const c = colour[state]!; y >= until; y--) if (y >= yTop && y < yEnd) pixels[y * width + x] = c;
        }
      },
    });
  }
}

function paintLabels(context: CanvasRenderingContext2D, scene: Scene): void {
  const { rows, colours, left, width } = scene;
  const { from, to } = visibleRows(scene);
  context.save();
  context.beginPath();
  context.rect(0, AXIS, width, scene.height - AXIS);
  context.clip();
  context.textBaseline = "middle";
  context.textAlign = "left";
  for (let r = from; r < to; r++) {
    const row = rows[r]!;
    const y = AXIS + r * ROW - scene.scroll;
    if (row.kind === "process") {
      context.fillStyle = colours.band;
      context.fillRect(0, y, left, ROW);
    }
    context.font = row.kind === "process" ? `600 11px ${colours.font}` : `11px ${colours.font}`;
    context.fillStyle = row.kind === "thread" ? colours.quiet : colours.text;
    const indent = row.kind === "thread" ? 16 : 4;
    context.fillText(fitted(context, displayText(row.label), left - indent - 6), indent, y + ROW / 2 + 0.5);
  }
  context.restore();
}

/** As much of the text as has room. */
function fitted(context: CanvasRenderingContext2D, text: string, room: number): string {
  const most = text.slice(0, 80);
  if (context.measureText(most).width <= room) return most;
  let [fits, fails] = [0, most.length];
  while (fits + 1 < fails) {
    const middle = (fits + fails) >> 1;
    if (context.measureText(`${most.slice(0, middle)}…`).width <= room) fits = middle;
    else fails = middle;
  }
  return `${most.slice(0, fits)}…`;
}

/** Reads of a process in the row of its name: a mark a pixel, higher where there were more. */
function paintReads(context: CanvasRenderingContext2D, scene: Scene): void {
  const { rows, reads, view, left, width, colours } = scene;
  const { from, to } = visibleRows(scene);
  const step = (view.to - view.from) / (width - left);
  for (let r = from; r < to; r++) {
    const row = rows[r]!;
    const ticks = row.kind === "process" ? reads[row.index] : undefined;
    if (!ticks || ticks.t.length === 0) continue;
    const bottom = AXIS + (r + 1) * ROW - scene.scroll - 1;
    let i = firstAtOrAfter(ticks.t, view.from);
    while (i < ticks.t.length && ticks.t[i]! < view.to) {
      const x = Math.floor((ticks.t[i]! - view.from) / step);
      const next = firstAtOrAfter(ticks.t, view.from + (x + 1) * step);
      const tall = Math.min(ROW - 4, 4 + 2 * Math.log2(Math.max(1, next - i)));
      context.fillStyle = colours.askers[ticks.asker[i]!] ?? colours.quiet;
      context.fillRect(left + x, bottom - tall, 1.2, tall);
      i = Math.max(next, i + 1);
    }
  }
}

function paintMilestones(context: CanvasRenderingContext2D, scene: Scene, xOf: (t: number) => number): void {
  const { shares, rows, view, colours } = scene;
  const tops = new Map<number, number>();
  rows.forEach((row, i) => row.kind === "process" && tops.set(row.index, AXIS + i * ROW - scene.scroll));
  for (const one of shares.timeline.page.milestones) {
    if (one.at_ns < view.from || one.at_ns > view.to) continue;
    const x = xOf(one.at_ns);
    if (one.process === null) {
      context.strokeStyle = colours.text;
      context.lineWidth = 1;
      context.setLineDash([4, 3]);
      segment(context, x, AXIS, x, scene.height);
      context.setLineDash([]);
      continue;
    }
    const y = tops.get(one.process);
    if (y === undefined || y < AXIS - ROW || y > scene.height) continue;
    context.fillStyle = colours.text;
    context.beginPath();
    if (one.kind === "ended") context.rect(x - 1, y + 2, 2.5, 7);
    else if (one.kind === "first_wait") context.arc(x, y + 6, 3, 0, 2 * Math.PI);
    else {
      // An exec points to the right, the making of a process down.
      const corners = one.kind === "exec" ? [[0, 2], [7, 6], [0, 10]] : [[-4, 2], [4, 2], [0, 9]];
      corners.forEach(([dx, dy], i) => (i === 0 ? context.moveTo(x + dx!, y + dy!) : context.lineTo(x + dx!, y + dy!)));
    }
    context.fill();
  }
}

function segment(context: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number): void {
  context.beginPath();
  context.moveTo(x0, y0);
  context.lineTo(x1, y1);
  context.stroke();
}

/** From a process to those that it made. */
function paintChildren(context: CanvasRenderingContext2D, scene: Scene, xOf: (t: number) => number): void {
  const { shares, rows, view, colours } = scene;
  const tops = new Map<number, number>();
  rows.forEach((row, i) => row.kind === "process" && tops.set(row.index, AXIS + i * ROW - scene.scroll));
  context.strokeStyle = colours.quiet;
  context.lineWidth = 1;
  shares.timeline.page.processes.forEach((process, i) => {
    const [top, below] = [process.parent === null ? undefined : tops.get(process.parent), tops.get(i)];
    if (top === undefined || below === undefined || process.began_ns < view.from || process.began_ns > view.to) return;
    const x = Math.round(xOf(process.began_ns)) + 0.5;
    context.setLineDash([1, 2]);
    segment(context, x, top + ROW, x, below + 3);
    context.setLineDash([]);
  });
}

function arrow(context: CanvasRenderingContext2D, x: number, from: number, to: number): void {
  const tip = to > from ? to : to + BAR;
  const start = to > from ? from + BAR : from;
  const back = to > from ? -4 : 4;
  segment(context, x, start, x, tip);
  context.beginPath();
  context.moveTo(x, tip);
  context.lineTo(x - 2.5, tip + back);
  context.lineTo(x + 2.5, tip + back);
  context.fill();
}

function paintArrows(context: CanvasRenderingContext2D, scene: Scene, xOf: (t: number) => number, rowOf: Map<number, number>): number {
  const { at, waker, woken } = scene.shares.timeline.wakes;
  const from = firstAtOrAfter(at, scene.view.from);
  const to = firstAtOrAfter(at, scene.view.to);
  if (!scene.showsArrows || to - from > MOST_ARROWS) return to - from;
  context.strokeStyle = context.fillStyle = scene.colours.text;
  context.globalAlpha = to - from > 60 ? 0.45 : 0.75;
  context.lineWidth = 1;
  for (let i = from; i < to; i++) {
    const [above, below] = [rowOf.get(waker[i]!), rowOf.get(woken[i]!)];
    if (above !== undefined && below !== undefined && above !== below) arrow(context, xOf(at[i]!), above, below);
  }
  context.globalAlpha = 1;
  return to - from;
}

/** A line through the threads that have the path. Where it changes threads within a pixel, one joint goes from the highest to the lowest. */
function paintPath(context: CanvasRenderingContext2D, scene: Scene, xOf: (t: number) => number, rowOf: Map<number, number>): number {
  const { path } = scene.shares.timeline;
  if (!path) return 0;
  const { view, colours, left, width } = scene;
  const lines = new Path2D();
  const joints = new Path2D();
  let count = 0;
  let before: { x: number; y: number } | null = null;
  let i = Math.max(0, firstAtOrAfter(path.from, view.from) - 1);
  let [pixel, low, high] = [-1, Infinity, -Infinity];
  const flush = (): void => {
    if (pixel >= 0 && high > low) {
      joints.rect(pixel - 0.6, low, 1.2, high - low);
      count++;
    }
    [low, high] = [Infinity, -Infinity];
  };
  for (; i < path.from.length && path.from[i]! < view.to; i++) {
    const y = rowOf.get(path.thread[i]!);
    if (y === undefined) {
      before = null;
      continue;
    }
    const middle = y - 1;
    const [x0, x1] = [Math.max(left - 2, xOf(path.from[i]!)), Math.min(width + 2, xOf(path.to[i]!))];
    if (before && before.y !== middle) {
      if (Math.round(x0) !== pixel) {
        flush();
        pixel = Math.round(x0);
      }
      low = Math.min(low, before.y, middle);
      high = Math.max(high, before.y, middle);
    }
    if (x1 - x0 >= 0.5) lines.rect(x0, middle - 1, x1 - x0, 2.6);
    before = { x: x1, y: middle };
  }
  flush();
  if (count <= MOST_JOINTS) lines.addPath(joints);
  context.strokeStyle = colours.page;
  context.lineWidth = 1.6;
  context.stroke(lines);
  context.fillStyle = colours.accent;
  context.fill(lines);
  return count;
}

function paintSelected(context: CanvasRenderingContext2D, scene: Scene, xOf: (t: number) => number, rowOf: Map<number, number>): void {
  const { selected, marked, colours, left, width, height } = scene;
  if (marked) {
    const [x0, x1] = [Math.max(left, xOf(marked.from)), Math.min(width, xOf(marked.to))];
    if (x1 >= x0) {
      context.fillStyle = context.strokeStyle = colours.accent;
      context.globalAlpha = 0.12;
      context.fillRect(x0, AXIS, Math.max(1, x1 - x0), height - AXIS);
      context.globalAlpha = 1;
      context.lineWidth = 1;
      for (const x of [x0, x1]) segment(context, x, AXIS, x, height);
    }
  }
  const y = selected && rowOf.get(selected.line);
  if (!selected || y === null || y === undefined) return;
  const { starts } = scene.shares.timeline;
  const [x0, x1] = [Math.max(left - 4, xOf(starts[selected.span]!)), Math.min(width + 4, xOf(starts[selected.span + 1]!))];
  const [from, wide] = [x0 - 1, Math.max(3, x1 - x0 + 2)];
  context.lineWidth = 3.5;
  context.strokeStyle = colours.page;
  context.strokeRect(from, y - 1, wide, BAR + 2);
  context.lineWidth = 1.8;
  context.strokeStyle = colours.text;
  context.strokeRect(from, y - 1, wide, BAR + 2);
}

function paintAxis(context: CanvasRenderingContext2D, scene: Scene, xOf: (t: number) => number): void {
  const { view, left, width, colours } = scene;
  context.fillStyle = colours.line;
  context.fillRect(left, AXIS - 1, width - left, 1);
  context.font = `10px ${colours.font}`;
  context.textBaseline = "middle";
  context.textAlign = "center";
  const ticks = decimalTicks(view.from, view.to, Math.max(2, (width - left) / 110));
  for (const t of ticks.at) {
    const x = xOf(t);
    context.fillStyle = colours.quiet;
    context.fillRect(x, AXIS - 5, 1, 5);
    const label = timeOnAxis(t, ticks.step);
    const half = context.measureText(label).width / 2;
    context.fillText(label, Math.min(Math.max(x, left + half), width - half), AXIS - 12);
  }
  // Names of the moments of the launch, above the times; later ones give way.
  let clear = left - 1;
  for (const one of scene.shares.timeline.page.milestones) {
    if (one.process !== null || one.at_ns < view.from || one.at_ns > view.to) continue;
    const label = one.kind === "ready" ? "ready" : "begin of the launch";
    const half = context.measureText(label).width / 2;
    const x = Math.min(Math.max(xOf(one.at_ns), left + half), width - half);
    if (x - half <= clear) continue;
    context.fillStyle = colours.text;
    context.fillText(label, x, 7);
    clear = x + half + 8;
  }
}
