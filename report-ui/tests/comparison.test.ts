import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { changed, ledgerChanges, makeComparison } from "../fixtures/comparison";
import { beside, comparisonAnswer, figure, functionTables, judged, ledgerPairs, MEASURES, partsOf, shortName, sideWords, titleOf } from "../src/derive/comparison";
import { CATEGORIES, isWaiting } from "../src/derive/ledger-bars";

const plain = (text: string): string => text.replace(/\u00a0/g, " ");

test("the answer has the three lines: CPU time, CPU in the function, its allocations", () => {
  const { comparison } = makeComparison();
  const words = comparisonAnswer(comparison).map((w) => (typeof w === "string" ? w : w.strong)).join("");
  assert.equal(plain(words), "CPU time: 574 ms before, 93 ms after. CPU in copy_frame: 309 ms before, 0 ms after. Allocated in copy_frame: 396 MiB before, 0 B after. Findings: 1 gone.");
  assert.equal(titleOf(comparison), "./video each → ./video in-place");
  assert.equal(plain(sideWords([comparison.before[0]!, { ...comparison.before[0]!, length: { value: 12, low: null, high: null, unit: "s" } }])), "2 recordings of 10 s to 12 s");
});

test("a change without an interval is told in percent, and only an interval beside zero is judged", () => {
  assert.deepEqual([beside(changed(200, 100)), beside(changed(0, 5)), beside(changed(5, 5))].map(plain), ["−50 %", "", ""]);
  assert.deepEqual([changed(200, 100), changed(200, 100, "ms", 20), changed(100, 200, "ms", 20), changed(100, 105, "ms", 20)].map(judged), [null, "helps", "hurts", null]);
  assert.equal(plain(figure(changed(1, 3).difference, "second", true)), "+2 ms/s");
});

test("a function is told without its parameters, a namespace without a name stays", () => {
  assert.deepEqual(["copy(int)", "(anonymous namespace)::copy(int)", "main"].map(shortName), ["copy", "(anonymous namespace)::copy", "main"]);
});

test("tables of functions stand in one order and none is empty", () => {
  assert.deepEqual(functionTables(makeComparison().comparison.functions).map((t) => [t.measure, t.rows.length]), [["sampled_cpu_time", 2], ["allocated_bytes", 1]]);
});

test("a pair of bars has one row for each category, waits only where asked for, and unexplained time last", () => {
  const [pair] = ledgerPairs(ledgerChanges("app", { timer: [900, 950], user: [60, 20], unexplained: [-5, 3], minor_fault: [40, 0] }), false);
  assert.deepEqual(pair!.rows.map((r) => r.part), ["timer", "user", "minor_fault", "unexplained"]);
  assert.deepEqual([pair!.before.whole, pair!.before.length, pair!.after.whole], [95, 100, 23]);
  assert.deepEqual(partsOf(pair!), ["user", "minor_fault", "unexplained"]);
  const [all] = ledgerPairs(ledgerChanges("app", { timer: [900, 950], user: [60, 20] }), true);
  assert.deepEqual([all!.before.whole, all!.after.whole, partsOf(all!)], [960, 970, ["user", "timer"]]);
});

test("all programs together come first, then the longest, and those without time in the bars are left out", () => {
  const rows = [...ledgerChanges("small", { user: [5, 1] }), ...ledgerChanges(null, { user: [55, 61] }), ...ledgerChanges("idle", { timer: [9, 9] }), ...ledgerChanges("large", { user: [50, 60] })];
  assert.deepEqual(ledgerPairs(rows, false).map((p) => p.program), [null, "large", "small"]);
});

test("every measure and every kind of wait is the one that the program means", () => {
  const schema = JSON.parse(readFileSync(new URL("../../../docs/schemas/comparison-page.json", import.meta.url), "utf8"));
  const published = (schema.$defs.Measure.oneOf as { const: string }[]).map((m) => m.const);
  assert.deepEqual([...MEASURES.keys()], published);
  // As `Category::is_idle` of crates/analysis/src/time/ledger/account.rs.
  const source = readFileSync(new URL("../../../crates/analysis/src/time/ledger/account.rs", import.meta.url), "utf8");
  const body = /pub fn is_idle[\s\S]*?\n {4}\}/.exec(source)![0];
  const idle = [...body.matchAll(/Self::(\w+)/g)].map(([, name]) => name!.replace(/(?<!^)[A-Z]/g, "_$&").toLowerCase());
  assert.ok(idle.length > 3);
  assert.deepEqual([...CATEGORIES.keys()].filter(isWaiting).sort(), idle.sort());
});
