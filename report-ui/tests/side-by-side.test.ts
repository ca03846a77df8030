import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { launchOf, makeSiblings, makeSideBySide, siblingOf } from "../fixtures/side-by-side";
import { makeReport } from "../fixtures/report";
import { launchesPlaceText, readLaunchesPlace } from "../src/derive/place-in-page";
import { readPage, UnreadableReport } from "../src/derive/read-report";
import { END_WORDS, siblingPicture } from "../src/derive/siblings";
import { growthAnswer, growthOf, launchesPicture, launchNames, median, scopeWords, spanOwner, spanWords } from "../src/derive/side-by-side";
import type { Words } from "../src/derive/words";

const MS = 1e6;
const text = (words: Words): string => words.map((w) => (typeof w === "string" ? w : w.strong)).join("").replace(/\u00a0/g, " ");

test("launches stand by group, each with its distance to the median, and the one in the middle is marked where there are three", () => {
  const { groups, longest, notes } = launchesPicture(makeSideBySide());
  assert.deepEqual(groups.map((g) => [g.name, g.median! / MS, g.rows.map((r) => r.bar.name)]), [["warm", 122, ["w1", "w2"]], ["cold", 220, ["c1", "c2", "c3"]]]);
  assert.deepEqual(groups.map((g) => g.rows.map((r) => r.isMiddle)), [[false, false], [true, false, false]]);
  assert.deepEqual(groups.map((g) => g.rows.map((r) => r.fromMedian! / MS)), [[-2, 2], [0, 100, -50]]);
  assert.equal(longest, 320 * MS);
  assert.deepEqual(notes, []);
  for (const row of groups.flatMap((g) => g.rows)) {
    const sum = row.bar.rows.reduce((s, r) => s + r.time!.value, 0);
    assert.ok(Math.abs(sum * MS - row.launch.time_ns) < 1, "the parts of a bar are the launch");
    assert.ok(Math.abs(row.bar.segments.at(-1)!.to - 1) < 1e-9, row.bar.name);
  }
});

test("spans are sorted by their growth from the fastest to the slowest launch, and with what has no row they add up to it", () => {
  const data = makeSideBySide();
  const growth = growthOf(data, "all");
  assert.deepEqual([growth.fastest, growth.slowest], [0, 3]);
  assert.deepEqual(growth.path.map((s) => [spanOwner(s.name), spanWords(s.name), s.growth! / MS]), [
    ["worker (app)", "other I/O", 160],
    ["app", "major faults", 50],
    ["app", "user or kernel", 4],
    ["app", "unexplained", 0],
    ["app", "locks", -20],
  ]);
  const sum = growth.path.reduce((s, one) => s + one.growth!, growth.others);
  assert.equal(sum, data.launches[3]!.time_ns - data.launches[0]!.time_ns);
  assert.equal(text(growthAnswer(data, growth)), "The slowest, c2, takes 200 ms more than the fastest, w1. 160 ms of it (80 %) is other I/O in worker (app).");
});

test("the last group less the first is a difference of medians; a span of the path that a launch lacks is no time, a child is no figure", () => {
  const { path, children } = growthOf(makeSideBySide(), "all");
  assert.deepEqual(path[0]!.medians, [0, 90 * MS]);
  assert.equal(path[0]!.difference, 90 * MS);
  assert.deepEqual(children.map((s) => [spanOwner(s.name), spanWords(s.name), s.growth, s.difference! / MS]), [["renderer 1", "fork to ready", 40 * MS, 19], ["renderer 2", "fork to end", null, 1.5]]);
  assert.deepEqual(children[1]!.medians, [10 * MS, 11.5 * MS]);
});

test("a group alone is compared within itself, and one launch with nothing", () => {
  const data = makeSideBySide();
  const cold = growthOf(data, 1);
  assert.deepEqual([cold.fastest, cold.slowest, cold.path[0]!.growth! / MS, cold.path[0]!.median! / MS], [4, 3, 100, 90]);
  assert.equal(scopeWords(data.groups, 1), "cold launches");
  const one = makeSideBySide({ groups: ["a", "b"], launches: [launchOf("x", 0, { user: 5 }), launchOf("y", 1, { user: 9 })], spans: [{ name: { kind: "path", program: "app", thread: null, category: "user" }, times_ns: [5 * MS, 9 * MS] }], other_spans_ns: [0, 0] });
  const alone = growthOf(one, 0);
  assert.deepEqual([alone.fastest, alone.path[0]!.growth, alone.path[0]!.difference], [null, null, 4 * MS]);
  assert.match(text(growthAnswer(one, alone)), /^One launch/);
});

test("launches that never got ready are in no median, unless none did, and what the figures lack is said", () => {
  const endless = launchOf("runs/cold/c4", 1, { timer: 9000 }, { is_ready: false, lost: 3 });
  const base = makeSideBySide();
  const data = makeSideBySide({ launches: [...base.launches, endless], spans: [], other_spans_ns: Array(6).fill(0), left_out: 1, without_path: ["runs/<b>"], command_lines: 2 });
  const picture = launchesPicture(data);
  assert.equal(picture.groups[1]!.median, 220 * MS);
  assert.equal(picture.groups[1]!.rows[3]!.fromMedian, null);
  assert.deepEqual(picture.notes, [
    "1 launch never got ready and is in no median.",
    "The launches have 2 different command lines: they may not be of one command.",
    "1 launch is left out.",
    "The critical path is not known of <b>: no launch was recorded, or no waits (record with --off-cpu).",
    "Events were lost in 1 launch: time that they held is in other rows.",
  ]);
  assert.equal(growthOf(data, "all").slowest, 3);
  const none = makeSideBySide({ launches: base.launches.map((l) => ({ ...l, is_ready: false })) });
  assert.equal(launchesPicture(none).groups[1]!.median, 220 * MS);
});

