// The data contract of the report: what the Rust side prints and this page reads.
//
// Owns the shape of the JSON and the unit of every number in it. Leaves reading and checking it to
// `derive/read-report.ts`, and every computed value to the other files of `derive/`.
// A change of the shape changes `SCHEMA`.

import type { SiblingStarts, SideBySide } from "./side-by-side-types";
import type { PageTimeline } from "./timeline-types";

export const SCHEMA = "slowpath-report/2";

/** Nanoseconds; at this boundary always named by the suffix `_ns`. */
export type Nanos = number;
/** Bytes. */
export type Bytes = number;
/** A number of pages, or a page's index in its file; a page has `PAGE_BYTES` bytes. */
export type Pages = number;
/** Bytes of a page, whatever pages the machine's kernel has. */
export const PAGE_BYTES: Bytes = 4096;
/** Milliseconds; only in launch samples, named by the suffix `_ms`. */
export type Millis = number;

export type Unit = "ns" | "us" | "ms" | "s" | "bytes" | "pages" | "count" | "ratio" | "percent";

/** A value with its 95 % interval; `low` and `high` are null where no interval can be given. */
export interface Quantity {
  value: number;
  low: number | null;
  high: number | null;
  unit: Unit;
}

export interface Report {
  schema: typeof SCHEMA;
  /** The command line, as one string. */
  title: string;
  /** When the report was made, RFC 3339. */
  generated: string;
  machine: Machine;
  /** Null when the report describes one recording without compared launches. */
  diagnosis: Diagnosis | null;
  findings: Finding[];
  /** Events lost while recording, by kind. */
  losses: Record<string, number>;
  unavailable: Unavailable[];
  io_map: IoMap | null;
  /** Where the time of threads and processes went; null where that was not recorded. */
  ledger: HtmlLedger | null;
  /** Call stacks by weight; null where no row has one. */
  flame_graphs: FlameGraphs | null;
  /** What every thread did when; null where of none both begin and end are known, left out in older data. */
  timeline?: PageTimeline | null;
  /** Launches of the same command; null for one alone, left out in older data. */
  launches?: SideBySide | null;
  /** Children of one kind; null where no two were seen, left out in older data. */
  siblings?: SiblingStarts | null;
}

export interface Machine {
  kernel: string;
  cpus: number;
  memory_bytes: Bytes;
  page_size: Bytes;
  storage: string;
}

export interface Diagnosis {
  schema: string;
  /** Whether warm launches were diagnosed; left out in older data, which has cold ones. */
  warm?: boolean;
  command: string[];
  recording: string;
  /** Where nothing was launched: the processes that were recorded while they ran. */
  running?: { processes: string; watched: Quantity };
  launch: {
    /** The event that ends a launch. */
    ready: string;
    seed: number;
    blocks: number;
    conditions: string[];
    /** What decides the verdicts; left out where it is the time to ready. */
    judged_by?: "wall" | "cpu" | string;
    arms: Arm[];
  };
  /** Where the time of the recorded launches went, one of each kind; left out in older data. */
  time?: TimeSpent[];
  findings: Finding[];
  /** The fixes for the findings of warm launches, also those that could not be tried. */
  fixes?: FixPlan[];
  verdicts: Verdict[];
  /** What launches as root could not show; null or left out where they ran as somebody else. */
  hidden_by_root?: HiddenByRoot | null;
  /** Per arm, the share of the cold-to-warm gap that it removed. */
  share_of_gap_removed: { arm: string; share: Quantity }[];
  losses: Record<string, number>;
  unavailable: Unavailable[];
  notes: string[];
}

/** Compiled and cached files that root read, and that another user may not read. */
export interface HiddenByRoot {
  /** For whom that was decided. */
  uid: number;
  used: number;
  unreadable: number;
  /** Of how many it cannot be decided. */
  unknown: number;
  /** What denies, the most files first; perhaps not all. */
  rules: { path: string; rule: string; artifacts: number }[];
  /** Perhaps not all. `change` is null where no command can allow it. */
  artifacts: { path: string; family: string; denied_by: string; change: string | null }[];
}

/** Where the time of one recording went. */
export interface TimeSpent {
  condition: "cold" | "warm" | "running" | string;
  /** `to_ready` of the rows and `unexplained` add up to it; null for what ran already. */
  time_to_ready: Quantity | null;
  /** `cpu` of the rows add up to it. */
  cpu: Quantity;
  /** The part of `cpu` in which faults and their call stacks were recorded; null or left out where it was not measured. */
  recording?: Quantity | null;
  rows: { part: string; title: string; to_ready: Quantity | null; cpu: Quantity | null }[];
  unexplained: Quantity | null;
  uncounted_threads: number;
  /** If not, memory calls are part of `program`. */
  has_memory_calls: boolean;
}

