// A finding -> what of it can be selected: its process, and its files as far as the I/O map has them.
//
// Owns where a finding names them. Findings about files alone are about the processes that read them.

import type { SelectedProcess } from "../selection";
import type { Finding, IoMap } from "../types";

/** Keys of a subject, or of a row of evidence, that hold a path. */
const PATHS = ["file", "path"] as const;

export interface FindingSubject {
  /** What the finding itself says. */
  pid: number | null;
  name: string | null;
  /** Null for every process. */
  processes: SelectedProcess[] | null;
  /** By index; null where the I/O map has none of them. */
  files: ReadonlySet<number> | null;
}

/** By path. */
export function fileNumbers(map: IoMap | null): ReadonlyMap<string, number> {
  return new Map(map?.files.map(({ path }, i) => [path, i]));
}

export function findingSubject({ subject, evidence }: Finding, map: IoMap | null, numbers: ReadonlyMap<string, number>): FindingSubject {
  const pid = typeof subject["pid"] === "number" ? subject["pid"] : null;
  const name = typeof subject["process"] === "string" ? subject["process"] : null;
  const cells = [subject, ...evidence.flatMap((e) => e.rows ?? [])].flatMap((row) => PATHS.map((key) => row[key]));
  const found = new Set(cells.flatMap((cell) => (typeof cell === "string" ? (numbers.get(cell) ?? []) : [])));
  const files = found.size > 0 ? found : null;
  const own = pid === null && name === null ? null : [{ pid, name: name ?? "" }];
  return { pid, name, files, processes: own ?? (files && map ? readersOf(map, files) : null) };
}

function readersOf({ reads, processes }: IoMap, files: ReadonlySet<number>): SelectedProcess[] {
  const found = new Set<number>();
  reads.file.forEach((file, i) => files.has(file) && found.add(reads.process[i]!));
  return [...found].sort((a, b) => a - b).map((i) => processes[i]!);
}