test("names are the last part of a directory where that tells launches apart, and else what follows on all that they share", () => {
  assert.deepEqual(launchNames([{ recording: "a/1" }, { recording: "a/2" }]), ["1", "2"]);
  assert.deepEqual(launchNames([{ recording: "a/1" }, { recording: "b/1" }]), ["a/1", "b/1"]);
  assert.deepEqual(launchNames(["/r/warm/1", "/r/warm/2", "/r/cold/1"].map((recording) => ({ recording }))), ["warm/1", "warm/2", "cold/1"]);
  assert.deepEqual(launchNames([{ recording: "/r/1" }, { recording: "/r/1" }]), ["1", "1"]);
  assert.deepEqual([median([]), median([3, 1]), median([5, 1, 2])], [null, 2, 2]);
});

test("an address keeps group and launch, and a strange one is no place", () => {
  for (const place of [{ group: 1, launch: 3 }, { group: null, launch: 0 }, { group: 2, launch: null }]) assert.deepEqual(readLaunchesPlace(`#${launchesPlaceText(place)}`), place);
  assert.equal(launchesPlaceText({ group: null, launch: null }), "side-by-side");
  assert.deepEqual(readLaunchesPlace("#side-by-side/of=-1&launch=<b>&of=2"), { group: null, launch: null });
  assert.equal(readLaunchesPlace("#timeline/view=1..2"), null);
});

test("columns of another length and groups that are not there are refused", () => {
  const report = (launches: ReturnType<typeof makeSideBySide>): string => JSON.stringify({ ...makeReport({ reads: 300 }), launches });
  readPage(report(makeSideBySide()));
  assert.throws(() => readPage(report(makeSideBySide({ groups: ["warm"] }))), (e) => e instanceof UnreadableReport && /^Launch 2 names group 1, of which there are 1\.$/.test(e.message));
  assert.throws(() => readPage(report(makeSideBySide({ other_spans_ns: [0] }))), (e) => e instanceof UnreadableReport && /^A span has 1 times, and there are 5 launches\.$/.test(e.message));
});

test("children say how much of their work is the same, and where that is not known, that", () => {
  const [workers, helpers] = makeSiblings().kinds.map(siblingPicture);
  assert.equal(workers!.title, "worker: 3 children, executed");
  assert.equal(text(workers!.answer), "Each does the same work: in the middle 15 ms of CPU, 75 % of what a child runs until it is ready or ends, in 40 steps from one file to the next. Together 45 ms.");
  assert.deepEqual(workers!.bars.map((b) => [b.share, b.alike.replace(/\u00a0/g, " ")]), Array(3).fill([0.75, "15 ms (75 %)"]));
  assert.equal(workers!.longest, 60 * MS);
  assert.ok(workers!.bars.every((b) => b.bar.rows.every((r) => r.time !== null)));
  assert.match(text(helpers!.answer), /is not known/);
  assert.deepEqual(helpers!.bars.map((b) => b.alike), ["not known", "not known"]);
});

test("work that goes on behind the drawn start has no share of it, and doubtful work is said", () => {
  const alike = { steps: 9, cpu_ns: 15 * MS, typical_ns: 15 * MS, doubtful_ns: 4 * MS, until_ns: 31 * MS };
  const running = siblingPicture({ kind: "w", executed: true, children: [siblingOf(1, 0, { on_cpu: 24 }, { end: "last_alike" })] });
  assert.equal(running.bars[0]!.share, null, "a start that ends with that work is all of it by construction");
  const [one, two] = [siblingOf(1, 0, { on_cpu: 30 }, { alike }), siblingOf(2, 0, { on_cpu: 30 }, { alike: null })];
  const picture = siblingPicture({ kind: "w", executed: false, children: [one, two] });
  assert.equal(picture.bars[0]!.share, null);
  assert.equal(text(picture.answer), "1 of 2 do the same work: in the middle 15 ms of CPU, in 9 steps from one file to the next. Together 15 ms. A further 4 ms can be work of each child's own.");
});

test("the kinds of spans and the ends of starts are those of the published schemas", () => {
  const schema = (name: string): { $defs: Record<string, { oneOf: { const?: string; properties?: { kind: { const: string } } }[] }> } => JSON.parse(readFileSync(new URL(`../../../docs/schemas/${name}.json`, import.meta.url), "utf8"));
  for (const page of ["report", "comparison-page"]) assert.deepEqual(schema(page).$defs["SpanName"]!.oneOf.map((one) => one.properties!.kind.const), ["path", "child_start", "child_life"]);
  assert.deepEqual(schema("report").$defs["StartEnd"]!.oneOf.map((one) => one.const), Object.keys(END_WORDS));
});
