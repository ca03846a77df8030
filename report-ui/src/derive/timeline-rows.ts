// Which lines of the timeline are shown, in which order, and what a search finds in their names.

import type { Timeline } from "./timeline";

export type Choice = "busiest" | "path" | "all";

/** Threads that are shown before "all" is asked for. */
export const BUSIEST = 30;

export interface ShownRow {
  kind: "process" | "thread" | "device";
  /** Of a process its number, else that of the line. */
  index: number;
  label: string;
}

const WAITS = new Set(["lock", "pipe_or_socket", "events", "timer", "child", "kernel_wait", "stopped"]);

/** Time in which a thread did something, or the machine kept it from doing it. */
export function busyTime(times: Record<string, number>): number {
  return Object.entries(times).reduce((sum, [state, time]) => (WAITS.has(state) ? sum : sum + time), 0);
}

/** Time on the critical path by thread. */
export function pathTimes({ path, page }: Timeline): Float64Array {
  const times = new Float64Array(page.threads.length);
  for (let i = 0; path && i < path.thread.length; i++) if (path.thread[i]! >= 0) times[path.thread[i]!]! += path.to[i]! - path.from[i]!;
  return times;
}

export function processLabel(name: string, pid: number): string {
  return `${name} · ${pid}`;
}

export function threadLabel(name: string | null, tid: number): string {
  return name === null ? `thread ${tid}` : `${name} · ${tid}`;
}

/** `only` says which threads alone are wanted, by process and thread id; null for all. */
export function shownRows(timeline: Timeline, choice: Choice, search: string, only: ((process: number, tid: number) => boolean) | null): { rows: ShownRow[]; threads: number } {
  const { threads, processes, devices } = timeline.page;
  const wanted = search.trim().toLowerCase();
  const onPath = choice === "path" ? pathTimes(timeline) : null;
  let chosen: Set<number> | null = null;
  if (choice === "busiest" && threads.length > BUSIEST) {
    const busy = threads.map((t) => busyTime(t.times));
    chosen = new Set(threads.map((_, i) => i).sort((a, b) => busy[b]! - busy[a]! || a - b).slice(0, BUSIEST));
  }
  const rows: ShownRow[] = [];
  let count = 0;
  let of = -1;
  threads.forEach((thread, i) => {
    const process = processes[thread.process]!;
    if (only && !only(thread.process, thread.tid)) return;
    if (wanted !== "") {
      const text = `${process.name} ${process.pid} ${thread.name ?? ""} ${thread.tid}`.toLowerCase();
      if (!text.includes(wanted)) return;
      // What is searched for is found wherever it is.
    } else if (!only && ((chosen && !chosen.has(i)) || (onPath && onPath[i] === 0))) return;
    if (thread.process !== of) rows.push({ kind: "process", index: (of = thread.process), label: processLabel(process.name, process.pid) });
    rows.push({ kind: "thread", index: i, label: threadLabel(thread.name, thread.tid) });
    count++;
  });
  if (wanted === "" && !only) devices.forEach((d, i) => rows.push({ kind: "device", index: threads.length + i, label: `device ${d.name}` }));
  return { rows, threads: count };
}