export type Role = "baseline" | "fix" | "sham" | "rival" | "warm";

export interface Arm {
  name: string;
  title: string;
  role: Role;
  /** Time to ready; the index is the block, null is a launch that was discarded or failed. */
  samples_ms: (Millis | null)[];
  /** Null where no launch counts. */
  median: Quantity | null;
  bytes_read: Quantity | null;
  /** CPU time of the process tree, as `samples_ms`. */
  cpu_samples_ms?: (Millis | null)[];
  cpu?: Quantity | null;
  minor_faults?: Quantity | null;
  peak_rss?: Quantity | null;
  discarded: number;
  failed: number;
  discard_reasons: string[];
}

export type Confidence = "high" | "medium" | "low";

export interface Finding {
  name: string;
  /** The name in the version before; left out where it had no other. */
  former_name?: string;
  title: string;
  /** What the finding is about: process, pid, file and the like. */
  subject: Record<string, Cell>;
  cost: Quantity;
  /** Positive is time saved. */
  predicted_saving: Quantity | null;
  confidence: Confidence;
  reasons: string[];
  evidence: Evidence[];
  /** Names of the fixes that apply. */
  fixes: string[];
  /** A command with a standard tool that shows the same. */
  see_by_hand: string;
}

export interface Evidence {
  text: string;
  /** Left out or empty where the text says it all. */
  rows?: Record<string, Cell>[];
}

/** A cell of an evidence row; a quantity keeps its unit, a bare number is read by its key's suffix; others are shown as JSON. */
export type Cell = string | number | boolean | null | Quantity | Cell[] | { [key: string]: Cell };

export type Outcome = "helps" | "hurts" | "no_difference" | "inconclusive" | "not_testable";

export interface Verdict {
  arm: string;
  fix?: string;
  outcome: Outcome;
  /** What follows for a fix; null or left out for other arms. */
  decision?: Decision | null;
  /** Change against the baseline that was predicted before the first treated launch; negative is faster, or less. */
  predicted: Quantity | null;
  /** Change against the baseline; negative is faster, or less. */
  measured: Quantity | null;
  minimum_detectable_effect: Quantity | null;
  pairs: number;
  discarded: number;
  reason: string;
  /** Changes by other metrics. */
  beside?: { metric: string; change: Quantity | null; outcome: Outcome }[];
}

export type Decision = "proved" | "withdrawn" | "not_shown" | "not_tried";

/** What a fix is, before anybody tried it. */
export interface FixPlan {
  fix: string;
  /** The name of its arm. */
  name: string;
  title: string;
  changes: { what: string; from: string | null; to: string }[];
  side_effects: string[];
  price: string;
  security_cost: string;
  undo: string;
  trial: { possible: boolean; how: string };
}

export interface Unavailable {
  what: string;
  reason: string;
  remedy: string;
}

export interface IoMap {
  duration_ns: Nanos;
  /** Null when the launch had no ready event. */
  ready_ns: Nanos | null;
  files: IoFile[];
  processes: { pid: number; name: string }[];
  /** What asked for a read, by index: fault, read, readahead, advice, exec, metadata, other. */
  askers: string[];
  reads: ReadColumns;
}

export interface IoFile {
  path: string;
  size: Bytes;
  sections: Section[];
  /** `[first page, page count]` that a launch without readahead asked for; null is unknown. */
  needed: [Pages, Pages][] | null;
  pages_needed: Pages | null;
  pages_read: Pages;
  jumps: { forward: number; backward: number; adjacent: number } | null;
  blocked_ns: Nanos;
}

export type SectionKind = "text" | "rodata" | "relocations" | "data" | "metadata" | "other";

export interface Section {
  name: string;
  kind: SectionKind;
  offset: Bytes;
  size: Bytes;
}

/** Columns of one length; an entry is one contiguous insertion into the page cache, sorted by time. */
export interface ReadColumns {
  t_ns: Nanos[];
  /** Index into `files`. */
  file: number[];
  /** First page of the run. */
  page: Pages[];
  /** Length of the run. */
  pages: Pages[];
  /** Index into `askers`. */
  asker: number[];
  /** Index into `processes`. */
  process: number[];
}

export interface HtmlLedger {
  /** The busiest threads and processes, each busiest first. */
  busiest: Ledger;
  /** What is left out, together; null for nothing. */
  other_threads: LedgerSum | null;
  other_processes: LedgerSum | null;
}

