// Sums over the whole I/O map: by who asked, by kind of section, by file.
//
// Owns the figures beside the picture. Each page of each read is counted once, in one group of each
// table, so the groups add up to the total.

import type { Bytes, IoMap, Nanos, Pages } from "../types";
import { neededPagesOfRead, type FileReads } from "./file-reads";

export interface Amount {
  reads: number;
  pages: Pages;
  /** Pages never needed, among files whose needed pages are known. */
  wasted: Pages;
  /** Pages of files whose needed pages are not known. */
  unjudged: Pages;
}

export interface IoTotals {
  pageBytes: Bytes;
  all: Amount;
  byAsker: Amount[];
  /** By section kind, most pages first; pages outside every section are "outside sections". */
  bySection: { kind: string; amount: Amount }[];
  filesRead: number;
  /** Pages needed over files where that is known; null where it is known for none. */
  pagesNeeded: Pages | null;
}

const nothing = (): Amount => ({ reads: 0, pages: 0, wasted: 0, unjudged: 0 });

export function ioTotals(map: IoMap, files: readonly FileReads[]): IoTotals {
  const all = nothing();
  const byAsker = map.askers.map(nothing);
  const sections = new Map<string, Amount>();
  let pagesNeeded: Pages | null = null;
  let filesRead = 0;
  for (const f of files) {
    if (f.t.length > 0) filesRead++;
    if (f.file.pages_needed !== null) pagesNeeded = (pagesNeeded ?? 0) + f.file.pages_needed;
    const bounds = sectionBounds(f, map.page_bytes);
    for (let i = 0; i < f.t.length; i++) {
      const needed = neededPagesOfRead(f, i);
      addPages(byAsker[f.asker[i]!]!, f.pages[i]!, needed).reads++;
      addBySection(sections, bounds, f, i, needed);
    }
  }
  for (const amount of byAsker) for (const key of ["reads", "pages", "wasted", "unjudged"] as const) all[key] += amount[key];
  const bySection = [...sections].map(([kind, amount]) => ({ kind, amount })).sort((a, b) => b.amount.pages - a.amount.pages);
  return { pageBytes: map.page_bytes, all, byAsker, bySection, filesRead, pagesNeeded };
}

function addPages(amount: Amount, pages: Pages, needed: Pages | null): Amount {
  amount.pages += pages;
  if (needed === null) amount.unjudged += pages;
  else amount.wasted += pages - needed;
  return amount;
}

interface Bound {
  from: Pages;
  to: Pages;
  kind: string;
}

/** Sections as runs of whole pages that do not overlap; a shared page belongs to the earlier one. */
function sectionBounds(f: FileReads, pageSize: number): Bound[] {
  const bounds: Bound[] = [];
  let from = 0;
  const add = (to: Pages, kind: string): void => {
    if (to > from) bounds.push({ from, to, kind });
    from = Math.max(from, to);
  };
  const elf = f.file.sections.length > 0;
  for (const s of [...f.file.sections].sort((a, b) => a.offset - b.offset)) {
    add(Math.floor(s.offset / pageSize), "outside sections");
    add(Math.min(f.pageCount, Math.ceil((s.offset + s.size) / pageSize)), s.kind);
  }
  add(f.pageCount, elf ? "outside sections" : "files without sections");
  return bounds;
}

function addBySection(sections: Map<string, Amount>, bounds: Bound[], f: FileReads, i: number, needed: Pages | null): void {
  const first = f.page[i]!;
  const last = first + f.pages[i]!;
  let low = 0;
  let high = bounds.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (bounds[middle]!.to <= first) low = middle + 1;
    else high = middle;
  }
  let counted = false;
  for (let b = low; b < bounds.length && bounds[b]!.from < last; b++) {
    const bound = bounds[b]!;
    const from = Math.max(first, bound.from);
    const to = Math.min(last, bound.to);
    let amount = sections.get(bound.kind);
    if (!amount) sections.set(bound.kind, (amount = nothing()));
    // A read that crosses sections is one read, in the first of them.
    if (!counted) amount.reads++;
    counted = true;
    const inOneSection = from === first && to === last;
    addPages(amount, to - from, inOneSection || !f.needed ? needed : f.needed.countIn(from, to));
  }
}

export interface FileRow {
  index: number;
  path: string;
  size: number;
  reads: number;
  pagesRead: Pages;
  pagesNeeded: Pages | null;
  pagesWasted: Pages | null;
  wastedShare: number | null;
  pagesPerRead: number;
  forward: number | null;
  backward: number | null;
  adjacent: number | null;
  blocked: Nanos;
  firstUse: Nanos | null;
}

export function fileRows(files: readonly FileReads[]): FileRow[] {
  return files
    .map((f) => {
      const drawn = f.t.length > 0;
      const pagesRead = drawn ? f.pagesRead : f.file.pages_read;
      return {
        index: f.index,
        path: f.file.path,
        size: f.file.size,
        reads: f.t.length,
        pagesRead,
        pagesNeeded: f.file.pages_needed,
        pagesWasted: f.pagesWasted,
        wastedShare: f.pagesWasted === null || pagesRead === 0 ? null : f.pagesWasted / pagesRead,
        pagesPerRead: drawn ? pagesRead / f.t.length : 0,
        forward: f.file.jumps?.forward ?? null,
        backward: f.file.jumps?.backward ?? null,
        adjacent: f.file.jumps?.adjacent ?? null,
        blocked: f.file.blocked_ns,
        firstUse: drawn ? f.t[0]! : null,
      };
    })
    .sort((a, b) => b.pagesRead - a.pagesRead);
}
