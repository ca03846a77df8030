// The part of one file's picture that is in view: pages across, time downwards.
//
// Owns zooming and panning as pure functions on a rectangle in data space. A window never leaves
// the whole and never becomes smaller than `MIN_PAGES` by `MIN_TIME`.

import type { Nanos, Pages } from "../types";

export interface ViewWindow {
  page0: Pages;
  page1: Pages;
  t0: Nanos;
  t1: Nanos;
}

/** Narrower than this, a page is wider than any useful mark. */
const MIN_PAGES = 8;
/** 10 µs: below the time that one read from a fast disk takes. */
const MIN_TIME: Nanos = 10_000;

/** Keeps the size and moves the interval into [low, high]; shrinks it only if it is too long. */
function fit(a: number, b: number, low: number, high: number, min: number): [number, number] {
  const size = Math.min(Math.max(b - a, Math.min(min, high - low)), high - low);
  const start = Math.min(Math.max(a, low), high - size);
  return [start, start + size];
}

function within(view: ViewWindow, whole: ViewWindow): ViewWindow {
  const [page0, page1] = fit(view.page0, view.page1, whole.page0, whole.page1, MIN_PAGES);
  const [t0, t1] = fit(view.t0, view.t1, whole.t0, whole.t1, MIN_TIME);
  return { page0, page1, t0, t1 };
}

/** Scales by `factor` (below 1 zooms in) around the point at the fractions (fx, fy) of the window. */
export function zoomed(view: ViewWindow, whole: ViewWindow, factor: number, fx: number, fy: number, axes: { page: boolean; time: boolean } = { page: true, time: true }): ViewWindow {
  const scaled = (a: number, b: number, f: number, min: number): [number, number] => {
    const size = Math.max((b - a) * factor, min);
    const anchor = a + (b - a) * f;
    return [anchor - size * f, anchor + size * (1 - f)];
  };
  const [page0, page1] = axes.page ? scaled(view.page0, view.page1, fx, MIN_PAGES) : [view.page0, view.page1];
  const [t0, t1] = axes.time ? scaled(view.t0, view.t1, fy, MIN_TIME) : [view.t0, view.t1];
  return within({ page0, page1, t0, t1 }, whole);
}

/** Moves by fractions of the window's own size. */
export function panned(view: ViewWindow, whole: ViewWindow, dx: number, dy: number): ViewWindow {
  const pages = (view.page1 - view.page0) * dx;
  const time = (view.t1 - view.t0) * dy;
  return within({ page0: view.page0 + pages, page1: view.page1 + pages, t0: view.t0 + time, t1: view.t1 + time }, whole);
}

/** The part between two corners given as fractions of the window, in any order. */
export function boxed(view: ViewWindow, whole: ViewWindow, a: [number, number], b: [number, number]): ViewWindow {
  const page = (f: number): number => view.page0 + (view.page1 - view.page0) * f;
  const time = (f: number): number => view.t0 + (view.t1 - view.t0) * f;
  return within(
    {
      page0: page(Math.min(a[0], b[0])),
      page1: page(Math.max(a[0], b[0])),
      t0: time(Math.min(a[1], b[1])),
      t1: time(Math.max(a[1], b[1])),
    },
    whole,
  );
}

export function isWhole(view: ViewWindow, whole: ViewWindow): boolean {
  return view.page0 <= whole.page0 && view.page1 >= whole.page1 && view.t0 <= whole.t0 && view.t1 >= whole.t1;
}
