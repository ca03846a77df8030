import assert from "node:assert/strict";
import { test } from "node:test";
import { makeComparison } from "../fixtures/comparison";
import { embeddedJson } from "../fixtures/fill";
import { differentialFromText } from "../fixtures/flame-graphs";
import { change, chanceOf, colourOf, differences, functionDifferences, largestChange, onlyThere, sideTree, STEPS, stepOf } from "../src/derive/differential";
import { ROOT } from "../src/derive/flame-tree";
import { readPage } from "../src/derive/read-report";

const STACKS = `
  app;main@app;copy@app;memcpy@libc.so.6 60 0
  app;main@app;copy@app 10 0
  app;main@app;log@app 20 30
  app;main@app;fresh@app 0 4
  app;main@app 6 2
`;
const flames = differentialFromText(STACKS);
const graph = flames.graphs[0]!;
const tree = graph.callees!;
const d = differences(graph, tree);
const name = (node: number): string => flames.frames.name[tree.frame[node]!]!;
const node = (wanted: string): number => tree.frame.findIndex((_, n) => name(n) === wanted);

test("figures are those of one recording, and what is a node's own is what no callee has", () => {
  const of = differentialFromText(STACKS, [2, 4]);
  const halved = differences(of.graphs[0]!, of.graphs[0]!.callees!);
  assert.deepEqual([d.before[ROOT], d.after[ROOT], halved.before[ROOT], halved.after[ROOT]], [96e6, 36e6, 48e6, 9e6]);
  assert.deepEqual([d.ownBefore[node("copy")], d.ownAfter[node("copy")], d.ownBefore[node("main")], d.ownAfter[node("main")]], [10e6, 0, 6e6, 2e6]);
  assert.deepEqual([change(d, node("copy"), "own"), change(d, node("copy"), "all"), change(d, node("log"), "all")], [-10e6, -70e6, 10e6]);
});

test("widths of a side have what is there on that side, in one order for both", () => {
  const names = (side: "before" | "after"): string[] => sideTree(tree, d[side]).nodes.map(name);
  assert.deepEqual(names("before"), ["all", "app", "main", "copy", "memcpy", "log"]);
  assert.deepEqual(names("after"), ["all", "app", "main", "log", "fresh"]);
  const nothing = differentialFromText("app;main@app 5 0").graphs[0]!;
  const empty = sideTree(nothing.callees!, differences(nothing, nothing.callees!).after);
  assert.deepEqual([empty.nodes, empty.tree.weight], [[ROOT], [0]]);
});

test("what is gone and what is new is added up once, however many boxes it has", () => {
  assert.equal(onlyThere(tree, d.before, d.after), 70e6);
  assert.equal(onlyThere(tree, d.after, d.before), 4e6);
});

test("a colour is as strong as the change beside the largest, and its sign is the change's", () => {
  const largest = largestChange(d, "own");
  assert.equal(largest, 60e6);
  const step = (wanted: string): number => stepOf(change(d, node(wanted), "own"), largest);
  assert.deepEqual([step("memcpy"), step("copy"), step("log"), step("fresh"), step("main"), step("app")], [-STEPS, -2, 2, 2, -2, 0]);
  assert.deepEqual([stepOf(5, 0), stepOf(0.5, 100), stepOf(-1, 100)], [0, 0, -1]);
  assert.deepEqual([colourOf("callees", "own"), colourOf("callers", "own"), colourOf("callers", "all")], ["own", "all", "all"]);
});

test("functions are told with both sides, the largest changes of their own first", () => {
  const rows = functionDifferences(tree, d).map((f) => [flames.frames.name[f.frame], f.ownBefore / 1e6, f.ownAfter / 1e6, f.allBefore / 1e6, f.allAfter / 1e6]);
  assert.deepEqual(rows, [["memcpy", 60, 0, 60, 0], ["copy", 10, 0, 70, 0], ["log", 20, 30, 20, 30], ["main", 6, 2, 96, 36], ["fresh", 0, 4, 0, 4], ["app", 0, 0, 96, 36]]);
});

test("nothing is said of chance where nothing is known of it", () => {
  assert.equal(chanceOf(tree, "own"), null);
  assert.deepEqual([...chanceOf({ ...tree, chance: { all: [1], own: [2] } }, "own")!].slice(0, 4), [0, 0, 1, 0]);
});

test("a page of a comparison is told by its schema, and trees of which a column lacks are refused", () => {
  const page = makeComparison();
  const read = readPage(embeddedJson(page));
  assert.ok("comparison" in read && read.comparison.comparison.per === "recording");
  page.flame_graphs!.graphs[0]!.callees!.after.pop();
  assert.throws(() => readPage(embeddedJson(page)), { name: "UnreadableReport", message: /weights/ });
});
