import assert from "node:assert/strict";
import { test } from "node:test";
import { binaryTicks, decimalTicks, linearScale } from "../src/derive/axis";
import { boxed, isWhole, panned, zoomed } from "../src/derive/view-window";

const whole = { page0: 0, page1: 1000, t0: 0, t1: 1e9 };

test("zooming keeps what lies under the pointer where it is", () => {
  const view = zoomed(whole, whole, 0.25, 0.4, 0.8);
  assert.equal(view.page0 + 0.4 * (view.page1 - view.page0), 400);
  assert.ok(Math.abs(view.t0 + 0.8 * (view.t1 - view.t0) - 0.8e9) < 1);
  assert.equal(view.page1 - view.page0, 250);
});

test("zooming in and out again by the same factor comes back", () => {
  const back = zoomed(zoomed(whole, whole, 0.5, 0.3, 0.3), whole, 2, 0.3, 0.3);
  assert.ok(isWhole(back, whole), JSON.stringify(back));
});

test("one axis alone can be zoomed", () => {
  const view = zoomed(whole, whole, 0.5, 0.5, 0.5, { page: true, time: false });
  assert.deepEqual([view.t0, view.t1, view.page1 - view.page0], [0, 1e9, 500]);
});

test("no zoom or pan leaves the whole or becomes empty", () => {
  let view = whole;
  for (let i = 0; i < 200; i++) view = zoomed(view, whole, 0.5, 1, 1);
  assert.ok(view.page1 <= 1000 && view.page1 - view.page0 >= 8 && view.t1 <= 1e9 && view.t1 - view.t0 >= 10_000, JSON.stringify(view));
  const moved = panned(zoomed(whole, whole, 0.5, 0, 0), whole, 9, -9);
  assert.deepEqual([moved.page0, moved.page1, moved.t0, moved.t1], [500, 1000, 0, 0.5e9]);
});

test("a file smaller than the smallest window is shown whole", () => {
  const small = { page0: 0, page1: 2, t0: 0, t1: 5_000 };
  assert.ok(isWhole(zoomed(small, small, 0.1, 0.5, 0.5), small));
});

test("a box selects the same part from any of its corners", () => {
  assert.deepEqual(boxed(whole, whole, [0.2, 0.5], [0.1, 0.1]), boxed(whole, whole, [0.1, 0.5], [0.2, 0.1]));
  assert.deepEqual(boxed(whole, whole, [0.1, 0.1], [0.2, 0.5]), { page0: 100, page1: 200, t0: 1e8, t1: 5e8 });
});

test("ticks are round and lie inside", () => {
  assert.deepEqual(decimalTicks(370, 1010, 5), { step: 200, at: [400, 600, 800, 1000] });
  assert.deepEqual(binaryTicks(0, 5 * 2 ** 20, 3).at, [0, 2 ** 21, 2 ** 22]);
  assert.deepEqual(decimalTicks(5, 5, 4).at, []);
});

test("a scale of no extent maps everything to its start and back", () => {
  const scale = linearScale([3, 3], [0, 10]);
  assert.equal(scale(99), 0);
  assert.equal(scale.invert(5), 3);
});
