// The time ledger and the flame graph in a real browser: what is shown, by pointer and by keyboard.
//
// Run by `npm run test:browser`; prints how long large ones take.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { flamesFromText } from "../fixtures/flame-graphs";
import { HOSTILE_NAMES } from "../fixtures/io-map";
import { ledgerProcess, ledgerThread } from "../fixtures/ledger";
import { makeReport } from "../fixtures/report";
import { selectionReport } from "../fixtures/selection";
import { reportOf } from "../fixtures/text-columns";
import { displayText } from "../src/display-text";
import type { HtmlLedger, Report } from "../src/types";
import { flamePlace, ReportBrowser, scrollTo, text, visit } from "./open-page";

let browser: ReportBrowser;
before(async () => {
  browser = await ReportBrowser.start();
});
after(() => browser.close());

function ledgerReport(): Report {
  const threads = [ledgerThread("app", 7, 7, "app", 1000, { user: 600, minor_fault: 300, lock: 50 }), ledgerThread("app", 7, 8, "pool", 1000, { timer: 990, user: 30 })];
  const busiest = { threads, processes: [ledgerProcess(threads)], incomplete_threads: 1, lost_intervals: 0, has_memory_calls: false };
  const ledger: HtmlLedger = { busiest, other_processes: null, other_threads: null };
  return reportOf({ ledger });
}

const FLAMES = `
  app;main@app;work@app;copy@libc.so.6 60
  app;main@app;work@app 20
  app;main@app;log@libc.so.6 15
  app;[no stack] 5
`;
const flameReport = (): Report => reportOf({ flame_graphs: flamesFromText(FLAMES) });

test("recordings without waits and stacks have a page without ledger and flame graph", () =>
  visit(browser.open(makeReport({ reads: 300 })), async (page) => {
    assert.equal(await page.locator("#ledger, #flame-graph").count(), 0);
    assert.deepEqual(await page.locator("nav a").allInnerTexts(), ["Launches", "Findings", "I/O map", "Losses, limits, repeat"]);
  }));

test("a bar has a part for each category as wide as its share, and unexplained time is hatched and a row of its own", () =>
  visit(browser.open(ledgerReport()), async (page) => {
    assert.deepEqual(await page.locator("nav a").allInnerTexts(), ["Launches", "Findings", "Time", "I/O map", "Losses, limits, repeat"]);
    const legend = (await page.locator("#ledger .legend tr").allInnerTexts()).map((t) => t.replace(/\s+/g, " ").trim());
    assert.deepEqual(legend.slice(1), ["timers 990 ms 50 %", "user 630 ms 32 %", "minor faults 300 ms 15 %", "locks 50 ms 2.5 %", "unexplained 30 ms 1.5 %"]);
    const bars = page.locator(".ledger-bar");
    assert.equal(await bars.count(), 3, "a process and its two threads");
    const widths = await bars.nth(1).locator(".piece").evaluateAll((all) => all.map((p) => Math.round((100 * p.getBoundingClientRect().width) / p.parentElement!.getBoundingClientRect().width)));
    assert.deepEqual(widths, [60, 30, 5, 5]);
    assert.match(await bars.nth(1).locator(".unexplained").evaluate((e) => getComputedStyle(e).backgroundImage), /repeating-linear-gradient/);
    // Rows with more than there is: nothing is drawn for it, and it is said.
    assert.equal(await bars.nth(2).locator(".unexplained").count(), 0);
    assert.match((await page.locator(".ledger-entry summary").nth(2).innerText()).replace(/\u00a0/g, " "), /1,000 ms\s+−2 %$/);
    assert.match(await text(page, "#ledger ul"), /1 thread is left out[\s\S]*Memory calls were not recorded/);
  }));

