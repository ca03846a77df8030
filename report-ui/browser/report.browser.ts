// The report in a real browser: what is shown, what cannot happen, and how long it takes.
//
// Run by `npm run test:browser`; needs Chromium (`CHROMIUM` names another binary). Prints the times.

import assert from "node:assert/strict";
import { cpus, loadavg } from "node:os";
import { after, before, test } from "node:test";
import type { Page } from "playwright-core";
import { HOSTILE_NAMES } from "../fixtures/io-map";
import { makeReport } from "../fixtures/report";
import { reportOf } from "../fixtures/text-columns";
import { displayText } from "../src/display-text";
import { ReportBrowser, text, visit } from "./open-page";

/** The first drawing of 100,000 reads, from the start of navigation. */
const FIRST_DRAWING_LIMIT_MS = 1000;
/** A frame of a zoom or pan over them. */
const FRAME_LIMIT_MS = 50;
/** Other work on the machine only adds time, so the best of a few attempts counts; all are printed. */
const ATTEMPTS = 6;
/** With more to run than processors, the clock measures the others: then processor time is judged, and the median frame. */
const overloaded = (): boolean => process.env.SLOWPATH_TEST_BESIDE !== undefined || loadavg()[0]! > cpus().length;

let browser: ReportBrowser;
before(async () => {
  browser = await ReportBrowser.start();
});
after(() => browser.close());

/** The place on the screen of a fraction of the first picture's plot. */
async function place(page: Page, fx: number, fy: number): Promise<{ x: number; y: number }> {
  const box = (await page.locator(".file-panel .plot").first().boundingBox())!;
  return { x: box.x + 62 + fx * (box.width - 68), y: box.y + 27 + fy * (box.height - 44) };
}

async function showFirstPicture(page: Page): Promise<void> {
  await page.locator(".file-panel").first().evaluate((e) => e.scrollIntoView());
  await page.waitForFunction(() => performance.getEntriesByName("slowpath:paint").length > 0);
}

test("the answer says why, what was tried and by how much it helped", () =>
  visit(browser.open(makeReport()), async (page) => {
    const answer = await text(page, "#answer");
    assert.match(answer, /A cold launch of chromium takes \d+ ms to ready \(“browser”; 95 % interval \d+ to \d+ ms\)/);
    assert.match(answer, /The fix preload plan made it \d+ ms faster \(95 % interval \d+ to \d+ ms; \d+ ms against the sham\), \d+ % of the cold launch and 73 % of the gap/);
    assert.match(answer, /335 ms had been predicted/);
  }));

test("every launch is a dot, and pointing at one shows its block in all arms", () =>
  visit(browser.open(makeReport()), async (page) => {
    assert.equal(await page.locator(".arms-picture circle").count(), 6 * 20 - 1);
    assert.equal(await page.locator(".arms-picture .median").count(), 6);
    // Scrolling hides tooltips, so it must be over before the pointer comes.
    await page.evaluate(async () => {
      document.getElementById("arms")!.scrollIntoView();
      for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
    });
    await page.hover(".arms-picture .role-fix circle[data-block='4']");
    assert.match(await text(page, "#tooltip"), /Block 5 of 20[\s\S]*cold[\s\S]*ms[\s\S]*warm[\s\S]*ms/);
    assert.equal(await page.locator(".arms-picture circle.on").count(), 6);
    await page.locator(".arms-picture").focus();
    await page.keyboard.press("ArrowRight");
    assert.match(await text(page, "#tooltip"), /Block 6 of 20/);
  }));

test("tables sort by a click on their head", () =>
  visit(browser.open(makeReport()), async (page) => {
    const firstFile = (): Promise<string> => text(page, "#io-map .sortable tbody tr td");
    const before = await firstFile();
    await page.click("#io-map .sortable th[data-key='size'] button");
    await page.click("#io-map .sortable th[data-key='size'] button");
    assert.notEqual(await firstFile(), before);
    assert.equal(await page.getAttribute("#io-map .sortable th[data-key='size']", "aria-sort"), "ascending");
  }));

const LONG_PATH = `/usr/lib/python3.11/${"deep/".repeat(12)}_decimal.cpython-311-x86_64-linux-gnu.so`;

