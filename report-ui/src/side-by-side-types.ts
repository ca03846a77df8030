// The data contract of what stands beside each other: launches of one command, and children of one kind.
//
// Owns the shape of that JSON, which the page of a recording and that of a comparison share. Times are ns.

import type { LedgerCategory, Nanos } from "./types";

/** Time of one category. */
export interface CategoryTime {
  category: LedgerCategory;
  time_ns: Nanos;
}

export interface SideBySide {
  /** The others are compared with the first. Foreign text; empty where launches have no group. */
  groups: string[];
  /** Those of the first group first. */
  launches: LaunchBeside[];
  /** Of those that differ most between launches; names are unique. */
  spans: SpanBeside[];
  /** By launch, time on the critical path in spans that are not here. */
  other_spans_ns: Nanos[];
  /** Recordings whose critical path is not known; perhaps not all. */
  without_path: string[];
  /** Launches beyond those that are here. */
  left_out: number;
  /** Different command lines among the launches. */
  command_lines: number;
}

export interface LaunchBeside {
  /** Directory of its recording. */
  recording: string;
  /** Index into `groups`. */
  group: number;
  /** To ready, or to its end where it never got ready; `times` and `unexplained_ns` add up to it. */
  time_ns: Nanos;
  is_ready: boolean;
  /** Whether the rest of the page is about it. */
  is_shown: boolean;
  /** On the critical path. */
  times: CategoryTime[];
  unexplained_ns: Nanos;
  /** Events lost while it was recorded. */
  lost: number;
}

/** `path`: on the critical path, a category of null is time of which nothing was recorded. Children are counted from 1 in the order of their forks. */
export type SpanName =
  | { kind: "path"; program: string; thread: string | null; category: LedgerCategory | null }
  | { kind: "child_start" | "child_life"; child: string; number: number };

export interface SpanBeside {
  name: SpanName;
  /** By launch; null where it has none. */
  times_ns: (Nanos | null)[];
}

export interface SiblingStarts {
  /** At least two children each. */
  kinds: SiblingKind[];
  /** Children that are not here. */
  left_out: number;
}

export interface SiblingKind {
  kind: string;
  /** If not, they are copies of their parent. */
  executed: boolean;
  /** In the order of their forks. */
  children: SiblingStart[];
}

export interface SiblingStart {
  pid: number;
  /** `CLOCK_MONOTONIC`. */
  start: Nanos;
  /** Since the begin of the launch. */
  forked_ns: Nanos;
  /** From its fork to `end`; `times` add up to it. */
  time_ns: Nanos;
  end: "ready" | "exited" | "last_alike";
  /** What its main thread did. */
  times: CategoryTime[];
  /** On the CPU, of all its threads. */
  cpu_ns: Nanos;
  /** Null where less than three do the same. */
  alike: AlikeWork | null;
}

/** Work that at least three children of one program do alike, as in the finding `repeated_child_work`. */
export interface AlikeWork {
  steps: number;
  cpu_ns: Nanos;
  /** Of the child in the middle. */
  typical_ns: Nanos;
  /** Of further steps that can be work of its own. */
  doubtful_ns: Nanos;
  /** End of the last of them, since the fork. */
  until_ns: Nanos;
}
