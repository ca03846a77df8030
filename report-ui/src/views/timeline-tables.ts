// The timeline as tables: times of every thread by state, its longest spans, and the steps of the critical path.

import { busyTime, pathTimes, processLabel, threadLabel } from "../derive/timeline-rows";
import { spanAt, type Timeline } from "../derive/timeline";
import type { StateKind } from "../derive/timeline-states";
import { bytes, count, duration, moment } from "../format";
import { h, isolated, type Child } from "./element";
import { sortableTable, type Column } from "./sortable-table";

/** Spans and steps that are rows of a table: the longest. */
const MOST = 200;

interface Step {
  line: number;
  span: number;
  from: number;
  time: number;
  state: number;
}

export function timelineTables(timeline: Timeline, kinds: readonly StateKind[], show: (line: number, span: number) => void): HTMLElement {
  const { page, lines, starts, states, path } = timeline;
  const nameOf = (line: number): string => {
    const { thread, device } = lines[line]!;
    return thread ? threadLabel(thread.name, thread.tid) : device!.name;
  };
  const processOf = (line: number): string => {
    const { thread } = lines[line]!;
    const process = thread && page.processes[thread.process]!;
    return process ? processLabel(process.name, process.pid) : "device";
  };
  const onPath = pathTimes(timeline);
  const all = page.threads.map((_, i) => i);
  const time = (ns: number): Child => (ns > 0 ? duration(ns) : h("span", { class: "quiet" }, "0"));
  const used = kinds.map((kind, i) => ({ ...kind, name: page.states[i]! })).filter((k) => page.threads.some((t) => (t.times[k.name] ?? 0) > 0));
  const sums = used.map((k) => ({ ...k, sum: page.threads.reduce((sum, t) => sum + (t.times[k.name] ?? 0), 0) })).sort((a, b) => b.sum - a.sum);
  const shown = new Set(sums.slice(0, 7).map((k) => k.name));
  const whole = (i: number): number => Object.values(page.threads[i]!.times).reduce((a, b) => a + b, 0);
  const threadColumns: Column<number>[] = [
    { key: "thread", label: "Thread", sortBy: nameOf, cell: (i) => h("button", { type: "button", class: "link", onclick: () => lines[i]!.first < lines[i]!.last && show(i, lines[i]!.first) }, isolated(nameOf(i))) },
    { key: "process", label: "Process", sortBy: processOf, cell: (i) => isolated(processOf(i)) },
    { key: "began", label: "Began", numeric: true, sortBy: (i) => page.threads[i]!.began_ns, cell: (i) => duration(page.threads[i]!.began_ns) },
    { key: "time", label: "Lived", hint: "From its begin to its end", numeric: true, sortBy: whole, cell: (i) => time(whole(i)) },
    ...(path ? [{ key: "path", label: "On the path", hint: "Its time on the critical path", numeric: true, sortBy: (i: number) => onPath[i]!, cell: (i: number) => time(onPath[i]!) }] : []),
    ...used.map((k): Column<number> => ({ key: k.name, label: k.words, hint: k.did, numeric: true, extra: !shown.has(k.name), sortBy: (i) => page.threads[i]!.times[k.name] ?? 0, cell: (i) => time(page.threads[i]!.times[k.name] ?? 0) })),
  ];
  // By time in which something was done: a thread that only waits has the longest spans.
  all.sort((a, b) => busyTime(page.threads[b]!.times) - busyTime(page.threads[a]!.times));
  const threads = sortableTable(threadColumns, all, { caption: "The same by thread: time in each state", limit: 12 });

  const stepColumns = (what: string): Column<Step>[] => [
    { key: "from", label: "Begin", numeric: true, sortBy: (s) => s.from, cell: (s) => h("button", { type: "button", class: "link", onclick: () => s.span >= 0 && show(s.line, s.span) }, moment(s.from)) },
    { key: "time", label: "Length", numeric: true, sortBy: (s) => s.time, cell: (s) => duration(s.time) },
    { key: "state", label: what, sortBy: (s) => kinds[s.state]!.words, cell: (s) => h("span", { title: kinds[s.state]!.did }, kinds[s.state]!.words) },
    { key: "thread", label: "Thread", sortBy: (s) => (s.line < 0 ? "" : nameOf(s.line)), cell: (s) => (s.line < 0 ? h("span", { class: "quiet" }, "not shown") : isolated(nameOf(s.line))) },
    { key: "process", label: "Process", sortBy: (s) => (s.line < 0 ? "" : processOf(s.line)), cell: (s) => (s.line < 0 ? "" : isolated(processOf(s.line))) },
  ];
  const steps = path && [...path.from.keys()].map((i): Step => ({ line: path.thread[i]!, span: path.thread[i]! < 0 ? -1 : (spanAt(timeline, lines[path.thread[i]!]!, path.from[i]!) ?? -1), from: path.from[i]!, time: path.to[i]! - path.from[i]!, state: path.state[i]! }));
  const pathTable = steps && sortableTable(stepColumns("What the thread did"), longest(steps), { caption: `The critical path: ${count(steps.length)} steps${steps.length > MOST ? `, of which the ${MOST} longest` : ""}`, limit: 12, sortedBy: { key: "time", descending: true } });
  const devices = page.devices.length === 0 ? null : sortableTable(
    [
      { key: "name", label: "Device", sortBy: (d) => d.name, cell: (d) => isolated(d.name) },
      { key: "requests", label: "Requests", numeric: true, sortBy: (d) => d.requests, cell: (d) => count(d.requests) },
      { key: "read", label: "Read", numeric: true, sortBy: (d) => d.read, cell: (d) => bytes(d.read) },
      { key: "written", label: "Written", numeric: true, sortBy: (d) => d.written, cell: (d) => bytes(d.written) },
      { key: "unfinished", label: "Unfinished", hint: "Requests of which the end was not seen; they are not drawn", numeric: true, sortBy: (d) => d.unfinished, cell: (d) => count(d.unfinished) },
    ],
    page.devices,
    { caption: "Devices", limit: 12 },
  );
  return h("div", { class: "timeline-tables" }, threads, pathTable, sortableTable(stepColumns("State"), longestWaits(), { caption: "The longest spans in which a thread did something, or was kept from it", limit: 12, sortedBy: { key: "time", descending: true } }), devices);

  /** Of a million spans only those that can be among the longest are kept. */
  function longestWaits(): Step[] {
    const idle = new Set(["lock", "pipe_or_socket", "events", "timer", "child", "kernel_wait", "stopped"].map((name) => page.states.indexOf(name)));
    let best: Step[] = [];
    let least = 0;
    page.threads.forEach((_, line) => {
      for (let span = lines[line]!.first; span < lines[line]!.last; span++) {
        const length = starts[span + 1]! - starts[span]!;
        if (length <= least || idle.has(states[span]!)) continue;
        best.push({ line, span, from: starts[span]!, time: length, state: states[span]! });
        if (best.length < 4 * MOST) continue;
        best = longest(best);
        least = best[best.length - 1]!.time;
      }
    });
    return longest(best);
  }
}

function longest(steps: Step[]): Step[] {
  return [...steps].sort((a, b) => b.time - a.time || a.from - b.from).slice(0, MOST);
}
