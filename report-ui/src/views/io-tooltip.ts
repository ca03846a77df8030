// What the tooltip of the I/O map says about a read, or about a place in a file.

import { baseName } from "../display-text";
import { neededPagesOfRead, sectionAt, type FileReads } from "../derive/file-reads";
import { bytes, count, duration, inUnit } from "../format";
import { isolated } from "./element";
import type { MapState } from "./io-panel";
import type { TooltipLine } from "./tooltip";

/** Read `i`, and of its pages the one under the pointer. */
export function describeRead(reads: FileReads, state: MapState, i: number, pointedPage: number): TooltipLine[] {
  const first = reads.page[i]!;
  const pages = reads.pages[i]!;
  const page = Math.min(Math.max(pointedPage, first), first + pages - 1);
  const process = state.map.processes[reads.process[i]!]!;
  const needed = neededPagesOfRead(reads, i);
  const run = pages === 1 ? "1 page" : `${inUnit(pages, "pages")}, ${count(first)} to ${count(first + pages - 1)}`;
  return [
    ...placeLines(reads, state, page),
    { label: "page", value: reads.needed ? (reads.needed.has(page) ? "needed" : "wasted: read, never needed") : "need not known" },
    { label: "read", value: `${run} (${bytes(pages * state.pageSize)})` },
    { label: "of these", value: needed === null ? "need not known" : `${count(needed)} needed, ${count(pages - needed)} wasted` },
    { label: "time", value: afterStart(reads.t[i]!, state) },
    { label: "asked by", value: state.map.askers[reads.asker[i]!]! },
    { label: "process", value: isolated(`${process.name} (pid ${process.pid})`) },
  ];
}

export function describePlace(reads: FileReads, state: MapState, page: number): TooltipLine[] {
  return [...placeLines(reads, state, page), { label: "page", value: reads.needed ? (reads.needed.has(page) ? "needed" : "not needed") : "need not known" }];
}

function placeLines(reads: FileReads, state: MapState, page: number): TooltipLine[] {
  const offset = page * state.pageSize;
  // A page may hold the end of one section and the start of the next; its first byte decides.
  const section = sectionAt(reads.file, offset) ?? sectionAt(reads.file, offset + state.pageSize - 1);
  return [
    { heading: isolated(baseName(reads.file.path)) },
    { label: "offset", value: `${bytes(offset)}, page ${count(page)} of ${count(reads.pageCount)}` },
    { label: "section", value: section ? isolated(`${section.name} (${section.kind})`) : "outside sections" },
  ];
}

function afterStart(t: number, state: MapState): string {
  const ready = state.map.ready_ns;
  const text = `${duration(t)} after start`;
  return ready === null ? text : `${text}, ${duration(Math.abs(ready - t))} ${t <= ready ? "before" : "after"} ready`;
}
