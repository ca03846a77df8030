import assert from "node:assert/strict";
import { test } from "node:test";
import { evidenceColumns, type Row } from "../src/derive/evidence-columns";

const FILE: Row = {
  blocked_ms: 66.875, median_kib_data: 68, median_kib_text: 128, pages_by_exec: 21, pages_by_fault: 46, pages_by_readahead: 1275, pages_needed: 893,
  pages_read: 1342, pages_wasted: 449, path: "/usr/bin/python3.11", size_bytes: 6831736, steps_adjacent: 145, steps_backward: 393, steps_forward: 354,
};
const REST: Row = { path: "(115 more files)", pages_read: 900, blocked_ms: 3.2 };
const shown = (rows: Row[]): string[] => evidenceColumns(rows).filter((c) => !c.extra).map((c) => c.label);
const cells = (rows: Row[], row: Row): string[] => evidenceColumns(rows).filter((c) => !c.extra).map((c) => c.text(row).replace(/\u00a0/g, " "));

test("a row of a file names it first, then what was needed, read, wasted, in what order and at what cost", () => {
  assert.deepEqual(shown([FILE, REST]), ["path", "needed, pages", "read, pages", "wasted, pages", "jumps fwd / back / adj.", "blocked, ms", "size"]);
  assert.deepEqual(cells([FILE, REST], FILE), ["/usr/bin/python3.11", "893", "1,342", "449", "354 / 393 / 145", "66.9", "6.52 MiB"]);
  assert.deepEqual(cells([FILE, REST], REST), ["(115 more files)", "–", "900", "–", "–", "3.20", "–"]);
});

test("breakdowns are shown on demand in a wide table and at once in a narrow one", () => {
  assert.deepEqual(evidenceColumns([FILE]).filter((c) => c.extra).map((c) => c.label), ["median data, KiB", "median text, KiB", "by exec, pages", "by fault, pages", "by readahead, pages"]);
  assert.deepEqual(shown([{ path: "/a", pages_read: 3, pages_by_fault: 3 }]), ["path", "read, pages", "by fault, pages"]);
});

test("a column that is null in every row is left out, a null in others is unknown", () => {
  const rows: Row[] = [{ path: "/a", pages_read: 3, pages_needed: null, blocked_ms: null }, { path: "/b", pages_read: 4, pages_needed: null, blocked_ms: 1 }];
  assert.deepEqual(shown(rows), ["path", "read, pages", "blocked, ms"]);
  assert.deepEqual(cells(rows, rows[0]!), ["/a", "3", "unknown"]);
});

test("times of any unit are told in milliseconds, shares in percent, identifiers as they are", () => {
  const row: Row = { process: "python3", pid: 24982, in_tree: true, first_ns: 3_100_000, blocked_us: 250, share_percent: 82.58, cost: { value: 3, low: 2, high: 4, unit: "ms" } };
  assert.deepEqual(shown([row]), ["process", "pid", "in tree", "blocked, ms", "first, ms", "share, %", "cost"]);
  assert.deepEqual(cells([row], row), ["python3", "24982", "yes", "0.25", "3.10", "83", "3 ms (2 to 4 ms)"]);
});

test("the division of a launch starts with the launch and ends with what is unexplained", () => {
  assert.deepEqual(shown([{ blocked_any_thread_ms: 1, blocked_process_ms: 1, launch_ms: 2, unexplained_ms: 1 }]), ["launch, ms", "blocked any thread, ms", "blocked process, ms", "unexplained, ms"]);
});

test("keys that only sound like others, and rows without cells, make no trouble", () => {
  assert.deepEqual(evidenceColumns([{}, {}]), []);
  assert.deepEqual(shown([{ constructor: 1, ms: 2, pages: 3, __x__ms: 4 } as unknown as Row]).length, 4);
});
