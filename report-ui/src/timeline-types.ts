// The data contract of the timeline: columns of the report that say what every thread did when.
//
// Times are ns since `zero` and may be negative. Columns named `LEB128` hold numbers of any length, seven bits a byte, the lowest
// first; both they and bytes are base64.

import type { Bytes, Nanos } from "./types";

export interface PageTimeline {
  /** `CLOCK_MONOTONIC`. */
  zero: Nanos;
  /** If false, only faults and memory calls are known, and the rest is the state `not_recorded`. */
  has_waits: boolean;
  /** Names by the index that spans use. */
  states: string[];
  /** Shorter spans that follow each other are one of the state `several`; 0 where every span is there. */
  finest_ns: Nanos;
  /** Parents before their children. */
  processes: TimelineProcess[];
  /** Those of a process together, in the order of `processes`. */
  threads: TimelineLine[];
  /** Their spans follow those of the threads. */
  devices: TimelineDevice[];
  spans: { count: number; states: string; lengths: string };
  /** In the order of time. */
  wakes: { count: number; first_ns: Nanos; gaps: string; wakers: string; woken: string; left_out: number };
  milestones: Milestone[];
  path: TimelinePath | null;
  other_threads: number;
  incomplete_threads: number;
}

export interface TimelineProcess {
  name: string;
  pid: number;
  /** `CLOCK_MONOTONIC`; tells processes apart that had one pid. */
  start: Nanos;
  parent: number | null;
  began_ns: Nanos;
}

export interface TimelineLine {
  process: number;
  tid: number;
  name: string | null;
  began_ns: Nanos;
  /** How many of the spans are its; they follow each other. */
  spans: number;
  /** By state, exact also where spans are folded. */
  times: Record<string, Nanos>;
}

export interface TimelineDevice {
  name: string;
  began_ns: Nanos;
  spans: number;
  requests: number;
  read: Bytes;
  written: Bytes;
  unfinished: number;
}

export type MilestoneKind = "released" | "made" | "exec" | "first_wait" | "ready" | "ended";

export interface Milestone {
  at_ns: Nanos;
  kind: MilestoneKind;
  /** Null for the launch as a whole. */
  process: number | null;
  text: string;
}

export interface TimelinePath {
  from_ns: Nanos;
  to_ns: Nanos;
  is_ready: boolean;
  count: number;
  gaps: string;
  lengths: string;
  /** Index into `threads`, or their number for a thread that is not there. */
  threads: string;
  states: string;
  left_out: number;
}
