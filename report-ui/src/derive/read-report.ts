// Text of the data block -> a checked report, or a checked comparison.
//
// Owns the checks without which a view could fail half-way: the schema, columns of one length whose
// indices exist, and trees that are trees. It does not judge the content.

import type { HtmlComparison } from "../generated/comparison-page";
import { COMPARISON_SCHEMA, SCHEMA, type FlameGraphs, type IoMap, type Report, type SideBySide } from "../types";
import { BrokenTimeline, readTimeline, type Timeline } from "./timeline";

/** Thrown when the data block cannot be shown; its message is meant for the reader. */
export class UnreadableReport extends Error {
  override name = "UnreadableReport";
}

/** What the page shows, told by its schema. */
export type PageData = { report: Report; timeline: Timeline | null } | { comparison: HtmlComparison };

export function readPage(text: string): PageData {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (cause) {
    throw new UnreadableReport("The data in this page is not complete JSON; the file may be cut off or never filled in.", { cause });
  }
  const schema = typeof parsed === "object" && parsed !== null && "schema" in parsed ? parsed.schema : null;
  if (schema === SCHEMA) {
    const report = parsed as Report;
    if (report.io_map) checkColumns(report.io_map);
    if (report.flame_graphs) {
      checkFlames(report.flame_graphs, ({ depth, frame, weight }) => ({ depth, frame, weights: [weight] }));
      checkThreads(report.flame_graphs);
    }
    if (report.launches) checkLaunches(report.launches);
    return { report, timeline: checkedTimeline(report) };
  }
  if (schema === COMPARISON_SCHEMA) {
    const page = parsed as HtmlComparison;
    if (page.flame_graphs) checkFlames(page.flame_graphs, ({ depth, frame, before, after }) => ({ depth, frame, weights: [before, after] }));
    if (page.launches) checkLaunches(page.launches);
    return { comparison: page };
  }
  throw new UnreadableReport(`The data in this page is neither of the schema ${SCHEMA} nor of ${COMPARISON_SCHEMA}.`);
}

function checkedTimeline({ timeline }: Report): Timeline | null {
  try {
    return timeline ? readTimeline(timeline) : null;
  } catch (cause) {
    // The browser reports what is no base64, in words of its own.
    throw new UnreadableReport(cause instanceof BrokenTimeline ? cause.message : "The timeline has a column that is no base64.", { cause });
  }
}

function checkLaunches({ groups, launches, spans, other_spans_ns }: SideBySide): void {
  const bad = launches.findIndex((l) => !isIndex(l.group, groups.length));
  if (bad >= 0) throw new UnreadableReport(`Launch ${bad} names group ${launches[bad]!.group}, of which there are ${groups.length}.`);
  const broken = [other_spans_ns, ...spans.map((s) => s.times_ns)].find((times) => times.length !== launches.length);
  if (broken) throw new UnreadableReport(`A span has ${broken.length} times, and there are ${launches.length} launches.`);
}

function checkColumns(map: IoMap): void {
  const { reads } = map;
  if (!(map.page_bytes > 0)) throw new UnreadableReport(`A page of the I/O map has ${map.page_bytes} bytes.`);
  const rows = reads.t_ns.length;
  for (const name of ["file", "page", "pages", "asker", "process"] as const) {
    if (reads[name].length !== rows) {
      throw new UnreadableReport(`Column "${name}" of the reads has ${reads[name].length} rows, "t_ns" has ${rows}.`);
    }
  }
  const limits = { file: map.files.length, asker: map.askers.length, process: map.processes.length };
  for (const name of ["file", "asker", "process"] as const) {
    const bad = reads[name].findIndex((i) => !isIndex(i, limits[name]));
    if (bad >= 0) {
      throw new UnreadableReport(`Read ${bad} names ${name} ${reads[name][bad]}, of which there are ${limits[name]}.`);
    }
  }
}

function checkThreads({ frames, threads }: FlameGraphs): void {
  if (!threads) return;
  const { pid, tid, process } = threads;
  if (tid.length !== pid.length || process.length !== pid.length) throw new UnreadableReport(`The threads of the flame graph have ${pid.length} pids, ${tid.length} numbers and ${process.length} processes.`);
  const bad = process.findIndex((frame) => !isIndex(frame, frames.name.length));
  if (bad >= 0) throw new UnreadableReport(`Thread ${bad} of the flame graph names frame ${process[bad]}, of which there are ${frames.name.length}.`);
}

interface TreeColumns {
  depth: number[];
  frame: number[];
  weights: number[][];
}

function checkFlames<Tree>({ frames, places, graphs }: Pick<FlameGraphs, "frames" | "places"> & { graphs: { callees: Tree | null; callers: Tree | null }[] }, columns: (tree: Tree) => TreeColumns): void {
  if (frames.name.length !== frames.place.length) {
    throw new UnreadableReport(`The frames have ${frames.name.length} names and ${frames.place.length} places.`);
  }
  const bad = frames.place.findIndex((i) => !isIndex(i, places.length));
  if (bad >= 0) throw new UnreadableReport(`Frame ${bad} names place ${frames.place[bad]}, of which there are ${places.length}.`);
  for (const g of graphs) for (const tree of [g.callees, g.callers]) if (tree) checkTree(columns(tree), frames.name.length);
}

function checkTree({ depth, frame, weights }: TreeColumns, frames: number): void {
  const lengths = weights.map((w) => w.length);
  if (depth.length === 0 || frame.length !== depth.length || lengths.some((l) => l !== depth.length)) {
    throw new UnreadableReport(`A flame graph has ${depth.length} depths, ${frame.length} frames and ${lengths.join(" and ")} weights.`);
  }
  for (let i = 0; i < depth.length; i++) {
    const deepest = i === 0 ? 0 : depth[i - 1]! + 1;
    if (!isIndex(depth[i]!, deepest + 1) || (i > 0 && depth[i] === 0)) throw new UnreadableReport(`Node ${i} of a flame graph has the depth ${depth[i]} after ${depth[i - 1]}.`);
    if (!isIndex(frame[i]!, frames)) throw new UnreadableReport(`Node ${i} of a flame graph names frame ${frame[i]}, of which there are ${frames}.`);
  }
}

function isIndex(i: number, below: number): boolean {
  return Number.isInteger(i) && i >= 0 && i < below;
}