test("parts of a bar tell ms and % to the pointer and to the arrow keys, and a bar opens its table", () =>
  visit(browser.open(ledgerReport()), async (page) => {
    const entry = page.locator(".ledger-entry").nth(1);
    await scrollTo(page, ".ledger-entry");
    await entry.locator(".piece").nth(1).hover();
    assert.match(await text(page, "#tooltip"), /minor faults[\s\S]*300 ms \(30 %\)[\s\S]*1,000 ms, app/);
    await entry.locator("summary").focus();
    await page.mouse.move(2, 2);
    await page.keyboard.press("ArrowRight");
    assert.match(await text(page, "#tooltip"), /^user[\s\S]*600 ms \(60 %\)/);
    for (let i = 0; i < 9; i++) await page.keyboard.press("ArrowRight");
    assert.match(await text(page, "#tooltip"), /^unexplained[\s\S]*50 ms \(5 %\)/);
    await page.keyboard.press("Enter");
    await entry.locator("tbody tr").first().waitFor();
    const rows = (await entry.locator("tbody tr").allInnerTexts()).map((t) => t.replace(/\s+/g, " ").trim());
    assert.deepEqual(rows, ["user 600 ms 60 %", "minor faults 300 ms 30 %", "locks 50 ms 5 %", "unexplained 50 ms 5 %"]);
    assert.match((await entry.locator(".ledger-bar").getAttribute("aria-label"))!.replace(/\u00a0/g, " "), /^app, pid 7, thread 7: user 600 ms \(60 %\), .*unexplained 50 ms \(5 %\)\.$/);
  }));

test("less busy threads are folded away and reachable, and bars can share one scale", () =>
  visit(browser.open(makeReport({ reads: 300, threads: 120 })), async (page) => {
    const entries = page.locator(".ledger-bars").nth(1).locator(".ledger-entry");
    assert.equal(await entries.count(), 12);
    await page.click("#ledger .more:has-text('Show all 121')");
    assert.equal(await entries.count(), 121);
    assert.match(await entries.nth(120).innerText(), /412 other threads/);
    const widths = (): Promise<number[]> => page.locator(".ledger-bars").nth(1).locator(".ledger-bar").evaluateAll((all) => all.map((b) => Math.round(b.getBoundingClientRect().width)));
    assert.equal(new Set(await widths()).size, 1);
    await page.locator("#ledger select").selectOption("same");
    const scaled = await widths();
    assert.ok(scaled[0]! > 0.95 * Math.max(...scaled) && Math.min(...scaled) < scaled[0]! / 3, scaled.join());
  }));

test("the categories of a bar have colours of their own in the light and in the dark", async () => {
  for (const colours of ["light", "dark"] as const) {
    await visit(browser.open(makeReport({ reads: 300, threads: 40 }), { colours }), async (page) => {
      const found = await page.locator("#ledger .legend .swatch:not(.unexplained)").evaluateAll((all) => all.map((s) => getComputedStyle(s).backgroundColor));
      assert.ok(found.length >= 10 && new Set(found).size === found.length, `${colours}: ${found.join()}`);
    });
  }
});

test("weights that were not recorded are greyed with the option that records them", () =>
  visit(browser.open(flameReport()), async (page) => {
    const labels = (await page.locator("#flame-graph fieldset label").allInnerTexts()).map((t) => t.trim());
    assert.deepEqual(labels, ["CPU samples", "Off-CPU time (not recorded: --stacks wait)", "Fault time (not recorded: --stacks fault)", "Bytes allocated (not recorded: --stacks alloc)"]);
    assert.deepEqual(await page.locator("#flame-graph input[type=radio]").evaluateAll((all) => all.map((i) => [(i as HTMLInputElement).checked, (i as HTMLInputElement).disabled])), [[true, false], [false, true], [false, true], [false, true]]);
  }));

test("a click zooms, a search counts, an inverted graph begins with the innermost function", () =>
  visit(browser.open(flameReport()), async (page) => {
    await scrollTo(page, ".flames");
    const status = (): Promise<string> => text(page, "#flame-graph [role=status]");
    const copy = await flamePlace(page, 0.1, 4);
    await page.mouse.move(copy.x, copy.y);
    assert.match(await text(page, "#tooltip"), /copy[\s\S]*libc\.so\.6[\s\S]*60, 60 % of all[\s\S]*60, 60 %/);
    const work = await flamePlace(page, 0.7, 3);
    await page.mouse.click(work.x, work.y);
    assert.equal(await status(), "Zoomed to work: 80, 80 % of all.");
    // Now copy has three quarters of the width.
    const wider = await flamePlace(page, 0.73, 4);
    await page.mouse.move(wider.x, wider.y);
    assert.match(await text(page, "#tooltip"), /copy[\s\S]*of the zoom\s+75 %/);
    await page.fill("#flame-graph input[type=search]", "LIBC");
    assert.equal(await status(), "Zoomed to work: 80, 80 % of all. Found in 2 boxes with 75, 75 % of all.");
    await page.click("#flame-graph .reset");
    await page.fill("#flame-graph input[type=search]", "nothing like it");
    assert.equal(await status(), "Nothing has this in its name.");
    await page.locator("#flame-graph select").selectOption("callers");
    await page.locator(".flames").focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowDown");
    assert.match(await text(page, "#tooltip"), /^copy[\s\S]*60 % of all/);
  }));

