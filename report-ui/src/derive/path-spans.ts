// The spans by which launches are compared -> the spans of the timeline that they are made of.
//
// Owns which state of the timeline a category of the critical path is. A span of a launch is the sum of many steps; the longest of them
// stands for it.

import type { Nanos } from "../types";
import { UNEXPLAINED, type BarPart } from "./ledger-bars";
import { spanAt, type Timeline } from "./timeline";

/** Threads of one name in processes of one name. */
export interface PathOwner {
  program: string;
  thread: string | null;
}

/** A span of the timeline. */
export interface PathSpan {
  line: number;
  from: Nanos;
  to: Nanos;
}

/** Time that no category has on a clock; the path calls all of it `on_cpu`. */
const ON_CPU: ReadonlySet<BarPart> = new Set(["user", "kernel", "on_cpu", "stolen"]);

function stateOf(part: BarPart): string {
  return part === UNEXPLAINED ? "not_recorded" : ON_CPU.has(part) ? "running" : part;
}

/** A function that finds the span behind the longest step of a category, of these threads or of all; null where the timeline has none. */
export function longestOnPath(timeline: Timeline): (part: BarPart, owner: PathOwner | null) => PathSpan | null {
  const { path, page, lines, starts } = timeline;
  const key = (state: string, owner: PathOwner | null): string => JSON.stringify(owner ? [state, owner.program, owner.thread] : [state]);
  const longest = new Map<string, number>();
  const length = (step: number): Nanos => path!.to[step]! - path!.from[step]!;
  for (let step = 0; path && step < path.from.length; step++) {
    const thread = path.thread[step]!;
    if (thread < 0) continue;
    const { process, name } = page.threads[thread]!;
    const state = page.states[path.state[step]!]!;
    for (const one of [key(state, null), key(state, { program: page.processes[process]!.name, thread: name })]) {
      const known = longest.get(one);
      if (known === undefined || length(step) > length(known)) longest.set(one, step);
    }
  }
  return (part, owner) => {
    const step = longest.get(key(stateOf(part), owner));
    if (step === undefined || !path) return null;
    const line = path.thread[step]!;
    const span = spanAt(timeline, lines[line]!, (path.from[step]! + path.to[step]!) / 2);
    return span === null ? null : { line, from: starts[span]!, to: starts[span + 1]! };
  };
}