test("the page is never wider than the window, and a desktop window shows every table whole", async () => {
  const report = makeReport({ hostileNames: true });
  for (const arm of report.diagnosis!.launch.arms) arm.title = "advice on every needed file as a whole, as another tool does";
  const row = { path: LONG_PATH, size_bytes: 6831736, pages_needed: 11893, pages_read: 21342, pages_wasted: 10449, steps_forward: 11354, steps_backward: 11393, steps_adjacent: 4145, blocked_ms: 1390.2, pages_by_fault: 1, pages_by_read: 2, pages_by_exec: 3, median_kib_text: 4 };
  report.findings[0]!.evidence = [{ text: "What was read of each file. ".repeat(5), rows: Array.from({ length: 32 }, () => row) }];
  for (const width of [1280, 1024, 420]) {
    await visit(browser.open(report, { width }), async (page) => {
      const { over, frames } = await page.evaluate(() => ({
        over: document.documentElement.scrollWidth - document.documentElement.clientWidth,
        frames: [...document.querySelectorAll<HTMLElement>("#arms > .table-frame, .evidence .table-frame, #io-map .table-frame")].filter((f) => f.scrollWidth > f.clientWidth).map((f) => f.getAttribute("aria-label")),
      }));
      assert.equal(over, 0, `the page at ${width} px`);
      if (width >= 1024) assert.deepEqual(frames, [], `tables that must be scrolled at ${width} px`);
    });
  }
});

test("evidence has one line a row, its path in the first column, and more rows and columns on demand", async () => {
  const report = makeReport();
  const row = { blocked_ms: 1, path: LONG_PATH, pages_read: 3, pages_needed: null, size_bytes: 4, a: 1, b: 2, c: 3, d: 4, pages_by_fault: 1, pages_by_read: 2, median_kib_text: 4 };
  report.findings[0]!.evidence = [{ text: "files", rows: Array.from({ length: 32 }, () => row) }];
  await visit(browser.open(report), async (page) => {
    const heads = (): Promise<string[]> => page.locator("#finding-1 .evidence th:visible").allInnerTexts();
    const rows = page.locator("#finding-1 .evidence tbody tr");
    assert.deepEqual((await heads()).slice(0, 3), ["path", "read, pages", "blocked, ms"]);
    assert.equal(await rows.count(), 12);
    assert.ok((await rows.evaluateAll((all) => Math.max(...all.map((r) => r.getBoundingClientRect().height)))) < 30);
    assert.match(await rows.first().locator("td").first().innerText(), /_decimal.*linux-gnu\.so$/);
    assert.equal(await rows.first().locator("td bdi").first().getAttribute("title"), LONG_PATH);
    const before = (await heads()).length;
    await page.click("#finding-1 .more:has-text('Show 3 more columns')");
    assert.equal((await heads()).length, before + 3);
    await page.click("#finding-1 .more:has-text('Show all 32 rows')");
    assert.equal(await rows.count(), 32);
  });
});

test("the I/O map tells page, section, process, asker and need of a read under the pointer", () =>
  visit(browser.open(makeReport()), async (page) => {
    await showFirstPicture(page);
    // The relocations are swept first, at the left end of the file.
    let shown = "";
    for (let i = 0; i < 40 && !shown.includes("asked by"); i++) {
      const at = await place(page, 0.005 + i * 0.0007, 0.01);
      await page.mouse.move(at.x, at.y);
      shown = (await page.locator("#tooltip").isVisible()) ? await text(page, "#tooltip") : "";
    }
    assert.match(shown, /page [\d,]+ of 65,536/);
    assert.match(shown, /\.rela\.dyn \(relocations\)/);
    assert.match(shown, /chromium \(pid 4711\)/);
    assert.match(shown, /asked by\s+(fault|readahead)/);
    assert.match(shown, /needed|wasted/);
    assert.match(shown, /ms after start/);
  }));

