// Paints one file's reads into pixels.
//
// Owns the geometry of a picture and its marks. Marks are written straight into an image's memory,
// because 100,000 of them as canvas calls would take longer than a frame; time is bounded by the
// pixels that the marks cover. Leaves events and text around the picture to `io-panel.ts`.

import { firstAtOrAfter, type FileReads } from "../derive/file-reads";
import type { ViewWindow } from "../derive/view-window";

/** In CSS pixels, inside the canvas. */
export interface Plot {
  left: number;
  top: number;
  width: number;
  height: number;
}

export interface Paint {
  /** By asker, as pixels. */
  askers: Uint32Array;
  visible: readonly boolean[];
  /** Whether a read is part of what is selected; null where nothing is. */
  chosen: ((i: number) => boolean) | null;
  ground: number;
  groundAlternate: number;
}

/** Height of a read's mark in CSS pixels: thin where many share the area, so that they stay apart. */
export function markHeight(plot: { width: number; height: number }, reads: FileReads, view: ViewWindow): number {
  const { from, to } = readsInTime(reads, view);
  let inView = 0;
  for (let i = from; i < to; i++) if (reads.page[i]! < view.page1 && reads.page[i]! + reads.pages[i]! > view.page0) inView++;
  const area = (plot.width * plot.height) / Math.max(1, inView);
  return Math.min(6, Math.max(2, Math.round(Math.sqrt(area / 8))));
}

/** Indices of the reads from the window's start to its end in time. */
export function readsInTime(reads: FileReads, view: ViewWindow): { from: number; to: number } {
  return { from: firstAtOrAfter(reads.t, view.t0), to: firstAtOrAfter(reads.t, view.t1 + 1) };
}

/** Up to this share of needed pages a pixel counts as partly needed; above, as needed. */
const MOSTLY_NEEDED = 0.75;
/** Textures as on-pixels in a diagonal period of six: wasted, partly needed. */
const PERIOD = 6;
const WASTED_ON = 2;
const PARTLY_ON = 4;

/**
 * Fills the image with the ground and the marks of the reads in view.
 *
 * `mark` is the height of a mark in pixels of the image.
 *
 * A pixel's texture tells which share of the pages *of that read* under that pixel was needed: solid
 * is needed, or not known; a dense hatch is partly needed; a sparse hatch with an outline is wasted.
 */
export function paintReads(image: ImageData, ratio: number, mark: number, reads: FileReads, view: ViewWindow, sectionEdges: readonly number[], paint: Paint): void {
  const { width, height } = image;
  const pixels = new Uint32Array(image.data.buffer);
  fillGround(pixels, width, view, sectionEdges, paint);

  const perPage = width / (view.page1 - view.page0);
  const perNano = height / (view.t1 - view.t0);
  const { from, to } = readsInTime(reads, view);
  const unit = Math.max(1, Math.round(ratio));
  const narrowest = 1.5 * ratio;
  const { needed, neededPages, page, pages, t } = reads;
  const outlined = mark >= 4 * unit;

  for (let i = from; i < to; i++) {
    const asker = reads.asker[i]!;
    if (paint.visible[asker] === false || paint.chosen?.(i) === false) continue;
    const first = page[i]!;
    const last = first + pages[i]!;
    if (last <= view.page0 || first >= view.page1) continue;
    const left = (first - view.page0) * perPage;
    const x0 = Math.max(0, Math.floor(left));
    const x1 = Math.min(width, Math.max(x0 + 1, Math.ceil(Math.max((last - view.page0) * perPage, left + narrowest))));
    const y0 = Math.min(Math.floor((t[i]! - view.t0) * perNano), height - mark);
    const y1 = Math.min(height, y0 + mark);
    const colour = paint.askers[asker]!;
    const all = neededPages[i]!;
    const small = !outlined && x1 - x0 < PERIOD * unit;

    if (all === last - first) {
      // Loops, not fill(): most marks are a few pixels wide, and the call costs more than they do.
      for (let y = Math.max(0, y0); y < y1; y++) for (let at = y * width + x0, end = y * width + x1; at < end; at++) pixels[at] = colour;
      continue;
    }
    for (let x = x0; x < x1; x++) {
      let on = WASTED_ON;
      if (all > 0) {
        const a = Math.min(last - 1, Math.max(first, Math.floor(view.page0 + x / perPage)));
        const b = Math.min(last, Math.max(a + 1, Math.ceil(view.page0 + (x + 1) / perPage)));
        const share = needed!.countIn(a, b) / (b - a);
        on = share === 0 ? WASTED_ON : share > MOSTLY_NEEDED ? PERIOD : PARTLY_ON;
      }
      for (let y = Math.max(0, y0); y < y1; y++) {
        const edge = outlined && on === WASTED_ON && (y < y0 + unit || y >= y1 - unit || x < x0 + unit || x >= x1 - unit);
        if (edge || (small ? smallTexture(x / unit | 0, y / unit | 0, on) : ((x + y) / unit | 0) % PERIOD < on)) pixels[y * width + x] = colour;
      }
    }
  }
}

/** In a mark smaller than a hatch's period the hatch could miss it: then every second pixel is wasted, all but every fourth partly needed. */
function smallTexture(x: number, y: number, on: number): boolean {
  return on === WASTED_ON ? ((x + y) & 1) === 0 : on === PARTLY_ON ? (x & y & 1) === 0 : true;
}

/** Sections alternate between two grounds, so that their edges go through the whole picture. */
function fillGround(pixels: Uint32Array, width: number, view: ViewWindow, sectionEdges: readonly number[], paint: Paint): void {
  const row = new Uint32Array(width);
  const perPage = (view.page1 - view.page0) / width;
  let edge = 0;
  for (let x = 0; x < width; x++) {
    const page = view.page0 + (x + 0.5) * perPage;
    while (edge < sectionEdges.length && sectionEdges[edge]! <= page) edge++;
    row[x] = edge % 2 === 0 ? paint.ground : paint.groundAlternate;
  }
  for (let at = 0; at < pixels.length; at += width) pixels.set(row, at);
}
