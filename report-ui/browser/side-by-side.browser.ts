// Launches and children side by side in a real browser: what is shown, by pointer, by keyboard, by address, on paper and in the dark.
//
// Run by `npm run test:browser`.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { makeComparison } from "../fixtures/comparison";
import { HOSTILE_NAMES } from "../fixtures/io-map";
import { makeReport } from "../fixtures/report";
import { largeSideBySide, makeSiblings, makeSideBySide } from "../fixtures/side-by-side";
import { reportOf } from "../fixtures/text-columns";
import { displayText } from "../src/display-text";
import { ReportBrowser, scrollTo, text, visit } from "./open-page";

let browser: ReportBrowser;
before(async () => {
  browser = await ReportBrowser.start();
});
after(() => browser.close());

const lines = async (page: Page, selector: string): Promise<string[]> => (await page.locator(selector).allInnerTexts()).map((t) => t.replace(/\s+/g, " ").trim());
const report = (): ReturnType<typeof reportOf> => reportOf({ launches: makeSideBySide(), siblings: makeSiblings() });

test("launches stand by group on one scale, the median of each is a line, and the middle and the shown launch are named", () =>
  visit(browser.open(report()), async (page) => {
    assert.deepEqual(await lines(page, "nav a"), ["Launches", "Side by side", "Findings", "Children", "I/O map", "Losses, limits, repeat"]);
    assert.deepEqual(await lines(page, "#side-by-side .launch-group h3"), ["warm: 2 launches, median 122 ms", "cold: 3 launches, median 220 ms"]);
    const widths = await page.locator("#side-by-side .ledger-bar").evaluateAll((all) => all.map((b) => Math.round((320 * b.getBoundingClientRect().width) / b.parentElement!.getBoundingClientRect().width)));
    assert.deepEqual(widths, [120, 124, 220, 320, 170]);
    const marks = await page.locator("#side-by-side .bar-mark").evaluateAll((all) => all.map((m) => Math.round((320 * (m.getBoundingClientRect().left - m.parentElement!.getBoundingClientRect().left)) / m.parentElement!.getBoundingClientRect().width)));
    assert.deepEqual(marks, [122, 122, 220, 220, 220]);
    assert.deepEqual(await lines(page, "#side-by-side .ledger-entry summary .ledger-name"), ["w1", "w2", "c1 median, shown on this page", "c2", "c3"]);
    assert.match((await lines(page, "#side-by-side .ledger-entry summary"))[3]!, /320 ms \+100 ms$/);
    assert.match((await page.locator("#side-by-side .ledger-bar").nth(3).getAttribute("aria-label"))!.replace(/\u00a0/g, " "), /^c2, to ready: other I\/O 160 ms \(50 %\), user or kernel 108 ms/);
  }));

