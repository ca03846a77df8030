// Where time goes: cold and warm launches beside each other, or what ran already.

import { quantityValue } from "../format";
import type { Quantity, TimeSpent } from "../types";

/** Share of the CPU time from which the cost of recording is shown. */
const LEAST_RECORDING = 0.05;

/** A row: for each launch its time to ready and its CPU time, for what ran already its CPU time; null where there is none. */
export interface TimeRow {
  title: string;
  cells: (Quantity | null)[];
}

export interface TimeTable {
  columns: string[];
  rows: TimeRow[];
  whole: TimeRow;
  /** What the figures lack. */
  notes: string[];
}

const isLaunch = (one: TimeSpent): boolean => one.time_to_ready !== null;

function cells(one: TimeSpent, toReady: Quantity | null, cpu: Quantity | null): (Quantity | null)[] {
  return isLaunch(one) ? [toReady, cpu] : [cpu];
}

/** The table of the recordings; null without any. */
export function timeTable(recordings: readonly TimeSpent[]): TimeTable | null {
  const first = recordings[0];
  if (!first) return null;
  const name = (one: TimeSpent): string => one.condition.charAt(0).toUpperCase() + one.condition.slice(1);
  const row = (part: string, title: string): TimeRow => ({
    title,
    cells: recordings.flatMap((one) => {
      const found = one.rows.find((r) => r.part === part);
      return cells(one, found?.to_ready ?? null, found?.cpu ?? null);
    }),
  });
  const parts = first.rows.map((r) => row(r.part, r.title));
  const unexplained = { title: "unexplained", cells: recordings.flatMap((one) => cells(one, one.unexplained, null)) };
  const uncounted = recordings.filter((one) => one.uncounted_threads > 0);
  return {
    columns: recordings.flatMap((one) => (isLaunch(one) ? [`${name(one)}: to ready`, `${name(one)}: CPU`] : ["CPU"])),
    rows: recordings.some(isLaunch) ? [...parts, unexplained] : parts,
    whole: { title: recordings.every(isLaunch) ? "total of the recorded launch" : "total", cells: recordings.flatMap((one) => cells(one, one.time_to_ready, one.cpu)) },
    notes: [
      ...recordings.flatMap((one) => {
        const recording = one.recording ?? null;
        return recording && recording.value >= one.cpu.value * LEAST_RECORDING ? [`${name(one)}: ${quantityValue(recording)} of the CPU time went to recording faults and their call stacks.`] : [];
      }),
      ...uncounted.map((one) => `${name(one)}: the CPU time of ${one.uncounted_threads} ${one.uncounted_threads === 1 ? "thread" : "threads"} is not known and missing.`),
      ...recordings.filter((one) => !one.has_memory_calls).map((one) => `${name(one)}: memory calls were not recorded; they are part of “running”.`),
    ],
  };
}
