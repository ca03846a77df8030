// Flame graphs of a part of their rows.

import assert from "node:assert/strict";
import { test } from "node:test";
import { embeddedJson } from "../fixtures/fill";
import { flameGraphs } from "../fixtures/flame-graphs";
import { flamesFromRows, withRandomRows, type MadeRow } from "../fixtures/flame-rows";
import { seeded } from "../fixtures/random";
import { reportOf } from "../fixtures/text-columns";
import { column } from "../fixtures/timeline";
import { BrokenRows, partOf, readRows, threadsWanted, treeOf, type TimedRows, type Wanted } from "../src/derive/flame-rows";
import { readPage } from "../src/derive/read-report";
import type { Selection } from "../src/selection";
import type { FlameGraph, FlameGraphs, FlameRows, FlameTree, FlameWeight } from "../src/types";
import { flameParts } from "../src/views/flame-part";

const ROWS: readonly MadeRow[] = [
  ["cpu_samples", 7, 7, 5, 1, "app;main@app;init@app"],
  ["cpu_samples", 7, 7, 20, 1, "app;main@app;run@app"],
  ["cpu_samples", 7, 8, 20, 1, "app;pool@app;run@app"],
  ["cpu_samples", 9, 9, 30, 1, "helper;main@helper"],
  ["off_cpu", 7, 7, -10, 30, "app;main@app;poll@libc"],
  ["off_cpu", 7, 8, 10, 40, "app;pool@app;futex@libc"],
  ["off_cpu", 7, 8, 60, 5, "app;pool@app;poll@libc"],
];
const flames = flamesFromRows(ROWS);
const rowsOf = (made: FlameGraphs, weight: FlameWeight): TimedRows => readRows(made.graphs.find((g) => g.weight === weight)!, made.threads!.pid.length)!;

function told({ frames }: FlameGraphs, tree: FlameTree): string[] {
  return tree.depth.map((depth, node) => `${"  ".repeat(depth)}${frames.name[tree.frame[node]!]} ${tree.weight[node]}`);
}

function part(weight: FlameWeight, wanted: Partial<Wanted>): ReturnType<typeof partOf> {
  return partOf(flames.graphs.find((g) => g.weight === weight)!, rowsOf(flames, weight), { time: null, threads: null, ...wanted });
}

const thread = (tid: number): Uint8Array => threadsWanted(flames.threads!, (frame) => flames.frames.name[frame]!, tid, () => true);

test("samples within a time make a graph of their own, in both directions", () => {
  const found = part("cpu_samples", { time: { from: 10, to: 25 } });
  assert.deepEqual([found.rows, found.total], [2, 2]);
  assert.deepEqual(told(flames, found.trees.callees), ["all 2", "  app 2", "    main 1", "      run 1", "    pool 1", "      run 1"]);
  assert.deepEqual(told(flames, found.trees.callers), ["all 2", "  run 2", "    main 1", "      app 1", "    pool 1", "      app 1"]);
  assert.deepEqual(told(flames, part("cpu_samples", { time: { from: 5, to: 5 } }).trees.callees), ["all 1", "  app 1", "    main 1", "      init 1"], "begin and end are within");
  assert.deepEqual(told(flames, part("cpu_samples", { time: { from: 21, to: 29 } }).trees.callees), ["all 0"]);
});

test("of a wait that reaches beyond the time, what lies within it counts, and of a moment all of it", () => {
  assert.deepEqual(told(flames, part("off_cpu", { time: { from: 15, to: 30 } }).trees.callees), ["all 20", "  app 20", "    pool 15", "      futex 15", "    main 5", "      poll 5"]);
  const moment = part("off_cpu", { time: { from: 15, to: 15 } });
  assert.deepEqual([moment.rows, moment.total], [2, 70]);
  assert.equal(part("off_cpu", { time: { from: 50, to: 60 } }).rows, 0, "what only touches the time is not in it");
});

test("rows of a thread or a process alone", () => {
  assert.deepEqual(told(flames, part("off_cpu", { threads: thread(8) }).trees.callers), ["all 45", "  futex 40", "    pool 40", "      app 40", "  poll 5", "    pool 5", "      app 5"]);
  const helper = threadsWanted(flames.threads!, (frame) => flames.frames.name[frame]!, null, (_, name) => name === "helper");
  assert.deepEqual(told(flames, part("cpu_samples", { threads: helper }).trees.callees), ["all 1", "  helper 1", "    main 1"]);
});