export interface Ledger {
  threads: LedgerThread[];
  processes: LedgerProcess[];
  /** Threads of which begin or end was not recorded; they are left out. */
  incomplete_threads: number;
  /** Intervals off the CPU that were lost; their time is unexplained. */
  lost_intervals: number;
  /** Whether memory calls were recorded; if not, they are part of the category `kernel`. */
  has_memory_calls: boolean;
}

export type LedgerCategory =
  | "user"
  | "kernel"
  | "on_cpu"
  | "minor_fault"
  | "major_fault"
  | "memory_call"
  | "other_io"
  | "lock"
  | "pipe_or_socket"
  | "events"
  | "timer"
  | "child"
  | "kernel_wait"
  | "runnable"
  | "throttled"
  | "stopped"
  | "stolen";

export interface LedgerRow {
  category: LedgerCategory;
  /** In ms. */
  time: Quantity;
  share: Quantity | null;
}

/** Rows and `unexplained` add up to `wall`. */
export interface LedgerThread {
  process: string;
  pid: number;
  start: Nanos;
  tid: number;
  thread: string | null;
  began: Nanos;
  ended: Nanos;
  wall: Quantity;
  rows: LedgerRow[];
  /** Negative where categories have more than there is; null where it is not known. */
  unexplained: Quantity | null;
  unexplained_share: Quantity | null;
  on_cpu: Quantity | null;
  runnable_by_kernel: Quantity | null;
  /** What told user and kernel time apart. */
  split_by: "samples" | "kernel_counters" | "nothing";
  untimed_faults: number;
}

/** Rows and `unexplained` add up to `thread_time`. */
export interface LedgerProcess {
  process: string;
  pid: number;
  start: Nanos;
  threads: number;
  wall: Quantity;
  thread_time: Quantity;
  rows: LedgerRow[];
  unexplained: Quantity | null;
  unexplained_share: Quantity | null;
  /** Threads of which `unexplained` is not known. */
  unchecked_threads: number;
}

export interface LedgerSum {
  count: number;
  thread_time: Quantity;
  rows: LedgerRow[];
  unexplained: Quantity | null;
}

export interface FlameGraphs {
  /** Columns of one length: a function in a file, or what stands for one. */
  frames: {
    name: string[];
    /** Index into `places`. */
    place: number[];
  };
  places: { name: string; kind: PlaceKind }[];
  /** One for each weight, also for those that were not recorded. */
  graphs: FlameGraph[];
  /** Threads that have rows; left out in older data. */
  threads?: FlameThreads;
}

/** Columns of one length. */
export interface FlameThreads {
  pid: number[];
  tid: number[];
  /** Its process, as an index into `frames`. */
  process: number[];
}

/** The rows of a weight in the order of time. Columns hold LEB128 in base64, as those of the timeline. */
export interface FlameRows {
  count: number;
  /** When the first began, since the begin of the launch. */
  first_ns: Nanos;
  gaps: string;
  /** In the unit of the graph; of times also how long a row lasted. */
  weights: string;
  /** Index into `threads`. */
  threads: string;
  /** Index into `callees` and `callers`. */
  places: string;
  place_count: number;
  /** By place, the node of a tree that has the row as its own. */
  callees: string;
  callers: string;
  /** Rows that are not here because there are too many: the lightest. */
  left_out: number;
  left_out_weight: number;
}

/** `whole` is the root, `folded` what is too small to be shown. */
export type PlaceKind = "whole" | "folded" | "process" | "file" | "vdso" | "generated" | "kernel" | "unknown";

export type FlameWeight = "cpu_samples" | "off_cpu" | "fault_time" | "allocated";

export interface FlameGraph {
  weight: FlameWeight;
  unit: Unit;
  /** Sum of all rows, in `unit`. */
  total: number;
  /** Why there are no trees; null where there are. */
  unavailable: Unavailable | null;
  /** From the outermost functions to what they called. */
  callees: FlameTree | null;
  /** From the innermost functions to what called them. */
  callers: FlameTree | null;
  /** With their times; null where there are no trees, left out in older data. */
  rows?: FlameRows | null;
}

/** Columns of one length, an entry a node: a caller before its children, these heaviest first. */
export interface FlameTree {
  /** 0 for the root, which comes first. */
  depth: number[];
  /** Index into `frames`. */
  frame: number[];
  /** With all that is below, in the unit of the graph. */
  weight: number[];
  /** Nodes of less are folded into a child `(other)` of their caller. */
  smallest: number;
}
