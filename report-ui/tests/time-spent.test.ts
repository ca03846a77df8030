import assert from "node:assert/strict";
import { test } from "node:test";
import { timeTable } from "../src/derive/time-spent";
import type { Part, Quantity, TimeSpent } from "../src/types";

const ms = (value: number): Quantity => ({ value, low: null, high: null, unit: "ms" });

function launch(condition: TimeSpent["condition"], reads: number, uncounted = 0): TimeSpent {
  const row = (part: Part, title: string, time: number, cpu: number | null) => ({ part, title, to_ready: ms(time), cpu: cpu === null ? null : ms(cpu) });
  return { condition, recording: null, time_to_ready: ms(reads + 12), cpu: ms(9), rows: [row("storage", "storage and major faults", reads, 1), row("waits", "waits for others", 10, null), row("program", "running", 0, 8)], unexplained: ms(2), uncounted_threads: uncounted, has_memory_calls: true };
}

test("cold and warm launches stand beside each other, each with its time to ready and its CPU time", () => {
  const table = timeTable([launch("cold", 40), launch("warm", 0)])!;
  assert.deepEqual(table.columns, ["Cold: to ready", "Cold: CPU", "Warm: to ready", "Warm: CPU"]);
  const values = [...table.rows, table.whole].map((r) => [r.title, ...r.cells.map((cell) => cell?.value ?? null)]);
  assert.deepEqual(values, [
    ["storage and major faults", 40, 1, 0, 1],
    ["waits for others", 10, null, 10, null],
    ["running", 0, 8, 0, 8],
    ["unexplained", 2, null, 2, null],
    ["total of the recorded launch", 52, 9, 12, 9],
  ]);
  assert.deepEqual(table.notes, []);
});

test("threads whose CPU time is missing are told, and without launches there is no table", () => {
  assert.deepEqual(timeTable([launch("warm", 0, 2)])!.notes, ["Warm: the CPU time of 2 threads is not known and missing."]);
  assert.equal(timeTable([]), null);
});

test("of what ran already only the CPU time is told", () => {
  const running = { ...launch("running", 0), time_to_ready: null, unexplained: null };
  const table = timeTable([{ ...running, rows: running.rows.map((r) => ({ ...r, to_ready: null })) }])!;
  assert.deepEqual([table.columns, table.rows.map((r) => r.title)], [["CPU"], ["storage and major faults", "waits for others", "running"]]);
  assert.deepEqual([...table.rows, table.whole].map((r) => r.cells.map((cell) => cell?.value ?? null)), [[1], [null], [8], [9]]);
});

test("the cost of recording is shown where it is much", () => {
  const notes = (recording: number): string[] => timeTable([{ ...launch("warm", 0), recording: ms(recording) }])!.notes;
  assert.deepEqual(notes(0.4), []);
  assert.match(notes(3).join("\n"), /^Warm: 3\sms of the CPU time went to recording faults and their call stacks\.$/);
});
