import assert from "node:assert/strict";
import { test } from "node:test";
import { embeddedJson } from "../fixtures/fill";
import { flamesFromText } from "../fixtures/flame-graphs";
import { makeReport } from "../fixtures/report";
import { reportOf } from "../fixtures/text-columns";
import { boxesOf, callersOf, found, functionsOf, heaviestFiles, indexTree, MOST_ROWS, neighbour, ROOT, type FlameIndex } from "../src/derive/flame-tree";
import { readPage } from "../src/derive/read-report";

const STACKS = `
  app;main@app;work@app;copy@libc.so.6 60
  app;main@app;work@app 20
  app;main@app;log@libc.so.6 15
  app;[no stack] 5
`;

const graphs = flamesFromText(STACKS);
const cpu = graphs.graphs[0]!;
const index = indexTree(cpu.callees!);
const name = (node: number, of: FlameIndex = index): string => graphs.frames.name[of.tree.frame[node]!]!;
const node = (wanted: string, of: FlameIndex = index): number => of.tree.frame.findIndex((_, n) => name(n, of) === wanted);

test("a box lies below its caller, beside the heavier ones, as wide as its share", () => {
  const { boxes, rows } = boxesOf(index, ROOT, 0);
  assert.deepEqual(
    boxes.map((b) => [name(b.node), b.row, b.from, b.to]),
    [["all", 0, 0, 1], ["app", 1, 0, 1], ["main", 2, 0, 0.95], ["work", 3, 0, 0.8], ["copy", 4, 0, 0.6], ["log", 3, 0.8, 0.9500000000000001], ["[no stack]", 2, 0.95, 1]],
  );
  assert.equal(rows, 5);
});

test("what is zoomed to has the whole width, below its callers", () => {
  const { boxes } = boxesOf(index, node("work"), 0);
  assert.deepEqual(boxes.map((b) => [name(b.node), b.row, b.from, b.to]), [["all", 0, 0, 1], ["app", 1, 0, 1], ["main", 2, 0, 1], ["work", 3, 0, 1], ["copy", 4, 0, 0.75]]);
});

test("boxes that nobody could see are left out with all that is below them", () => {
  const { boxes, rows } = boxesOf(index, ROOT, 0.7);
  assert.deepEqual(boxes.map((b) => name(b.node)), ["all", "app", "main", "work"]);
  assert.equal(rows, 4);
});

test("a recursion of thousands of levels has rows for a screen, and zooming reaches all of them", () => {
  const deep = flamesFromText(`app;${Array.from({ length: 1500 }, (_, i) => `f${i}@app`).join(";")} 7`);
  const tree = indexTree(deep.graphs[0]!.callees!);
  const whole = boxesOf(tree, ROOT, 0);
  assert.deepEqual([whole.rows, whole.isCut], [MOST_ROWS, true]);
  const last = tree.tree.depth.length - 1;
  const { boxes, isCut } = boxesOf(tree, last, 0);
  assert.deepEqual([boxes[0]!.node, boxes.at(-1)!.node, boxes.length, isCut], [ROOT, last, 8, false]);
});

test("a search finds functions and files in any case and counts no row twice", () => {
  const hits = (text: string): [string[], number] => {
    const { nodes, weight } = found(index, graphs, text);
    return [[...nodes].flatMap((hit, n) => (hit ? [name(n)] : [])), weight];
  };
  assert.deepEqual(hits(" LIBC "), [["copy", "log"], 75]);
  assert.deepEqual(hits("app"), [["app", "main", "work"], 100]);
  assert.deepEqual(hits("o"), [["work", "copy", "log", "[no stack]"], 100]);
  assert.deepEqual(hits("all"), [[], 0]);
  assert.deepEqual(hits(""), [[], 0]);
});

test("a function's own weight is what no callee has, and a recursion counts once", () => {
  const recursive = flamesFromText("app;f@a;g@a;f@a 10\napp;f@a 5\napp;g@a;f@a 1");
  const rows = functionsOf(indexTree(recursive.graphs[0]!.callees!)).map((f) => [recursive.frames.name[f.frame], f.own, f.all]);
  assert.deepEqual(rows, [["f", 16, 16], ["app", 0, 16], ["g", 0, 11]]);
  assert.equal(functionsOf(index).reduce((sum, f) => sum + f.own, 0), cpu.total);
});

test("the heaviest files come first and what is no file is none", () => {
  assert.deepEqual(heaviestFiles(index, graphs, 5).map((p) => graphs.places[p]!.name), ["libc.so.6", "app"]);
});

test("callers lead from the innermost function outwards to the process", () => {
  const inverted = indexTree(cpu.callers!);
  assert.equal(inverted.tree.weight[ROOT], 100);
  const app = inverted.end[node("copy", inverted)]! - 1;
  assert.deepEqual([app, ...callersOf(inverted, app)].map((n) => name(n, inverted)), ["app", "main", "work", "copy", "all"]);
});

test("arrow keys lead to the caller, the heaviest callee and the neighbours, and never out of the tree", () => {
  const walk = (from: string, ...keys: Parameters<typeof neighbour>[2][]): string => name(keys.reduce((at, key) => neighbour(index, at, key), node(from)));
  assert.equal(walk("app", "ArrowDown", "ArrowDown"), "work");
  assert.equal(walk("work", "ArrowRight"), "log");
  assert.equal(walk("log", "ArrowRight"), "log");
  assert.equal(walk("log", "ArrowLeft"), "work");
  assert.equal(walk("work", "ArrowLeft"), "work");
  assert.equal(walk("copy", "ArrowDown"), "copy");
  assert.equal(walk("copy", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp"), "all");
  assert.equal(walk("all", "ArrowLeft", "ArrowRight"), "all");
});

test("columns that are no tree are refused with a reason, and those of the fixtures are none of these", () => {
  const broken = (edit: (tree: { depth: number[]; frame: number[]; weight: number[] }) => void): (() => void) => {
    const flames = flamesFromText(STACKS);
    edit(flames.graphs[0]!.callees!);
    return () => readPage(embeddedJson(reportOf({ flame_graphs: flames })));
  };
  assert.doesNotThrow(broken(() => undefined));
  const reason = (message: RegExp): object => ({ name: "UnreadableReport", message });
  assert.throws(broken((t) => t.weight.pop()), reason(/weights/));
  assert.throws(broken((t) => (t.depth[2] = 5)), reason(/depth 5 after 1/));
  assert.throws(broken((t) => (t.depth[3] = 0)), reason(/depth 0/));
  assert.throws(broken((t) => (t.frame[1] = 99)), reason(/frame 99/));
  assert.throws(broken((t) => ((t.depth = []), (t.frame = []), (t.weight = []))), reason(/0 depths/));
  assert.doesNotThrow(() => readPage(embeddedJson(makeReport({ flames: 2_000, threads: 40, hostileNames: true, reads: 300 }))));
});
