import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { ledgerProcess, ledgerThread, pageLedger } from "../fixtures/ledger";
import { seeded } from "../fixtures/random";
import { barSentence, CATEGORIES, ledgerPicture, UNEXPLAINED, type LedgerBar } from "../src/derive/ledger-bars";
import type { LedgerThread, HtmlLedger } from "../src/types";

function ledgerOf(threads: LedgerThread[], more: Partial<HtmlLedger> = {}): HtmlLedger {
  return { busiest: { threads, processes: [ledgerProcess(threads)], incomplete_threads: 0, lost_intervals: 0, has_memory_calls: true }, other_processes: null, other_threads: null, ...more };
}

const near = (a: number, b: number): boolean => Math.abs(a - b) < 1e-9;
const parts = (bar: LedgerBar): string[] => bar.segments.map((s) => `${s.row.part} ${s.from.toFixed(2)}-${s.to.toFixed(2)}`);

test("a bar's parts stand in one order, fill it, and what is unexplained is the last of them", () => {
  const thread = ledgerThread("app", 7, 8, "worker", 100, { lock: 50, user: 30, minor_fault: 15 });
  const { threads } = ledgerPicture(ledgerOf([thread]));
  assert.deepEqual(parts(threads[0]!), ["user 0.00-0.30", "minor_fault 0.30-0.45", "lock 0.45-0.95", "unexplained 0.95-1.00"]);
  assert.deepEqual(threads[0]!.rows.map((r) => [r.part, r.time?.value, r.share]), [["lock", 50, 0.5], ["user", 30, 0.3], ["minor_fault", 15, 0.15], ["unexplained", 5, 0.05]]);
  assert.deepEqual([threads[0]!.name, threads[0]!.detail], ["worker (app)", "pid 7, thread 8"]);
});

test("rows that have more than there is make the bar longer, not its parts fewer, and the doubt stays a row", () => {
  const { threads } = ledgerPicture(ledgerOf([ledgerThread("app", 7, 7, null, 100, { user: 80, timer: 45 })]));
  const bar = threads[0]!;
  assert.deepEqual([bar.whole, bar.length], [100, 125]);
  assert.deepEqual(parts(bar), ["user 0.00-0.64", "timer 0.64-1.00"]);
  assert.deepEqual([bar.unexplained.time?.value, bar.unexplained.share], [-25, -0.25]);
});

test("unexplained time that is not known is not nothing, and a thread without time has no shares", () => {
  const known = ledgerThread("app", 7, 7, null, 100, { on_cpu: 100 });
  const ledger = ledgerOf([known]);
  ledger.busiest.threads = [{ ...known, unexplained: null, unexplained_share: null }];
  const bar = ledgerPicture(ledger).threads[0]!;
  assert.deepEqual(bar.rows.at(-1), { part: UNEXPLAINED, time: null, share: null });
  assert.deepEqual(parts(bar), ["on_cpu 0.00-1.00"]);
  const none = ledgerPicture(ledgerOf([ledgerThread("app", 7, 9, "short", 0, {})])).threads[0]!;
  assert.deepEqual([none.segments, none.rows.map((r) => r.share)], [[], [null]]);
});

test("all processes together have what each has, those without a bar of their own too", () => {
  const ledger = pageLedger(seeded(3), 60, false);
  const picture = ledgerPicture({ ...ledger, other_processes: ledger.other_threads });
  assert.equal(picture.processes.length, ledger.busiest.processes.length + 1);
  assert.ok(picture.processes.at(-1)!.isSum && picture.processes.at(-1)!.name === "412 other processes");
  assert.ok(picture.threads.at(-1)!.isSum && picture.threads.at(-1)!.name === "412 other threads");
  const rows = picture.total.rows.reduce((sum, r) => sum + (r.time?.value ?? 0), 0);
  const whole = picture.processes.reduce((sum, p) => sum + p.whole, 0);
  assert.ok(near(rows / whole, 1) && near(picture.total.whole, whole), `${rows} of ${whole}`);
  for (const bar of [...picture.processes, ...picture.threads]) {
    assert.ok(bar.segments.every((s, i) => s.to >= s.from && s.from === (bar.segments[i - 1]?.to ?? 0)), bar.name);
    assert.ok(near(bar.segments.at(-1)!.to, 1), bar.name);
  }
});

test("what the figures lack is said", () => {
  const ledger = ledgerOf([ledgerThread("app", 7, 7, null, 10, { user: 10 })]);
  assert.deepEqual(ledgerPicture(ledger).notes, []);
  ledger.busiest = { ...ledger.busiest, incomplete_threads: 1, lost_intervals: 3, has_memory_calls: false };
  ledger.busiest.processes[0]!.unchecked_threads = 2;
  assert.deepEqual(ledgerPicture(ledger).notes, ["1 thread is left out: begin or end was not recorded.", "3 intervals off the CPU were lost; their time is unexplained.", "Of 2 threads it is not known how much is unexplained.", "Memory calls were not recorded; they are part of kernel."]);
});

test("a bar is one sentence for those who do not see it", () => {
  const bar = ledgerPicture(ledgerOf([ledgerThread("app", 7, 7, null, 100, { user: 80, timer: 15 })])).threads[0]!;
  assert.equal(barSentence(bar, (r) => `${r.time!.value} ms`), "app, pid 7, thread 7: user 80 ms, timers 15 ms, unexplained 5 ms.");
});

test("every category of the published schema has words, a place in the bar, and a colour of its own on both grounds", () => {
  const schema = JSON.parse(readFileSync(new URL("../../../docs/schemas/report.json", import.meta.url), "utf8"));
  const published = (schema.$defs.Category.oneOf as { const: string }[]).map((c) => c.const);
  assert.deepEqual([...CATEGORIES.keys()].sort(), [...published].sort());
  const style = readFileSync(new URL("../../src/style.css", import.meta.url), "utf8");
  const dark = style.indexOf("prefers-color-scheme: dark");
  for (const tokens of [style.slice(0, dark), style.slice(dark, style.indexOf("box-sizing"))]) {
    const colours = published.map((c) => new RegExp(`--ledger-${c.replaceAll("_", "-")}: (#[0-9a-f]{6});`).exec(tokens)?.[1]);
    assert.ok(colours.every((c) => c !== undefined), colours.join());
    assert.equal(new Set(colours).size, published.length, colours.join());
  }
});
