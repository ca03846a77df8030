// Drives the timeline of a page in one of two browsers: places in its picture, texts, and a visit that ends in silence.

import assert from "node:assert/strict";
import type { Report } from "../src/types";
import type { Driven, DrivenBrowser } from "./two-browsers";

/** Lines of the picture and its axis in CSS pixels, as `timeline-painter` has them. */
const AXIS = 34;
const ROW = 18;
const LEFT = 190;

export const text = (page: Driven, selector: string): Promise<string> => page.run(`return document.querySelector(${JSON.stringify(selector)}).innerText.replace(/\\u00a0/g, " ")`);
export const frames = (page: Driven): Promise<void> => page.run("for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);");

/** Until something is so; the last value where it never is. */
export async function until<T>(look: () => Promise<T>, isRight: (value: T) => boolean): Promise<T> {
  let value = await look();
  for (let i = 0; i < 100 && !isRight(value); i++) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    value = await look();
  }
  return value;
}

/** A place in the picture: ms of the small timeline's 100, and a row. */
export async function place(page: Driven, ms: number, row: number, whole = 100): Promise<[number, number]> {
  const box = await page.run<{ left: number; top: number; width: number }>(`document.querySelector(".timeline").scrollIntoView({ block: "center" }); for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame); const s = document.querySelector(".timeline-scroller"); const b = s.getBoundingClientRect(); return { left: b.left, top: b.top, width: s.clientWidth };`);
  return [box.left + LEFT + (ms / whole) * (box.width - LEFT), box.top + AXIS + (row + 0.5) * ROW];
}

/** Opens a page, checks, and demands that its console was silent. */
export async function visitIn(browser: DrivenBrowser, report: Report | { html: string }, fragment: string, check: (page: Driven) => Promise<void>): Promise<void> {
  const page = await browser.open(report, fragment);
  try {
    await until(() => page.run<boolean>(`return performance.getEntriesByName("slowpath:shown").length > 0 || document.querySelector("[role=alert]") !== null`), (done) => done);
    await check(page);
    assert.deepEqual(await page.problems(), []);
  } finally {
    await page.close();
  }
}