test("the keyboard walks and zooms the flame graph, and a table says the same", () =>
  visit(browser.open(flameReport()), async (page) => {
    await scrollTo(page, ".flames");
    await page.locator(".flames").focus();
    for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight"]) await page.keyboard.press(key);
    assert.match(await text(page, "#tooltip"), /^log[\s\S]*15, 15 % of all/);
    await page.keyboard.press("Enter");
    assert.match(await text(page, "#flame-graph [role=status]"), /^Zoomed to log/);
    await page.keyboard.press("Escape");
    assert.equal(await text(page, "#flame-graph [role=status]"), "");
    const rows = (await page.locator("#flame-graph tbody tr").allInnerTexts()).map((t) => t.replace(/\s+/g, " ").trim());
    assert.deepEqual(rows, ["copy libc.so.6 60 60 % 60 60 %", "work app 20 20 % 80 80 %", "log libc.so.6 15 15 % 15 15 %", "[no stack] 5 5 % 5 5 %", "main app 0 0 % 95 95 %"]);
  }));

test("on paper the graph of what is selected says what it is of, without buttons", () =>
  visit(browser.open(selectionReport()), async (page) => {
    await page.locator("#finding-2 .show-elsewhere").click();
    assert.equal(await text(page, ".flame-part span"), "Only what is selected, helper (pid 9): 3 samples of 8 (38 %).");
    await page.emulateMedia({ media: "print" });
    assert.equal(await page.locator(".flame-part span").isVisible(), true);
    assert.equal(await page.locator(".flame-part button, .show-elsewhere, .selection-bar").evaluateAll((all) => all.some((e) => e.getClientRects().length > 0)), false);
    assert.equal(await text(page, "#flame-graph caption"), "The same by function: CPU samples, only what is selected");
  }));

test("hostile names of threads, functions and files stay text, and the page no wider than the window", async () => {
  for (const width of [1280, 420]) {
    await visit(browser.open(makeReport({ reads: 300, threads: 30, flames: 3_000, hostileNames: true }), { width }), async (page) => {
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0, `${width} px`);
      const shown = (await page.locator(".ledger-name bdi").allInnerTexts()).join("\n");
      assert.ok(shown.includes(displayText(HOSTILE_NAMES[1]!)), shown);
      await page.click("#flame-graph .more");
      const table = (await page.locator("#flame-graph tbody").allInnerTexts()).join("\n");
      assert.ok(table.includes(displayText(HOSTILE_NAMES[0]!)), "the table of functions shows markup as text");
      assert.equal(await page.locator("img, iframe, object").count(), 0);
      const body = await page.evaluate(() => document.body.outerHTML.replace(/<script[\s\S]*?<\/script>/g, ""));
      assert.doesNotMatch(body, /[\u0000-\u0008\u000b-\u001f\u007f\u202a-\u202e\u2066-\u2069]/);
    });
  }
});

test("graphs of the largest size that is made are drawn", () =>
  visit(browser.open(makeReport({ reads: 300, threads: 300, flames: 12_000 })), async (page) => {
    const data = await page.evaluate(() => document.getElementById("slowpath-data")!.textContent!.length);
    const built = await page.evaluate(() => performance.getEntriesByName("slowpath:built")[0]!.startTime);
    const first = await page.evaluate(() => performance.getEntriesByName("slowpath:flames").map((e) => ({ ms: e.duration, boxes: (e as PerformanceMeasure).detail.boxes as number })));
    console.log(`  ${(data / 1e6).toFixed(1)} MB of data; built ${built.toFixed(0)} ms after navigation; ${first[0]!.boxes} boxes in ${first[0]!.ms.toFixed(1)} ms`);
    assert.ok(first[0]!.boxes > 1_000, JSON.stringify(first));
    const painted = await page.locator(".flames canvas").evaluate((e) => {
      const canvas = e as HTMLCanvasElement;
      const { data } = canvas.getContext("2d")!.getImageData(0, 0, canvas.width, Math.min(canvas.height, 90));
      return new Set(new Uint32Array(data.buffer)).size;
    });
    assert.ok(painted > 5, `${painted} colours`);
  }));
