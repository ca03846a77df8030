// What of a flame graph belongs to what another part of the page has selected, and the words for it.
//
// Owns what of a selection a weight can be filtered by. Leaves the arithmetic to `derive/flame-rows`.

import { BrokenRows, partOf, readRows, threadsWanted, type Part, type TimedRows } from "../derive/flame-rows";
import { count, inUnit, moment, percent } from "../format";
import { isOfProcess, type Selection } from "../selection";
import type { FlameGraph, FlameGraphs, FlameWeight } from "../types";

export interface SelectedPart extends Part {
  /** In sentences; foreign text in it. */
  words: string;
  /** What it adds up to: "all" where it could not be taken out. */
  whole: "all" | "what is selected";
}

/** What is counted, and whether it has a length. */
const ROWS: Record<FlameWeight, { one: string; many: string; lasts: boolean }> = {
  cpu_samples: { one: "sample", many: "samples", lasts: false },
  off_cpu: { one: "wait", many: "waits", lasts: true },
  fault_time: { one: "fault", many: "faults", lasts: true },
  allocated: { one: "allocation", many: "allocations", lasts: false },
};

/** A function that gives the part of a graph; null where nothing is selected that it can be filtered by. */
export function flameParts(graphs: FlameGraphs): (graph: FlameGraph, selected: Selection | null) => SelectedPart | null {
  const decoded = new Map<FlameWeight, TimedRows | null>();
  const rowsOf = (graph: FlameGraph, threads: number): TimedRows | null => {
    let rows = decoded.get(graph.weight);
    if (rows === undefined) decoded.set(graph.weight, (rows = readRows(graph, threads)));
    return rows;
  };
  let known = new Map<FlameWeight, SelectedPart | null>();
  let of: Selection | null = null;
  const find = (graph: FlameGraph, selected: Selection): SelectedPart | null => {
    const { time, processes, tid } = selected;
    if (!graphs.threads || (!time && !processes && tid === null)) return null;
    const rows = rowsOf(graph, graphs.threads.pid.length);
    if (!rows) return null;
    const { lasts } = ROWS[graph.weight];
    const isMoment = time !== null && time.from === time.to;
    const threads = processes || tid !== null ? threadsWanted(graphs.threads, (frame) => graphs.frames.name[frame]!, tid, (pid, name) => isOfProcess(selected, pid, name)) : null;
    const part = partOf(graph, rows, { time: isMoment && !lasts ? null : time, threads });
    return { ...part, words: wordsOf(graph, part, selected), whole: "what is selected" };
  };
  return (graph, selected) => {
    if (!selected) return null;
    if (of !== selected) [of, known] = [selected, new Map()];
    let part = known.get(graph.weight);
    if (part === undefined) {
      try {
        part = find(graph, selected);
      } catch (error) {
        if (!(error instanceof BrokenRows)) throw error;
        part = { rows: 0, total: graph.total, trees: { callees: graph.callees!, callers: graph.callers! }, words: `Everything is shown: the times in this page are damaged. ${error.message}`, whole: "all" };
      }
      known.set(graph.weight, part);
    }
    return part;
  };
}

function wordsOf(graph: FlameGraph, part: Part, selected: Selection): string {
  const { one, many, lasts } = ROWS[graph.weight];
  const { time } = selected;
  const isMoment = time !== null && time.from === time.to;
  const amount = (weight: number): string => inUnit(weight, graph.unit);
  const share = graph.total > 0 ? ` (${percent(part.total / graph.total)})` : "";
  const number = `${count(part.rows)} ${part.rows === 1 ? one : many}`;
  // Samples are their own number.
  const what = part.rows === 0 ? `no ${one}` : graph.unit === "count" ? `${number} of ${amount(graph.total)}${share}` : `${number} with ${amount(part.total)} of ${amount(graph.total)}${share}`;
  const sentences = [`Only what is selected, ${[whoOf(selected), isMoment && !lasts ? "" : timeWords(time)].filter((t) => t !== "").join(", ")}: ${what}.`];
  if (isMoment) sentences.push(lasts ? `Those are the ${many} that were going on at that moment, in full.` : `A moment has no ${many}: those of all times are shown.`);
  else if (time && lasts) sentences.push(`Of ${many} that begin before or end after it, the time within it counts.`);
  const { left_out, left_out_weight } = graph.rows!;
  if (left_out > 0) sentences.push(`The page has no time of ${count(left_out)} ${many} with ${amount(left_out_weight)}, the lightest of all; they are missing here, and are in the graph of everything.`);
  return sentences.join(" ");
}

function timeWords(time: Selection["time"]): string {
  if (!time) return "";
  return time.from === time.to ? `at ${moment(time.from)}` : `from ${moment(time.from)} to ${moment(time.to)}`;
}

function whoOf({ processes, tid }: Selection): string {
  const thread = tid === null ? "" : `thread ${tid}`;
  if (!processes) return thread;
  const [first] = processes;
  const who = processes.length !== 1 ? `${count(processes.length)} processes` : first!.pid === null ? `processes of ${first!.name}` : `${first!.name} (pid ${first!.pid})`;
  return thread === "" ? who : `${thread} of ${who}`;
}
