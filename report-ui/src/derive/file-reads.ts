// The reads of each file as typed arrays, and questions about them.
//
// Owns grouping the columns by file (a counting sort that keeps the order of time), the waste of
// each file, and finding the read under a pointer. Leaves pixels to the views.

import type { IoFile, IoMap, Nanos, Pages, IoSection } from "../types";
import { PageSet } from "./page-set";

export interface FileReads {
  index: number;
  file: IoFile;
  /** Pages of the file, or more where a read went past its recorded size. */
  pageCount: Pages;
  t: Float64Array;
  page: Float64Array;
  pages: Float64Array;
  asker: Uint8Array;
  process: Uint32Array;
  /** Null where it is not known which pages were needed. */
  needed: PageSet | null;
  /** Needed pages of each read; all of them where that is not known. */
  neededPages: Float64Array;
  /** Pages of the reads here; a page that was read twice counts twice. */
  pagesRead: Pages;
  /** Pages of the reads that were never needed; null where that is not known. */
  pagesWasted: Pages | null;
}

/** One entry per file of the map, in its order. */
export function groupReads(map: IoMap): FileReads[] {
  const { reads, files } = map;
  const rows = reads.t_ns.length;
  const starts = new Uint32Array(files.length + 1);
  for (let i = 0; i < rows; i++) starts[reads.file[i]! + 1]!++;
  for (let f = 0; f < files.length; f++) starts[f + 1]! += starts[f]!;

  const t = new Float64Array(rows);
  // Not 32-bit: a sparse file may be read beyond page 2^32.
  const page = new Float64Array(rows);
  const pages = new Float64Array(rows);
  const asker = new Uint8Array(rows);
  const process = new Uint32Array(rows);
  const next = starts.slice();
  for (let i = 0; i < rows; i++) {
    const at = next[reads.file[i]!]!++;
    t[at] = reads.t_ns[i]!;
    page[at] = reads.page[i]!;
    pages[at] = reads.pages[i]!;
    asker[at] = reads.asker[i]!;
    process[at] = reads.process[i]!;
  }

  return files.map((file, index) => {
    const [a, b] = [starts[index]!, starts[index + 1]!];
    const own = {
      t: t.subarray(a, b),
      page: page.subarray(a, b),
      pages: pages.subarray(a, b),
      asker: asker.subarray(a, b),
      process: process.subarray(a, b),
    };
    let pageCount = Math.max(1, Math.ceil(file.size / map.page_bytes));
    let pagesRead = 0;
    for (let i = 0; i < own.t.length; i++) {
      pageCount = Math.max(pageCount, own.page[i]! + own.pages[i]!);
      pagesRead += own.pages[i]!;
    }
    const needed = file.needed === null ? null : new PageSet(file.needed);
    const neededPages = own.pages.slice();
    let pagesWasted: Pages | null = null;
    if (needed) {
      pagesWasted = 0;
      for (let i = 0; i < own.t.length; i++) {
        neededPages[i] = needed.countIn(own.page[i]!, own.page[i]! + own.pages[i]!);
        pagesWasted += own.pages[i]! - neededPages[i]!;
      }
    }
    return { index, file, pageCount, ...own, needed, neededPages, pagesRead, pagesWasted };
  });
}

/** Needed pages of read `i`, or null where unknown. */
export function neededPagesOfRead(reads: FileReads, i: number): Pages | null {
  return reads.needed ? reads.neededPages[i]! : null;
}

/** The first index whose time is at least `at`. */
export function firstAtOrAfter(t: Float64Array, at: Nanos): number {
  let low = 0;
  let high = t.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (t[middle]! < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * The read nearest to (page, at), or null if none lies within the tolerances.
 *
 * The order of time is the index: only reads inside the time tolerance are looked at. `visible[a]`
 * is false for an asker that the reader has hidden.
 */
export function nearestRead(reads: FileReads, page: number, at: Nanos, tolerance: { pages: number; time: Nanos }, visible: readonly boolean[]): number | null {
  let best: number | null = null;
  let bestDistance = Infinity;
  const end = reads.t.length;
  for (let i = firstAtOrAfter(reads.t, at - tolerance.time); i < end && reads.t[i]! <= at + tolerance.time; i++) {
    if (visible[reads.asker[i]!] === false) continue;
    const first = reads.page[i]!;
    const last = first + reads.pages[i]!;
    const dx = page < first ? first - page : page > last ? page - last : 0;
    if (dx > tolerance.pages) continue;
    const distance = Math.hypot(dx / tolerance.pages, (reads.t[i]! - at) / tolerance.time);
    // The later of two equal ones is drawn on top, so it wins.
    if (distance <= bestDistance) {
      best = i;
      bestDistance = distance;
    }
  }
  return best;
}

/** The section that holds a byte offset; where sections overlap, the smallest. */
export function sectionAt(file: IoFile, offset: number): IoSection | null {
  let best: IoSection | null = null;
  for (const s of file.sections) {
    if (offset >= s.offset && offset < s.offset + s.size && (best === null || s.size < best.size)) best = s;
  }
  return best;
}

export type FileOrder = "bytes" | "first_use" | "waste" | "name";

/** Files with at least one read whose path contains `filter` in any case, in the wanted order. */
export function selectFiles(all: readonly FileReads[], order: FileOrder, filter: string): FileReads[] {
  const wanted = filter.trim().toLowerCase();
  const chosen = all.filter((f) => f.t.length > 0 && (wanted === "" || f.file.path.toLowerCase().includes(wanted)));
  const by: Record<FileOrder, (a: FileReads, b: FileReads) => number> = {
    bytes: (a, b) => b.pagesRead - a.pagesRead,
    first_use: (a, b) => a.t[0]! - b.t[0]!,
    waste: (a, b) => (b.pagesWasted ?? -1) - (a.pagesWasted ?? -1),
    name: (a, b) => (a.file.path < b.file.path ? -1 : a.file.path > b.file.path ? 1 : 0),
  };
  return chosen.sort((a, b) => by[order](a, b) || a.index - b.index);
}
