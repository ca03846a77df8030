// The page of a comparison in a real browser: what is shown, by pointer and by keyboard, and how long a large one takes.
//
// Run by `npm run test:browser`.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { changed, largeComparison, makeComparison } from "../fixtures/comparison";
import { HOSTILE_NAMES } from "../fixtures/io-map";
import { displayText } from "../src/display-text";
import { flamePlace, ReportBrowser, scrollTo, text, visit } from "./open-page";

let browser: ReportBrowser;
before(async () => {
  browser = await ReportBrowser.start();
});
after(() => browser.close());

const lines = async (page: Page, selector: string): Promise<string[]> => (await page.locator(selector).allInnerTexts()).map((t) => t.replace(/\s+/g, " ").trim());

test("the head says what changed and what speaks against it, and every part is linked", () =>
  visit(browser.open(makeComparison()), async (page) => {
    assert.match(await text(page, "#answer"), /\.\/video each → \.\/video in-place[\s\S]*CPU time: 574 ms before, 93 ms after\. CPU in copy_frame: 309 ms before, 0 ms after\. Allocated in copy_frame: 396 MiB before, 0 B after/);
    assert.match(await text(page, ".cautions"), /^One recording each: no interval[\s\S]*1 thing cannot be compared/);
    assert.deepEqual(await lines(page, "nav a"), ["What changed", "Findings", "Time", "Flame graph", "Functions", "Gaps, losses, repeat"]);
    assert.deepEqual(await lines(page, "#totals tbody tr"), ["time to ready 10 s 10.0 s +10 ms +0.1 %", "CPU time 574 ms 93 ms −481 ms −84 %", "page faults 102,291 510 −101,781 −100 %", "bytes allocated 424 MiB 27.7 MiB −397 MiB −93 %"]);
    assert.match((await lines(page, "#findings tbody tr"))[0]!, /maps 1\.32 MiB anew .* transient_large_allocation, video, copy_frame 203 ms not found gone$/);
    assert.match(await text(page, "#circumstances"), /the kernel's own threads\s+recorded on neither side\s+record with --system[\s\S]*slowpath compare \/tmp\/before \/tmp\/after/);
    assert.equal(await page.locator("#io-map, #arms").count(), 0);
  }));

test("with intervals a change beside zero is marked, and one that holds zero is not", () => {
  const page = makeComparison({ has_intervals: true, totals: [{ measure: "cpu_time", change: changed(574, 93, "ms", 20) }, { measure: "faults", change: changed(100, 105, "count", 20) }, { measure: "release_time", change: changed(10, 40, "ms", 5) }] });
  return visit(browser.open(page), async (p) => {
    assert.deepEqual(await lines(p, "#totals tbody tr"), ["CPU time 574 ms 93 ms −481 ms −501 to −461 ms", "page faults 100 105 +5 −15 to 25", "time in giving memory back 10 ms 40 ms +30 ms 25 to 35 ms"]);
    assert.deepEqual(await lines(p, "#totals .outcome-helps, #totals .outcome-hurts"), ["−481 ms", "+30 ms"]);
  });
});

test("bars before and after stand on one scale, and both are told by pointer, keyboard and table", () =>
  visit(browser.open(makeComparison()), async (page) => {
    const pair = page.locator(".ledger-pair").first();
    const bars = pair.locator(".ledger-bar");
    const widths = await bars.evaluateAll((all) => all.map((b) => Math.round((100 * b.getBoundingClientRect().width) / b.parentElement!.getBoundingClientRect().width)));
    assert.deepEqual(widths, [100, 25], "406 ms beside 102 ms");
    await scrollTo(page, ".ledger-pair");
    await bars.first().locator(".piece").nth(1).hover();
    assert.match(await text(page, "#tooltip"), /^minor faults[\s\S]*before\s+166 ms\s+after\s+1 ms\s+change\s+−165 ms \(−99 %\)/);
    assert.equal(await pair.locator(".piece.on").count(), 2, "the same part of both bars");
    await page.mouse.move(2, 2);
    await pair.locator("summary").focus();
    await page.keyboard.press("ArrowRight");
    assert.match(await text(page, "#tooltip"), /^user[\s\S]*200 ms/);
    for (let i = 0; i < 9; i++) await page.keyboard.press("ArrowRight");
    assert.match(await text(page, "#tooltip"), /^unexplained/, "which only one side has");
    await page.keyboard.press("Enter");
    await pair.locator("tbody tr").first().waitFor();
    assert.deepEqual((await lines(page, ".ledger-pair[open] tbody tr")).slice(0, 2), ["user 200 ms 80 ms −120 ms −60 %", "minor faults 166 ms 1 ms −165 ms −99 %"]);
    await page.locator("#ledger select").first().selectOption("all");
    assert.match((await page.locator(".ledger-bar").first().getAttribute("aria-label"))!.replace(/\u00a0/g, " "), /^all programs, before: .*timers 9,000 ms/);
  }));

test("the differential flame graph has the widths of either side, shows what is gone, and its colours follow the change", () =>
  visit(browser.open(makeComparison()), async (page) => {
    await scrollTo(page, ".flames");
    assert.match(await text(page, "#flame-graph .quiet"), /344 ms before, 40 ms after: −304 ms \(−88 %\)\. 309 ms of what was before are gone, and have no width here/);
    const labels = await lines(page, "#flame-graph fieldset label");
    assert.deepEqual(labels.slice(0, 2), ["CPU time", "Off-CPU time (recorded on neither side: record with --stacks wait)"]);
    const colourAt = (fx: number, row: number): Promise<string> =>
      page.locator(".flames canvas").evaluate((e, [x, y]) => {
        const canvas = e as HTMLCanvasElement;
        const ratio = canvas.height / canvas.clientHeight;
        // A copy each time: a canvas that is read again and again is drawn otherwise.
        const pixel = document.createElement("canvas").getContext("2d", { willReadFrequently: true })!;
        pixel.drawImage(canvas, -Math.round(x! * canvas.width), -Math.round((y! * 18 + 3) * ratio));
        const [r, , b] = pixel.getImageData(0, 0, 1, 1).data;
        return `${r! > b! + 12 ? "red" : b! > r! + 12 ? "blue" : "plain"}`;
      }, [fx, row] as const);
    // After: deliver has 30 of 40 ms; copy_frame is not there.
    const deliver = await flamePlace(page, 0.3, 3);
    await page.mouse.move(deliver.x, deliver.y);
    assert.match(await text(page, "#tooltip"), /^deliver[\s\S]*CPU time before\s+20 ms\s+after\s+30 ms\s+change\s+\+10 ms \(\+50 %\)/);
    assert.equal(await colourAt(0.3, 3), "red");
    assert.equal(await colourAt(0.3, 1), "plain", "the process has nothing of its own");
    const [widths, colour, direction] = [0, 1, 2].map((i) => page.locator("#flame-graph .controls select").nth(i));
    await colour!.selectOption("all");
    assert.equal(await colourAt(0.3, 1), "blue", "all of the process is less");
    await widths!.selectOption("before");
    await scrollTo(page, ".flames");
    const copy = await flamePlace(page, 0.3, 3);
    await page.mouse.move(copy.x, copy.y);
    assert.match(await text(page, "#tooltip"), /^copy_frame[\s\S]*after\s+0 ms/);
    assert.match(await text(page, "#tooltip"), /−309 ms \(gone\)[\s\S]*of its own\s+9 ms before/);
    await direction!.selectOption("callers");
    await page.locator(".flames").focus();
    for (const key of ["ArrowDown", "ArrowDown"]) await page.keyboard.press(key);
    assert.match(await text(page, "#tooltip"), /^memcpy[\s\S]*−300 ms \(gone\)/);
    await page.keyboard.press("Enter");
    assert.match(await text(page, "#flame-graph [role=status]"), /^Zoomed to memcpy: 300 ms, 87 % of all/);
    await page.fill("#flame-graph input[type=search]", "libc");
    assert.match(await text(page, "#flame-graph [role=status]"), /Found in 1 boxes with 300 ms/);
    assert.deepEqual((await lines(page, "#flame-graph tbody tr")).slice(0, 2), ["memcpy libc.so.6 300 ms 0 ms −300 ms (gone)", "deliver video 20 ms 30 ms +10 ms (+50 %)"]);
    assert.deepEqual(await lines(page, "#flame-graph .more:visible"), ["Show 3 more columns"]);
  }));

test("the colours of changes have enough contrast to their text in the light and in the dark", async () => {
  for (const colours of ["light", "dark"] as const) {
    await visit(browser.open(largeComparison(300, false), { colours }), async (page) => {
      const contrasts = await page.evaluate(() => {
        const style = getComputedStyle(document.documentElement);
        const light = (name: string): number => {
          const hex = style.getPropertyValue(name).trim();
          const [r, g, b] = [1, 3, 5].map((i) => Number.parseInt(hex.slice(i, i + 2), 16) / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
          return 0.2126 * r! + 0.7152 * g! + 0.0722 * b!;
        };
        const names = ["--diff-same", "--diff-chance", ...[1, 2, 3, 4].flatMap((s) => [`--diff-less-${s}`, `--diff-more-${s}`])];
        return names.map((name) => {
          const [a, b] = [light(name), light("--text")].sort((x, y) => y - x);
          return [name, (a! + 0.05) / (b! + 0.05)] as const;
        });
      });
      for (const [name, contrast] of contrasts) assert.ok(contrast >= 4.5, `${colours} ${name}: ${contrast.toFixed(1)}`);
      assert.match((await lines(page, ".flame-colours")).join(), /may be chance: the 95 % interval holds zero/);
    });
  }
});

test("hostile names stay text, and the page is no wider than the window", async () => {
  for (const width of [1280, 420]) {
    await visit(browser.open(largeComparison(2_000, true), { width }), async (page) => {
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0, `${width} px`);
      assert.ok((await page.locator("#functions tbody, #programs tbody, #circumstances tbody").allInnerTexts()).join("\n").includes(displayText(HOSTILE_NAMES[0]!)));
      assert.equal(await page.locator("img, iframe, object, main script").count(), 0);
      const body = await page.evaluate(() => document.body.outerHTML.replace(/<script[\s\S]*?<\/script>/g, ""));
      assert.doesNotMatch(body, /[\u0000-\u0008\u000b-\u001f\u007f\u202a-\u202e\u2066-\u2069]/);
    });
  }
});

test("a page of the largest size that is made is drawn", () =>
  visit(browser.open(largeComparison(12_000, false)), async (page) => {
    const data = await page.evaluate(() => document.getElementById("slowpath-data")!.textContent!.length);
    const built = await page.evaluate(() => performance.getEntriesByName("slowpath:built")[0]!.startTime);
    const first = await page.evaluate(() => performance.getEntriesByName("slowpath:flames").map((e) => ({ ms: e.duration, end: e.startTime + e.duration, boxes: (e as PerformanceMeasure).detail.boxes as number })));
    console.log(`  ${(data / 1e6).toFixed(1)} MB of data; built ${built.toFixed(0)} ms and drawn ${first[0]!.end.toFixed(0)} ms after navigation; ${first[0]!.boxes} boxes in ${first[0]!.ms.toFixed(1)} ms`);
    assert.ok(first[0]!.boxes > 500, JSON.stringify(first));
  }));