test("the spans that grew come first, by sentence and by table, and a group is compared within itself", () =>
  visit(browser.open(report()), async (page) => {
    assert.match(await text(page, ".grown"), /The slowest, c2, takes 200 ms more than the fastest, w1\. 160 ms of it \(80 %\) is other I\/O in worker \(app\)/);
    const rows = (await lines(page, ".grown-tables > div:first-child tbody tr")).slice(0, 2);
    assert.match(rows[0]!, /^worker \(app\) other I\/O 0 ms 160 ms \+160 ms 80 % 0 ms 90 ms \+90 ms/);
    assert.match(rows[1]!, /^app major faults 0 ms 50 ms \+50 ms/);
    assert.match(await text(page, ".grown-tables > div:first-child caption"), /rows add up to the launch\. Spans without a row: \+6 ms/);
    assert.match((await lines(page, ".grown-tables > div:last-child tbody tr"))[0]!, /^renderer 1 fork to ready 40 ms 80 ms \+40 ms/);
    await page.locator("#side-by-side .controls select").selectOption("1");
    assert.match(await text(page, ".grown"), /The slowest, c2, takes 150 ms more than the fastest, c3\. 100 ms of it \(67 %\)/);
    assert.match(page.url(), /#side-by-side\/of=1$/);
  }));

test("parts of a bar are told by pointer and keys, a bar opens its table, and the table of all launches says the same", () =>
  visit(browser.open(report()), async (page) => {
    await scrollTo(page, "#side-by-side .ledger-entry");
    await page.locator("#side-by-side .ledger-entry").nth(3).locator(".piece").nth(2).hover();
    assert.match(await text(page, "#tooltip"), /^other I\/O[\s\S]*160 ms \(50 %\)[\s\S]*320 ms, c2/);
    await page.mouse.move(2, 2);
    const summary = page.locator("#side-by-side .ledger-entry summary").nth(3);
    await summary.focus();
    await page.keyboard.press("ArrowRight");
    assert.match(await text(page, "#tooltip"), /^user or kernel[\s\S]*108 ms/);
    await page.keyboard.press("Enter");
    await page.locator("#side-by-side .ledger-entry[open] tbody tr").first().waitFor();
    assert.deepEqual(await lines(page, "#side-by-side .ledger-entry[open] tbody tr"), ["other I/O 160 ms 50 %", "user or kernel 108 ms 34 %", "major faults 50 ms 16 %", "unexplained 2 ms 0.63 %"]);
    await page.waitForFunction(() => location.hash === "#side-by-side/launch=3");
    await page.locator("#side-by-side .launches-table summary").click();
    assert.deepEqual((await lines(page, "#side-by-side .launches-table tbody tr")).slice(0, 1), ["w1 warm 120 ms 98 ms 0 ms 0 ms 20 ms 2 ms"]);
  }));

test("an address leads to its group and launch, and a strange one to the page", () =>
  visit(browser.open(report()), async (page) => {
    await page.evaluate(() => (location.hash = "#side-by-side/of=0&launch=4"));
    await page.locator("#side-by-side .ledger-entry[open]").waitFor();
    assert.match((await lines(page, "#side-by-side .ledger-entry[open] .ledger-name"))[0]!, /^c3/);
    assert.match(await text(page, ".grown"), /The slowest, w2, takes 4 ms more/);
    await page.evaluate(() => (location.hash = "#side-by-side/of=99&launch=<b>"));
    await page.waitForFunction(() => /The slowest, c2/.test(document.querySelector(".grown")!.textContent!));
  }));

test("children start at one line, and how much they do alike is a sentence, a mark and a column", () =>
  visit(browser.open(report()), async (page) => {
    assert.deepEqual(await lines(page, "#siblings h3"), ["worker: 3 children, executed", "helper: 2 children, forked without exec"]);
    assert.match(await text(page, "#siblings .siblings"), /Each does the same work: in the middle 15 ms of CPU, 75 % of what a child runs until it is ready or ends/);
    assert.match(await text(page, "#siblings"), /1 child is not drawn/);
    const lefts = await page.locator("#siblings .siblings").first().locator(".ledger-bar").evaluateAll((all) => all.map((b) => Math.round(b.getBoundingClientRect().left)));
    assert.equal(new Set(lefts).size, 1);
    assert.equal(await page.locator("#siblings .siblings").first().locator(".bar-mark").count(), 3);
    assert.match((await lines(page, "#siblings .ledger-entry summary"))[1]!, /^pid 12 forked at 60 ms, to ready .*60 ms 15 ms \(75 %\)$/);
    await page.locator("#siblings .launches-table summary").first().click();
    assert.deepEqual((await lines(page, "#siblings .launches-table tbody tr"))[0], "pid 11 50 ms 30 ms 20 ms 15 ms (75 %) 40");
  }));

test("a page of a comparison has the launches of both sides, and pages of one launch have none", async () => {
  const launches = makeSideBySide({ groups: ["before", "after"] });
  await visit(browser.open({ ...makeComparison(), launches }), async (page) => {
    assert.ok((await lines(page, "nav a")).includes("Side by side"));
    assert.match((await lines(page, ".grown-tables thead"))[0]!, /before, median after, median after − before/);
  });
  await visit(browser.open(makeReport({ reads: 300 })), async (page) => assert.equal(await page.locator("#side-by-side, #siblings").count(), 0));
});

test("a page of the largest size is drawn at any width, in the dark and on paper, and hostile names stay text", async () => {
  for (const [width, colours] of [[1280, "light"], [420, "dark"]] as const) {
    await visit(browser.open(reportOf(largeSideBySide(true)), { width, colours }), async (page) => {
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0, `${width} px`);
      assert.equal(await page.locator("#side-by-side .ledger-entry").count(), 200);
      assert.ok((await page.locator("#side-by-side, #siblings").allInnerTexts()).join("\n").includes(displayText(HOSTILE_NAMES[0]!)));
      assert.equal(await page.locator("img, iframe, object, main script").count(), 0);
      const body = await page.evaluate(() => document.body.outerHTML.replace(/<script[\s\S]*?<\/script>/g, ""));
      assert.doesNotMatch(body, /[\u0000-\u0008\u000b-\u001f\u007f\u202a-\u202e\u2066-\u2069]/);
      const built = await page.evaluate(() => performance.getEntriesByName("slowpath:built")[0]!.startTime);
      console.log(`200 launches, 300 spans and 1,200 children at ${width} px: built after ${built.toFixed(0)} ms`);
      await page.emulateMedia({ media: "print" });
      assert.equal(await page.locator("#side-by-side .controls").isVisible(), false);
      assert.ok(await page.locator("#side-by-side .ledger-bar").first().isVisible());
    });
  }
});
