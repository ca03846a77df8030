// The timeline's columns, sums per pixel, and links.

import assert from "node:assert/strict";
import { test } from "node:test";
import { seeded } from "../fixtures/random";
import { base64, column, largeTimeline, smallTimeline, STATES } from "../fixtures/timeline";
import { moment } from "../src/format";
import { bytesOf, numbersOf } from "../src/derive/columns";
import { placeText, readPlace } from "../src/derive/place-in-page";
import { columnsOf, sharesOf, timesBetween } from "../src/derive/span-shares";
import { longestOnPath } from "../src/derive/path-spans";
import { BrokenTimeline, exactSpan, readTimeline, spanAt, wakeOf } from "../src/derive/timeline";
import { pathTimes, shownRows } from "../src/derive/timeline-rows";
import { stateKinds } from "../src/derive/timeline-states";

test("columns of bytes and numbers come back, and one of another length is refused", () => {
  assert.deepEqual([...bytesOf(base64(Uint8Array.of(0, 127, 255)))], [0, 127, 255]);
  const numbers = [0, 1, 127, 128, 16_384, 2 ** 32, 2 ** 53 - 1];
  assert.deepEqual([...numbersOf(column(numbers), numbers.length)!], numbers);
  assert.equal(numbersOf(column(numbers), 6), null);
  assert.equal(numbersOf(column(numbers), 8), null);
  assert.equal(numbersOf(base64(Uint8Array.of(128)), 0), null, "a number that is cut off");
});

test("a timeline that names what is not there is refused", () => {
  const broken: [string, (page: ReturnType<typeof smallTimeline>) => void][] = [
    ["states", (p) => (p.spans.states = base64(new Uint8Array(p.spans.count).fill(99)))],
    ["length", (p) => (p.spans.lengths = column([1, 2]))],
    ["spans", (p) => (p.threads[0]!.spans += 1)],
    ["process", (p) => (p.threads[0]!.process = 5)],
    ["wakers", (p) => (p.wakes.wakers = column([0, 3]))],
    ["path", (p) => (p.path!.threads = column([0, 1, 1, 1, 0, 4]))],
  ];
  for (const [what, breaks] of broken) {
    const page = smallTimeline();
    breaks(page);
    assert.throws(() => readTimeline(page), BrokenTimeline, what);
  }
});

test("spans are found by their moment, and who ended a wait by its end", () => {
  const timeline = readTimeline(smallTimeline());
  const main = timeline.lines[0]!;
  assert.equal(spanAt(timeline, main, -1), null);
  assert.equal(spanAt(timeline, main, 0), main.first);
  assert.equal(spanAt(timeline, main, 30e6), main.first + 1);
  assert.equal(spanAt(timeline, main, 100e6), null);
  assert.equal(timeline.wakes.waker[wakeOf(timeline, 0, main.first + 1)!], 1);
  assert.equal(wakeOf(timeline, 0, main.first), null);
  assert.equal(wakeOf(timeline, 0, main.first + 2), null, "the run queue after it was not ended by the wake-up");
  assert.deepEqual([...pathTimes(timeline)], [50e6, 50e6, 0]);
  assert.deepEqual([timeline.from, timeline.to], [0, 100e6]);
});

test("a span is found by its begin and end, and the longest of a category on the path by its threads", () => {
  const timeline = readTimeline(smallTimeline());
  assert.deepEqual(exactSpan(timeline, 7, 7, { from: 10e6, to: 60e6 }), { line: 0, span: timeline.lines[0]!.first + 1 });
  assert.equal(exactSpan(timeline, 7, 7, { from: 10e6, to: 59e6 }), null);
  assert.equal(exactSpan(timeline, 9, 7, { from: 10e6, to: 60e6 }), null, "a thread of another process");
  const longest = longestOnPath(timeline);
  assert.deepEqual(longest("major_fault", null), { line: 1, from: 15e6, to: 35e6 });
  assert.deepEqual(longest("on_cpu", null), { line: 0, from: 61e6, to: 100e6 }, "time on the CPU is the state running");
  assert.deepEqual(longest("user", { program: "app", thread: "worker" }), { line: 1, from: 40e6, to: 60e6 }, "the span that the middle of the longest step lies in");
  assert.equal(longest("lock", null), null, "nobody on the path waited for one");
  assert.equal(longest("on_cpu", { program: "app", thread: null }), null);
  const without = longestOnPath(readTimeline({ ...smallTimeline(), path: null }));
  assert.equal(without("on_cpu", null), null);
});