test("all rows together are the whole graph, and parts of the time add up to it", () => {
  const random = seeded(5);
  const large = withRandomRows(random, flameGraphs(random, 800, true), 3_000, 12);
  for (const graph of large.graphs.filter((g) => g.callees)) {
    const { weight } = graph;
    const of = rowsOf(large, weight);
    const whole = partOf(graph, of, { time: null, threads: null });
    const pieces = [[-1, 1e9], [1e9, 3e9], [3e9, 9e9]].map(([from, to]) => partOf(graph, of, { time: { from: from!, to: to! }, threads: null }));
    assert.equal(pieces.reduce((sum, piece) => sum + piece.total, 0), whole.total, weight);
    for (const direction of ["callees", "callers"] as const) {
      const tree = whole.trees[direction];
      assert.equal(tree.weight[0], whole.total);
      const heavier = tree.depth.findIndex((depth, node) => node > 0 && tree.depth[node + 1] === depth && tree.weight[node + 1]! > tree.weight[node]!);
      assert.equal(heavier, -1, "siblings come heaviest first");
      assert.ok(tree.weight.every((w) => w > 0));
    }
  }
  for (const graph of flames.graphs.filter((g) => g.callees)) {
    const whole = part(graph.weight, {});
    assert.equal(whole.total, graph.total);
    for (const direction of ["callees", "callers"] as const) assert.deepEqual(told(flames, whole.trees[direction]).sort(), told(flames, graph[direction]!).sort());
  }
});

test("a tree of thousands of levels is made anew without running out of stack", () => {
  const depth = Array.from({ length: 50_000 }, (_, i) => i);
  const own = new Float64Array(depth.length);
  own[own.length - 1] = 3;
  const made = treeOf({ depth, frame: depth.map(() => 0), weight: depth.map(() => 1), smallest: 1 }, own);
  assert.deepEqual([made.depth.length, made.weight[0], made.weight.at(-1)], [50_000, 3, 3]);
});

const selection = (time: Wanted["time"], processes: { pid: number | null; name: string }[] | null = null, tid: number | null = null): Selection => ({ origin: "timeline", text: "", time, processes, tid, files: null });

test("rows that name what is not there are refused with a reason, and the page shows everything", () => {
  const edited = (edit: (made: FlameGraphs) => void): FlameGraphs => {
    const made = flamesFromRows(ROWS);
    edit(made);
    return made;
  };
  const broken = (edit: (made: FlameGraphs) => void): (() => void) => {
    const made = edited(edit);
    return () => readPage(embeddedJson(reportOf({ flame_graphs: made })));
  };
  assert.doesNotThrow(broken(() => undefined));
  assert.doesNotThrow(broken((f) => (delete (f as Partial<FlameGraphs>).threads, f.graphs.forEach((g) => delete (g as Partial<FlameGraph>).rows))), "data of an earlier version");
  const reason = (message: RegExp): object => ({ name: "UnreadableReport", message });
  assert.throws(broken((f) => f.threads!.tid.pop()), reason(/3 pids, 2 numbers and 3 processes/));
  assert.throws(broken((f) => (f.threads!.process[0] = 99)), reason(/names frame 99/));
  const damaged: [RegExp, (rows: FlameRows) => void][] = [
    [/column of gaps has another length/, (r) => (r.gaps = column([1, 2]))],
    [/Entry 3 of threads is 99/, (r) => (r.threads = column([0, 0, 0, 99]))],
    [/Entry 3 of nodes is 99/, (r) => (r.callees = column([0, 0, 0, 99]))],
    [/Entry 0 of places is 9/, (r) => (r.places = column([9, 0, 0, 0]))],
    [/column of weights is no base64/, (r) => (r.weights = "%")],
  ];
  for (const [message, damage] of damaged) {
    const made = edited((f) => damage(f.graphs[0]!.rows!));
    assert.throws(() => rowsOf(made, "cpu_samples"), (error: unknown) => error instanceof BrokenRows && message.test(error.message));
    const shown = flameParts(made)(made.graphs[0]!, selection({ from: 0, to: 6 }))!;
    assert.match(shown.words, message);
    assert.deepEqual([shown.whole, shown.total, shown.trees.callees], ["all", 4, made.graphs[0]!.callees]);
  }
});

test("what is shown alone is said, and so is what the page lacks of it", () => {
  const graph = { ...flames.graphs[0]!, rows: { ...flames.graphs[0]!.rows!, left_out: 12, left_out_weight: 12 } };
  const words = (weight: number, ...wanted: Parameters<typeof selection>): string => flameParts(flames)(weight === 0 ? graph : flames.graphs[weight]!, selection(...wanted))!.words.replaceAll("\u00a0", " ");
  assert.match(words(0, { from: 0, to: 25 }), /^Only what is selected, from 0 ms to .*: 3 samples of 4 \(75 %\)\. The page has no time of 12 samples with 12, the lightest of all; they are missing here, and are in the graph of everything\.$/);
  assert.match(words(1, { from: 15, to: 30 }, [{ pid: 7, name: "app" }], 8), /^Only what is selected, thread 8 of app \(pid 7\), from .*: 1 wait with 15 ns of 75 ns \(20 %\)\. Of waits that begin before or end after it, the time within it counts\.$/);
  assert.match(words(1, { from: 15, to: 15 }), /: 2 waits with 70 ns .*Those are the waits that were going on at that moment, in full\.$/);
  assert.match(words(0, { from: 15, to: 15 }, [{ pid: null, name: "app" }]), /^Only what is selected, processes of app: 3 samples of 4 \(75 %\)\. A moment has no samples: those of all times are shown\./);
  assert.match(words(0, { from: 100, to: 200 }), /: no sample\./);
  assert.equal(flameParts(flames)(graph, { ...selection(null), files: new Set([1]) }), null, "a file alone chooses no stack");
});