test("wheel, drag, double click, Escape and keys zoom, pan and reset; the wheel over an unchosen picture scrolls", () =>
  visit(browser.open(makeReport()), async (page) => {
    await showFirstPicture(page);
    const range = (): Promise<string> => text(page, ".file-panel .zoom-text");
    const middle = await place(page, 0.5, 0.5);
    const scrolled = await page.evaluate(() => scrollY);
    await page.mouse.move(middle.x, middle.y);
    await page.mouse.wheel(0, 60);
    await page.waitForFunction((y) => scrollY !== y, scrolled);
    assert.equal(await range(), "");
    await showFirstPicture(page);

    await page.mouse.click(middle.x, middle.y);
    await page.mouse.wheel(0, -400);
    await page.waitForFunction(() => document.querySelector(".file-panel .zoom-text")?.textContent !== "");
    const zoomed = await range();
    await page.mouse.down();
    await page.mouse.move(middle.x + 150, middle.y + 40, { steps: 4 });
    await page.mouse.up();
    assert.notEqual(await range(), zoomed, "a drag pans");
    await page.mouse.dblclick(middle.x, middle.y);
    assert.equal(await range(), "", "a double click resets");

    const [a, b] = [await place(page, 0.25, 0.25), await place(page, 0.5, 0.5)];
    await page.mouse.move(a.x, a.y);
    await page.mouse.down();
    await page.mouse.move(b.x, b.y, { steps: 4 });
    await page.mouse.up();
    assert.match(await range(), /^64\.?\d* MiB to 12[78]\.?\d* MiB, 27[3-6] ms to 5(49|50|51) ms$/, "a drag over the whole selects");
    await page.keyboard.press("Escape");
    assert.equal(await range(), "", "Escape resets");
    await page.keyboard.press("+");
    assert.notEqual(await range(), "");
    await page.keyboard.press("n");
    assert.match(await text(page, "#tooltip"), /asked by/);
    await page.locator(".file-panel .reset").first().click();
    assert.equal(await range(), "");
  }));

test("files are filtered by name, and a file's row leads to its picture", () =>
  visit(browser.open(makeReport()), async (page) => {
    await page.fill("#io-map input[type=search]", "LIBNSS");
    assert.equal(await page.locator(".file-panel").count(), 1);
    await page.fill("#io-map input[type=search]", "no such file");
    assert.match(await text(page, ".controls [role=status]"), /No file with a read/);
    await page.locator("#io-map .sortable button.link").nth(2).click();
    assert.ok(await page.evaluate(() => document.activeElement?.classList.contains("plot")));
  }));

test("hostile names are shown as harmless text", () =>
  visit(browser.open(makeReport({ hostileNames: true })), async (page) => {
    await page.locator("#io-map .more").first().click();
    await page.locator("#io-map > .more").click();
    const shown = await page.locator(".file-panel h4").allInnerTexts();
    for (const name of HOSTILE_NAMES) {
      const visible = displayText(name).replace(/ {2,}/g, " ");
      assert.ok(shown.includes(visible), `${visible} is shown`);
    }
    assert.equal(await page.locator("img, iframe, object, a:not([href^='#'])").count(), 0);
    assert.equal(await page.locator("script").count(), 2);
    const body = await page.evaluate(() => document.body.outerHTML.replace(/<script[\s\S]*?<\/script>/g, ""));
    assert.doesNotMatch(body, /[\u0000-\u0008\u000b-\u001f\u007f\u202a-\u202e\u2066-\u2069]/);
  }));

test("what root hid is a table of rules and one of files, as harmless text", async () => {
  const plain = makeReport();
  await visit(browser.open(plain), async (page) => assert.equal(await page.locator("#hidden-by-root").count(), 0));
  const name = HOSTILE_NAMES[0]!;
  plain.diagnosis!.hidden_by_root = {
    uid: 65534,
    used: 30,
    unreadable: 14,
    unknown: 2,
    rules: [
      { path: "/srv/shop/__pycache__", rule: "mode 0700 of user 0 gives others no search", artifacts: 12 },
      { path: `/srv/${name}`, rule: name, artifacts: 2 },
    ],
    artifacts: [
      { path: "/srv/shop/__pycache__/m.cpython-311.pyc", family: "python_bytecode", denied_by: "/srv/shop/__pycache__", change: "chmod o+x /srv/shop/__pycache__" },
      { path: LONG_PATH, family: "python_bytecode", denied_by: `/srv/${name}`, change: null },
      { path: "/srv/other.pyc", family: name, denied_by: "/srv", change: `chmod o+r ${name}` },
    ],
  };
  for (const width of [1280, 420]) {
    await visit(browser.open(plain, { width }), async (page) => {
      assert.match(await text(page, "#hidden-by-root"), /User 65534 may not read 14 of the 30 compiled and cached files that they used\. Of 2 more/);
      assert.deepEqual(await page.locator("#hidden-by-root tbody tr td:first-child").allInnerTexts().then((all) => all.slice(0, 2)), ["12", "2"]);
      assert.match(await text(page, "#hidden-by-root"), /chmod o\+x \/srv\/shop\/__pycache__/);
      assert.equal(await page.locator("nav a[href='#hidden-by-root']").count(), 1);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0);
      const body = await page.evaluate(() => document.getElementById("hidden-by-root")!.outerHTML);
      assert.doesNotMatch(body, /[\u0000-\u0008\u000b-\u001f\u007f\u202a-\u202e\u2066-\u2069]/);
    });
  }
});

