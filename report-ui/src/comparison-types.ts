// The data contract of the page of a comparison: what `slowpath compare -o` writes and this page reads.
//
// Owns the shape of that JSON beside `types.ts`, whose parts it shares. A change of the shape changes
// `COMPARISON_SCHEMA`.

import type { SideBySide } from "./side-by-side-types";
import type { FlameGraphs, FlameWeight, LedgerCategory, Quantity, Unavailable, Unit } from "./types";

export const COMPARISON_SCHEMA = "slowpath-comparison-page/1";

export interface HtmlComparison {
  schema: typeof COMPARISON_SCHEMA;
  /** When the page was made, RFC 3339. */
  generated: string;
  comparison: Comparison;
  /** Null where no weight can be compared. */
  flame_graphs: DifferentialFlames | null;
  /** In the groups `before` and `after`; null for less than two that are known, left out in older data. */
  launches?: SideBySide | null;
}

/** Figures are those of one recording, or with `per` of `second` those a second; times to ready are of a launch in either case. */
export interface Comparison {
  schema: string;
  before: ComparedRecording[];
  after: ComparedRecording[];
  per: "recording" | "second";
  per_reason: string;
  /** Whether differences have a 95 % interval; if not, there are too few recordings. */
  has_intervals: boolean;
  totals: { measure: Measure; change: Change }[];
  findings: FindingChange[];
  /** By measure the largest differences first. */
  functions: FunctionChange[];
  functions_left_out: number;
  programs: { program: string; measure: Measure; change: Change }[];
  ledger: LedgerChange[];
  gaps: Unavailable[];
  notes: string[];
}

export interface ComparedRecording {
  recording: string;
  command: string[];
  /** In s. */
  length: Quantity;
  losses: Record<string, number>;
  unavailable: Unavailable[];
}

export interface Change {
  before: Quantity;
  after: Quantity;
  /** After minus before. */
  difference: Quantity;
  ratio: Quantity | null;
}

export type Measure =
  | "time_to_ready"
  | "cpu_time"
  | "sampled_cpu_time"
  | "sampled_kernel_time"
  | "kernel_thread_time"
  | "background_reclaim"
  | "faults"
  | "faults_by_kernel"
  | "fault_time"
  | "allocations"
  | "allocated_bytes"
  | "map_time"
  | "releases"
  | "release_time"
  | "off_cpu_time"
  | "runnable_time";

export interface FunctionChange {
  /** Null for all of `file` together whose names are not known. */
  function: string | null;
  file: string;
  measure: Measure;
  change: Change;
}

export interface LedgerChange {
  /** Null for all together. */
  program: string | null;
  /** Null for what is unexplained. */
  category: LedgerCategory | null;
  change: Change;
}

export interface FindingChange {
  name: string;
  /** The name in the version before; left out where it had no other. */
  former_name?: string;
  program: string;
  function: string | null;
  title: string;
  state: "gone" | "new" | "both" | "unknown";
  /** Recordings that have it. */
  found_before: number;
  found_after: number;
  before: Quantity | null;
  after: Quantity | null;
  /** Null where not all recordings have it. */
  difference: Quantity | null;
}

export interface DifferentialFlames {
  frames: FlameGraphs["frames"];
  places: FlameGraphs["places"];
  /** One for each weight, also for those that cannot be compared. */
  graphs: DifferentialGraph[];
}

export interface DifferentialGraph {
  weight: FlameWeight;
  unit: Unit;
  /** What sums before are divided by: the recordings there, or their seconds. */
  before_of: number;
  after_of: number;
  unavailable: Unavailable | null;
  callees: DifferentialTree | null;
  callers: DifferentialTree | null;
}

/** Columns of one length, an entry a node; order and depths are those of a `FlameTree`. */
export interface DifferentialTree {
  depth: number[];
  /** Index into `frames`. */
  frame: number[];
  /** With all that is below, sum of all recordings before. */
  before: number[];
  after: number[];
  /** Nodes with less of all, on average of both sides, are folded into a child `(other)` of their caller. */
  smallest_share: number;
  /** Nodes whose difference has an interval that holds zero; null where there are no intervals. */
  chance: { all: number[]; own: number[] } | null;
}
