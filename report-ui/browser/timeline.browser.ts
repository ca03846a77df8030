// The timeline in Chromium and in Firefox: what is shown, by pointer and by keyboard, what it filters, and how long a large one takes.
//
// Run by `npm run test:browser`; prints the times and asserts none. Without Firefox its half is skipped, and says so.
// `SLOWPATH_PAGE` names a filled page of a real recording, which is opened too.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { flamesFromText } from "../fixtures/flame-graphs";
import { HOSTILE_NAMES } from "../fixtures/io-map";
import { makeReport } from "../fixtures/report";
import { displayText } from "../src/display-text";
import type { Report } from "../src/types";
import { FIREFOX } from "./firefox";
import { frames, place, text, until, visitIn } from "./timeline-page";
import { startChromium, startFirefox, type Driven, type DrivenBrowser } from "./two-browsers";

function smallReport(): Report {
  const report = makeReport({ reads: 300, spans: 1 });
  report.flame_graphs = flamesFromText("  app;main@app;work@app 80\n  helper;main@helper 20\n");
  // Reads by two processes of the timeline: the first 50 ms by the app, then by its helper.
  const map = report.io_map!;
  map.processes = [{ pid: 7, name: "app" }, { pid: 9, name: "helper" }];
  const { reads } = map;
  reads.t_ns = reads.t_ns.map((_, i) => Math.round((i / reads.t_ns.length) * 90e6));
  reads.process = reads.t_ns.map((t) => (t < 50e6 ? 0 : 1));
  map.duration_ns = 100e6;
  map.ready_ns = null;
  report.findings[0]!.subject = { process: "app", pid: 7 };
  report.findings[1]!.subject = { process: "helper", pid: 9 };
  report.diagnosis!.findings = report.findings;
  return report;
}