test("script that gets into the page does not run", () =>
  // The attack itself is what the console must report, so `visit` is not used here.
  (async () => {
    const { page, errors } = await browser.open(makeReport({ reads: 300 }));
    const ran = await page.evaluate(async () => {
      const script = document.createElement("script");
      try {
        script.text = "window.owned = true";
      } catch {
        script.append("window.owned = true");
      }
      document.body.append(script);
      let parsed = false;
      try {
        document.body.insertAdjacentHTML("beforeend", "<img src=x onerror='window.owned=true'>");
        parsed = true;
      } catch {
        // The policy refuses to parse text as markup.
      }
      const sent = await fetch("https://example.org/").then(() => true, () => false);
      return { owned: "owned" in window, parsed, sent };
    });
    assert.deepEqual(ran, { owned: false, parsed: false, sent: false });
    assert.ok(errors.length > 0, "the browser reports what it blocked");
    await page.close();
  })());

test("what is missing is said", async () => {
  await visit(browser.open(makeReport({ diagnosis: "none", map: false })), async (page) => {
    assert.match(await text(page, "#arms"), /No launches were compared/);
    assert.match(await text(page, "#io-map"), /holds no page cache events/);
  });
  await visit(browser.open(reportOf({})), async (page) => {
    assert.match(await text(page, "#findings"), /No finding/);
  });
  await visit(browser.open(makeReport({ needed: false, reads: 500 })), async (page) => {
    assert.match(await text(page, ".file-figures"), /waste unknown/);
    assert.match(await text(page, "#answer"), /never needed\s+unknown/);
  });
  await visit(browser.open(makeReport({ diagnosis: "nothing-helps", reads: 500 })), async (page) => {
    assert.match(await text(page, "#answer"), /None of the 2 fixes that were tried made it measurably faster/);
  });
  await visit(browser.open(reportOf({}), { unfilled: true }), async (page) => {
    assert.match(await text(page, "[role=alert]"), /never filled in/);
  });
});

test("100,000 reads are drawn at once, and zoomed, panned and pointed at without delay", () =>
  visit(browser.open(makeReport({ reads: 165_000, files: 220 })), async (page) => {
    const reads = await page.evaluate(() => JSON.parse(document.getElementById("slowpath-data")!.textContent!).io_map.reads.t_ns.length as number);
    assert.ok(reads >= 100_000, `the fixture holds ${reads} reads`);
    // Loads that open at the map, so that its largest picture is in the first drawing.
    await page.evaluate(() => (location.hash = "#io-map-keys"));
    const thread = await page.context().newCDPSession(page);
    await thread.send("Performance.enable");
    const threadMs = async (): Promise<number> => 1000 * ((await thread.send("Performance.getMetrics")).metrics.find((m) => m.name === "ThreadTime")?.value ?? NaN);
    const loads: number[] = [];
    for (let attempt = 0; attempt < ATTEMPTS && !(Math.min(...loads) < FIRST_DRAWING_LIMIT_MS); attempt++) {
      const before = await threadMs();
      await page.reload();
      await page.waitForFunction((n) => performance.getEntriesByName("slowpath:paint").some((e) => (e as PerformanceMeasure).detail.reads > n), reads * 0.9);
      const byClock = await firstDrawing(page);
      const byProcessor = (await threadMs()) - before;
      console.log(`  processor time of the page's thread: ${byProcessor.toFixed(0)} ms; load ${loadavg()[0]!.toFixed(1)} on ${cpus().length} processors`);
      loads.push(overloaded() ? byProcessor : byClock);
    }
    await page.locator(".file-panel").first().evaluate((e) => e.scrollIntoView());
    const middle = await place(page, 0.5, 0.4);
    await page.mouse.click(middle.x, middle.y);
    const rounds: number[] = [];
    for (let attempt = 0; attempt < ATTEMPTS && !(Math.min(...rounds) < FRAME_LIMIT_MS); attempt++) rounds.push(await frameTime(page, middle));
    assert.ok(Math.min(...loads) < FIRST_DRAWING_LIMIT_MS, `first drawings took ${loads.join(", ")} ms`);
    assert.ok(Math.min(...rounds) < FRAME_LIMIT_MS, `frames took ${rounds.join(", ")} ms`);
  }));