test("what pixels add up is what the spans have, at any zoom", () => {
  const timeline = readTimeline(largeTimeline(seeded(3), 30_000, 6));
  const shares = sharesOf(timeline);
  const random = seeded(9);
  for (let round = 0; round < 60; round++) {
    const line = timeline.lines[random.below(6)]!;
    const from = random.next() * 3e9;
    const to = from + 4e9 * random.next() ** 6 + 1_000;
    const width = 1 + random.below(900);
    const sums = new Float64Array(STATES.length);
    const step = (to - from) / width;
    let next = -1;
    columnsOf(shares, line, from, to, width, {
      run: (x0, x1, state) => {
        assert.ok(x0 > next && x1 > x0 && x1 <= width, "pixels in order, each once");
        next = x1 - 1;
        sums[state]! += (x1 - x0) * step;
      },
      mixed: (x, time, whole) => {
        assert.ok(x > next && x < width && whole === step);
        next = x;
        time.forEach((t, s) => (sums[s]! += t));
      },
    });
    const expected = new Float64Array(STATES.length);
    for (let i = line.first; i < line.last; i++) expected[timeline.states[i]!]! += Math.max(0, Math.min(to, timeline.starts[i + 1]!) - Math.max(from, timeline.starts[i]!));
    const between = timesBetween(shares, line, from, to);
    STATES.forEach((name, s) => {
      assert.ok(Math.abs(sums[s]! - expected[s]!) < 2, `${name}: ${sums[s]} by pixels, ${expected[s]} by spans`);
      assert.ok(Math.abs(between[s]! - expected[s]!) < 2, `${name}: ${between[s]} at once, ${expected[s]} by spans`);
    });
  }
});

test("the busiest threads come first, a search finds all, and the path has its own", () => {
  const timeline = readTimeline(largeTimeline(seeded(3), 6_000, 60));
  assert.equal(shownRows(timeline, "busiest", "", null).threads, 30);
  assert.equal(shownRows(timeline, "all", "", null).threads, 60);
  assert.equal(shownRows(timeline, "busiest", "worker 7", null).threads, 1);
  assert.equal(shownRows(timeline, "busiest", "no such", null).rows.length, 0);
  assert.equal(shownRows(timeline, "all", "", (p) => p === 0).threads, timeline.page.threads.filter((t) => t.process === 0).length);
  const small = readTimeline(smallTimeline());
  assert.deepEqual(shownRows(small, "path", "", null).rows.map((r) => r.kind), ["process", "thread", "thread", "device"]);
});

test("a moment has microseconds where it needs them", () => {
  const shown = [0, 50_000, 10e6, 100e6, 1_097_891_000, 1_097_890_000, -2_500_000, 12_345_678_900].map((ns) => moment(ns).replace("\u00a0", " "));
  assert.deepEqual(shown, ["0 ms", "50 µs", "10 ms", "100 ms", "1097.891 ms", "1097.89 ms", "-2.5 ms", "12.345679 s"]);
});

test("every state that is recorded has words and a colour", () => {
  for (const kind of stateKinds(STATES)) {
    assert.ok(kind.words !== "" && kind.did !== "", JSON.stringify(kind));
    assert.match(kind.variable, /^--[a-z-]+$/);
  }
  assert.equal(stateKinds(["of a later version"])[0]!.words, "of a later version");
});

test("a link comes back, and what a stranger writes into it is numbers or nothing", () => {
  const place = { view: { from: -5, to: 1e9 }, span: { pid: 7, tid: 8, at: 123 }, selected: { time: { from: -3, to: 4 }, pid: 9, tid: 11, name: null }, search: "a b&c=/#<script>\u202e" };
  assert.deepEqual(readPlace(`#${placeText(place)}`), place);
  assert.equal(placeText({ view: null, span: null, selected: null, search: "" }), "timeline");
  assert.equal(readPlace("#findings"), null);
  assert.deepEqual(readPlace("#timeline/view=5..1&span=7.x@3&find=%E0%A4%A&other=1"), { view: null, span: null, selected: null, search: "" });
  assert.equal(readPlace(`#timeline/find=${"a".repeat(5000)}`)!.search.length, 200);
  const program = { time: null, pid: null, tid: null, name: "</script>&of=1 \ud800x" };
  assert.deepEqual(readPlace(`#${placeText({ view: null, span: null, selected: program, search: "" })}`)!.selected, { ...program, name: "</script>&of=1 x" });
  assert.equal(readPlace("#timeline/time=5..1&of=x.1&program=%E0%A4%A")!.selected, null);
  assert.deepEqual(readPlace("#timeline/time=5..5&of=7")!.selected, { time: { from: 5, to: 5 }, pid: 7, tid: null, name: null });
});