for (const [name, start] of [["Chromium", startChromium], ["Firefox", startFirefox]] as const) {
  describe(`the timeline in ${name}`, { skip: name === "Firefox" && !FIREFOX ? "no Firefox here (FIREFOX names one)" : false }, () => {
    let browser: DrivenBrowser;
    before(async () => {
      browser = await start();
    });
    after(() => browser?.close());
    const visit = (report: Report | { html: string }, fragment: string, check: (page: Driven) => Promise<void>): Promise<void> => visitIn(browser, report, fragment, check);

    test("a click says what a thread did, who ended it, and filters the other parts; Escape ends that", () =>
      visit(smallReport(), "", async (page) => {
        assert.equal(await page.run("return [...document.querySelectorAll('nav a')].some((a) => a.textContent === 'Timeline')"), true);
        const files = await text(page, "#io-map .controls [role=status]");
        const lock = await place(page, 30, 1);
        await page.move(...lock);
        assert.match(await until(() => text(page, "#tooltip"), (t) => t !== ""), /app · 7[\s\S]*locks[\s\S]*50 ms[\s\S]*ended by[\s\S]*worker · 8 of app \(pid 7\)/);
        await page.click(...lock);
        assert.match(await text(page, ".timeline-chosen"), /^locks: waited on a futex.*50 ms from 10 ms on, app · 7 of app \(pid 7\)\. Ended by worker · 8 of app \(pid 7\) at 60 ms\.$/);
        assert.match(await text(page, ".selection-bar"), /Selected: locks, 50 ms at 10 ms, app · 7 of app \(pid 7\)/);
        assert.match(await text(page, "#io-map .controls [role=status]"), /files with reads in what is selected\./);
        assert.match(await text(page, "#flame-graph .controls:not(fieldset) [role=status]"), /^Zoomed to app: 80, 80 % of all\.$/);
        assert.equal(await page.run("return document.getElementById('finding-2').hidden && !document.getElementById('finding-1').hidden"), true);
        // The helper's span has no read of the app in it.
        await page.click(...(await place(page, 95, 1)));
        assert.equal(await text(page, "#io-map .controls [role=status]"), "No file was read in what is selected.");
        await page.key("Escape");
        assert.equal(await text(page, "#io-map .controls [role=status]"), files);
        assert.equal(await page.run("return document.querySelector('.selection-bar').hidden && !document.getElementById('finding-2').hidden"), true);
      }));

    test("keys walk through threads, spans, wake-ups and the critical path, and zoom", () =>
      visit(smallReport(), "", async (page) => {
        await page.run("document.querySelector('.timeline').focus()");
        const chosen = (): Promise<string> => text(page, ".timeline-chosen");
        await page.key("ArrowDown");
        assert.match(await chosen(), /^locks: .*app · 7/);
        await page.key("w");
        assert.match(await chosen(), /^timers: .*worker · 8/, "the thread that ended the wait, as it then went on");
        await page.key("p");
        assert.match(await chosen(), /^running: .*20 ms from 40 ms on, worker · 8.*On the critical path for 20 ms\.$/);
        await page.key("ArrowDown");
        assert.match(await chosen(), /^pipes, sockets: .*30 ms from 50 ms on, helper · 9 of helper/);
        await page.key("Escape");
        for (let i = 0; i < 3; i++) await page.key("c");
        assert.match(await chosen(), /^major faults: .*worker · 8/, "the third step of the path");
        await page.key("z");
        await frames(page);
        assert.match(await text(page, "#timeline > [role=status]"), /^0 ms to 60 ms\./);
        await page.key("+");
        await page.key("ArrowRight");
        await page.key("0");
        await frames(page);
        assert.match(await text(page, "#timeline > [role=status]"), /^0 ms to 100 ms\. 3 of 3 threads\.$/);
      }));

    test("wheel and drag zoom and move only a picture that was clicked", () =>
      visit(smallReport(), "", async (page) => {
        const range = async (): Promise<string> => (await frames(page), (await text(page, "#timeline > [role=status]")).split(". ")[0]!);
        await page.click(...(await place(page, 50, 2)));
        const middle = await place(page, 50, 2);
        await page.wheel(...middle, -300);
        const zoomed = await until(range, (t) => !t.startsWith("0 ms to 100 ms"));
        assert.match(zoomed, /ms to/);
        await page.drag(middle, [middle[0] + 120, middle[1]]);
        assert.notEqual(await range(), zoomed, "a drag moves");
        await page.run("document.querySelector('#timeline .reset').click()");
        assert.match(await range(), /^0 ms to 100 ms/);
      }));

    test("other parts filter the timeline: a finding its process, a read its moment, a box of the flame graph its program", () =>
      visit(smallReport(), "", async (page) => {
        const threads = async (): Promise<string> => (await frames(page), /\d+ of \d+ threads/.exec(await text(page, "#timeline > [role=status]"))![0]);
        await page.run("document.querySelector('#finding-2 .show-elsewhere').click()");
        assert.equal(await threads(), "1 of 3 threads");
        assert.match(await text(page, ".selection-bar"), /in the findings/);
        await page.run("document.querySelector('.selection-bar .reset').click()");
        assert.equal(await threads(), "3 of 3 threads");
        await page.run("document.querySelector('.flames').focus()");
        for (const key of ["ArrowDown", "ArrowDown", "Enter"]) await page.key(key);
        assert.match(await text(page, ".selection-bar"), /processes of app/);
        assert.equal(await threads(), "2 of 3 threads");
        await page.key("Escape");
        assert.equal(await threads(), "3 of 3 threads");
        await page.run("const p = document.querySelector('.file-panel .plot'); p.scrollIntoView({ block: 'center' }); p.focus({ preventScroll: true }); for (let i = 0; i < 5; i++) await new Promise(requestAnimationFrame);");
        // Scrolling, which hides what is pointed at, must be over.
        await until(async () => (await page.key("n"), page.run<boolean>("return !document.getElementById('tooltip').hidden")), (shown) => shown);
        await page.key("Enter");
        assert.match(await text(page, ".selection-bar"), /read of .* at .* \(pid [79]\)\s+in the I\/O map/);
        assert.match(await threads(), /^[12] of 3 threads$/);
      }));

    test("a link leads back to what was seen, and one by a stranger to nothing worse", async () => {
      const link = "#timeline/view=5000000..70000000&span=7.8@20000000&find=work";
      await visit(smallReport(), link, async (page) => {
        assert.match(await text(page, ".timeline-chosen"), /^major faults: .*worker · 8/);
        await frames(page);
        assert.equal(await text(page, "#timeline > [role=status]"), "5 ms to 70 ms. 1 of 3 threads.");
        assert.equal(await page.run("return document.querySelector('#timeline input[type=search]').value"), "work");
        await page.run("document.querySelector('.timeline').focus()");
        await page.key("n");
        assert.match(await until(() => page.run<string>("return location.hash"), (hash) => hash.includes("@35000000")), /^#timeline\/view=5000000\.\.70000000&span=7\.8@35000000&find=work$/);
      });
      await visit(smallReport(), "#timeline/view=9..1&span=999999.1@5&find=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E%E2%80%AE", async (page) => {
        await frames(page);
        assert.match(await text(page, "#timeline > [role=status]"), /No thread has this in its name or number\.$/);
        assert.equal(await page.run("return document.querySelectorAll('img').length"), 0);
      });
    });

    test("tables say the same as the picture, and lead into it", () =>
      visit(smallReport(), "", async (page) => {
        const rows = await page.run<string[]>("return [...document.querySelectorAll('.timeline-tables tbody')].map((b) => [...b.rows].map((r) => r.innerText.replace(/\\s+/g, ' ').trim()).join(' | '))");
        assert.equal(rows.length, 4);
        assert.match(rows[0]!, /^(?:worker · 8 app · 7 10 ms 90 ms 50 ms|app · 7 app · 7 0 ms 100 ms 50 ms)/);
        assert.match(rows[1]!, /^60 ms|^0 ms|^61 ms/);
        assert.match(rows[3]!, /^vda \(254:0\) 3 4 KiB 0 B 0$/);
        await page.run("document.querySelector('.timeline-tables tbody button').click()");
        assert.notEqual(await text(page, ".timeline-chosen"), "");
        await page.run("const s = document.querySelector('#timeline input[type=search]'); s.value = 'HELPER'; s.dispatchEvent(new Event('input'))");
        await frames(page);
        assert.match(await text(page, "#timeline > [role=status]"), /1 of 3 threads\.$/);
      }));

    test("hostile names stay text", () =>
      visit(makeReport({ reads: 300, spans: 2_000, hostileNames: true }), "", async (page) => {
        const shown = await text(page, ".timeline-tables");
        assert.ok(HOSTILE_NAMES.some((one) => shown.includes(displayText(one).replace(/ {2,}/g, " ").slice(0, 12))), shown.slice(0, 500));
        const body = await page.run<string>("return document.body.outerHTML.replace(/<script[\\s\\S]*?<\\/script>/g, '')");
        assert.doesNotMatch(body, /[\u0000-\u0008\u000b-\u001f\u007f\u202a-\u202e\u2066-\u2069]/);
        assert.equal(await page.run("return document.querySelectorAll('img, iframe, object').length"), 0);
        assert.equal(await page.run("return document.querySelectorAll('script').length"), 2);
      }));

    test("a million spans are there at once, and zoomed and moved without delay", () =>
      visit(makeReport({ reads: 300, spans: 1_000_000 }), "", async (page) => {
        const load = await page.run<{ data: number; shown: number; decode: number }>("const at = (n) => performance.getEntriesByName(n)[0].startTime; return { data: document.getElementById('slowpath-data').textContent.length, shown: at('slowpath:shown'), decode: at('slowpath:read') };");
        const drive = (key: string, times: number): Promise<{ paint: number[]; gaps: number[] }> =>
          page.run(`
            const frame = document.querySelector(".timeline"); frame.scrollIntoView({ block: "center" }); frame.focus();
            await new Promise((r) => setTimeout(r, 300));
            performance.clearMeasures("slowpath:timeline");
            const gaps = []; let last = await new Promise(requestAnimationFrame);
            for (let i = 0; i < ${times}; i++) {
              frame.dispatchEvent(new KeyboardEvent("keydown", { key: ${JSON.stringify(key)}, bubbles: true }));
              const now = await new Promise(requestAnimationFrame); gaps.push(now - last); last = now;
            }
            await new Promise(requestAnimationFrame);
            return { paint: performance.getEntriesByName("slowpath:timeline").map((e) => e.duration), gaps };
          `);
        const at = (all: number[], share: number): string => [...all].sort((a, b) => a - b)[Math.min(all.length - 1, Math.floor(share * all.length))]!.toFixed(1);
        console.log(`  ${name}: ${(load.data / 1e6).toFixed(1)} MB of data; read after ${load.decode.toFixed(0)} ms, shown after ${load.shown.toFixed(0)} ms`);
        for (const [what, key, times] of [["zoom in", "+", 24], ["move", "ArrowRight", 40], ["zoom out", "-", 24]] as const) {
          const { paint, gaps } = await drive(key, times);
          console.log(`  ${name}: ${what}: painting a frame ${at(paint, 0.5)} ms (median), ${at(paint, 0.95)} ms (95 %); from frame to frame ${at(gaps, 0.5)} ms, ${at(gaps, 0.95)} ms`);
          assert.ok(paint.length > 0, "frames were painted");
        }
        await page.run("const s = document.querySelector('#timeline select'); s.value = 'all'; s.dispatchEvent(new Event('change'))");
        const { paint } = await drive("+", 10);
        console.log(`  ${name}: all 120 threads: painting a frame ${at(paint, 0.5)} ms (median)`);
        const memory = await page.run<number | null>("return performance.memory ? performance.memory.usedJSHeapSize : null");
        console.log(`  ${name}: memory of the page ${memory === null ? "is not told" : `${(memory / 1e6).toFixed(0)} MB`}`);
        const colours = await page.run<number>("const c = document.querySelector('.timeline canvas'); const { data } = c.getContext('2d').getImageData(0, 0, c.width, c.height); return new Set(new Uint32Array(data.buffer)).size");
        assert.ok(colours > 6, `${colours} colours`);
      }));

    const real = process.env["SLOWPATH_PAGE"];
    test("a page of a real recording has no error", { skip: real ? false : "SLOWPATH_PAGE names none" }, () =>
      visit({ html: readFileSync(real!, "utf8") }, "", async (page) => {
        console.log(`  ${name}: ${await text(page, "#timeline > [role=status]")} shown after ${(await page.run<number>("return performance.getEntriesByName('slowpath:shown')[0].startTime")).toFixed(0)} ms`);
        await page.run("document.querySelector('.timeline').focus()");
        for (const key of ["c", "n", "w", "z", "Escape"]) await page.key(key);
        assert.equal(await page.run("return document.querySelector('[role=alert]') === null"), true);
      }));
  });
}