/** Prints and returns when the last picture of the first drawing was done, in ms after navigation. */
async function firstDrawing(page: Page): Promise<number> {
  const first = await page.evaluate(() => {
    const paints = performance.getEntriesByName("slowpath:paint").map((e) => ({ end: e.startTime + e.duration, ms: e.duration, reads: (e as PerformanceMeasure).detail.reads as number }));
    const largest = paints.reduce((a, b) => (b.reads > a.reads ? b : a));
    const stages = ["read", "derived", "built"].map((n) => `${n} ${performance.getEntriesByName(`slowpath:${n}`)[0]!.startTime.toFixed(0)}`);
    return { largest, pictures: paints.length, stages: stages.join(", "), end: Math.max(...paints.map((p) => p.end)) };
  });
  console.log(`first drawing: ${first.end.toFixed(0)} ms after navigation (${first.stages} ms; ${first.pictures} pictures, the largest of ${first.largest.reads} reads in ${first.largest.ms.toFixed(1)} ms)`);
  return first.end;
}

/** Sends an event a frame; prints the times from event to end of frame and returns their 90th percentile in ms (see `overloaded`). */
async function frameTime(page: Page, at: { x: number; y: number }): Promise<number> {
  await page.evaluate(() => performance.clearMeasures());
  const frames = await page.evaluate(async ({ x, y }) => {
    const plot = document.querySelector<HTMLElement>(".file-panel .plot")!;
    plot.setPointerCapture = () => undefined;
    const frame = (): Promise<number> => new Promise((done) => requestAnimationFrame(done));
    const times: number[] = [];
    const timed = async (send: () => void): Promise<void> => {
      await frame();
      const start = performance.now();
      send();
      await frame();
      // A message comes after the frame's callbacks and what the browser does with their drawing.
      await new Promise((done) => {
        const channel = new MessageChannel();
        channel.port1.onmessage = done;
        channel.port2.postMessage(0);
      });
      times.push(performance.now() - start);
    };
    const wheel = (deltaY: number): void => void plot.dispatchEvent(new WheelEvent("wheel", { deltaY, clientX: x, clientY: y, bubbles: true, cancelable: true }));
    const pointer = (type: string, dx: number): void => void plot.dispatchEvent(new PointerEvent(type, { clientX: x + dx, clientY: y, button: 0, pointerId: 1, bubbles: true }));
    for (let i = 0; i < 20; i++) await timed(() => wheel(i < 10 ? -60 : 40));
    pointer("pointerdown", 0);
    for (let i = 1; i <= 20; i++) await timed(() => pointer("pointermove", i * 9));
    pointer("pointerup", 180);
    for (let i = 0; i < 20; i++) await timed(() => pointer("pointermove", i * 7));
    return times;
  }, at);
  const paints = await page.evaluate(() => performance.getEntriesByName("slowpath:paint").map((e) => e.duration));
  assert.ok(paints.length >= 38, `each zoom and pan painted (${paints.length})`);
  const quantile = (values: number[], q: number): number => [...values].sort((a, b) => a - b)[Math.floor(q * (values.length - 1))]!;
  const show = (values: number[]): string => `median ${quantile(values, 0.5).toFixed(1)}, 90 % below ${quantile(values, 0.9).toFixed(1)}, worst ${quantile(values, 1).toFixed(1)} ms of ${values.length}`;
  console.log(`frames, event to end of frame: ${show(frames)}; painting alone: ${show(paints)}`);
  return quantile(frames, overloaded() ? 0.5 : 0.9);
}
