// What is selected in one part of the page filters the others: every pair, in Chromium and in Firefox, by pointer, by keyboard and by link.
//
// Run by `npm run test:browser`. The table of the pairs is in `src/selection.ts`.

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { withRandomRows } from "../fixtures/flame-rows";
import { HOSTILE_NAMES } from "../fixtures/io-map";
import { seeded } from "../fixtures/random";
import { makeReport } from "../fixtures/report";
import { selectionReport } from "../fixtures/selection";
import { smallTimeline } from "../fixtures/timeline";
import type { Report } from "../src/types";
import { FIREFOX } from "./firefox";
import { frames, place, text, until, visitIn } from "./timeline-page";
import { startChromium, startFirefox, type Driven, type DrivenBrowser } from "./two-browsers";

/** What the parts of the page show. */
interface Shown {
  /** Threads of the timeline. */
  threads: string[];
  /** The span that the timeline says is selected. */
  span: string;
  files: string[];
  /** What the flame graph says that it is of; empty for everything. */
  flames: string;
  /** Boxes below the root, with their weights, as the table of functions has them. */
  functions: string[];
  /** Bars of processes and threads. */
  ledger: string[];
  ledgerNote: boolean;
  findings: string[];
  /** What is selected, and where. */
  bar: string;
}

const ALL = { files: ["a.so", "b.so"], ledger: ["app pid 7", "helper pid 9", "app pid 7 thread 7", "worker (app) pid 7 thread 8", "helper pid 9 thread 9"], findings: ["1", "2", "3"] };
const APP = { files: ["a.so"], ledger: ALL.ledger.filter((bar) => bar.includes("pid 7")), findings: ["1", "3"] };
const HELPER = { files: ["b.so"], ledger: ALL.ledger.filter((bar) => bar.includes("pid 9")), findings: ["2", "3"] };

async function shown(page: Driven): Promise<Shown> {
  await frames(page);
  return page.run<Shown>(`
    const plain = (e) => e === null ? "" : e.innerText.replace(/\\u00a0/g, " ").replace(/\\s+/g, " ").trim();
    const all = (selector) => [...document.querySelectorAll(selector)].filter((e) => e.getClientRects().length > 0);
    return {
      threads: (/(\\d+) of \\d+ threads/.exec(plain(document.querySelector("#timeline > [role=status]"))) ?? []).slice(1),
      span: plain(document.querySelector(".timeline-chosen")),
      files: all(".file-panel h4").map((e) => plain(e).split("/").pop()).sort(),
      flames: document.querySelector(".flame-part").hidden ? "" : plain(document.querySelector(".flame-part span")),
      functions: all("#flame-graph tbody tr").map((row) => plain(row.cells[0]) + " " + plain(row.cells[2])),
      ledger: all("#ledger .ledger-name").map((e) => plain(e).replace(/^[▸▾] /, "").replace(/, \\d+ threads?$/, "").replace(",", "")),
      ledgerNote: all("#ledger > [role=status]").length > 0,
      findings: all(".finding").map((e) => e.id.split("-")[1]),
      bar: plain(document.querySelector(".selection-bar:not([hidden])")),
    };
  `);
}

/** Until the parts show this, and nothing else of what is named. */
async function expect(page: Driven, wanted: Partial<Record<keyof Shown, unknown>>, what: string): Promise<void> {
  const fits = (found: unknown, of: unknown): boolean => (of instanceof RegExp ? of.test(String(found)) : JSON.stringify(found) === JSON.stringify(of));
  const found = await until(() => shown(page), (s) => Object.entries(wanted).every(([key, of]) => fits(s[key as keyof Shown], of)));
  for (const [key, of] of Object.entries(wanted)) assert.ok(fits(found[key as keyof Shown], of), `${what}: ${key}: ${JSON.stringify(found[key as keyof Shown])} where ${of instanceof RegExp ? of : JSON.stringify(of)} is wanted`);
}

/** Gives an element the focus; by script, because only what is in view takes a pointer. */
const focus = (page: Driven, selector: string): Promise<void> => page.run(`const e = document.querySelector(${JSON.stringify(selector)}); e.scrollIntoView({ block: "center" }); e.focus(); for (let i = 0; i < 5; i++) await new Promise(requestAnimationFrame);`);
async function pressOn(page: Driven, selector: string): Promise<void> {
  await focus(page, selector);
  await page.key("Enter");
}
async function clickOn(page: Driven, selector: string): Promise<void> {
  const [x, y] = await page.run<[number, number]>(`const e = document.querySelector(${JSON.stringify(selector)}); e.scrollIntoView({ block: "center" }); for (let i = 0; i < 5; i++) await new Promise(requestAnimationFrame); const b = e.getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2];`);
  await page.click(x, y);
}

/** A bar that is opened by the keyboard, and its button. */
async function openBar(page: Driven, entry: string): Promise<string> {
  await pressOn(page, `${entry} > summary`);
  await until(() => page.run<boolean>(`return document.querySelector(${JSON.stringify(`${entry} .show-elsewhere`)}) !== null`), (there) => there);
  return `${entry} button.show-elsewhere`;
}

for (const [name, start] of [["Chromium", startChromium], ["Firefox", startFirefox]] as const) {
  describe(`selecting in ${name}`, { skip: name === "Firefox" && !FIREFOX ? "no Firefox here (FIREFOX names one)" : false }, () => {
    let browser: DrivenBrowser;
    before(async () => {
      browser = await start();
    });
    after(() => browser?.close());
    const visit = (report: Report, fragment: string, check: (page: Driven) => Promise<void>): Promise<void> => visitIn(browser, report, fragment, check);
    const clear = async (page: Driven): Promise<void> => {
      await clickOn(page, ".selection-bar .reset");
      await expect(page, { ...ALL, threads: ["3"], flames: "", bar: "", ledgerNote: false }, "all is there again");
    };

    test("a span of the timeline: reads of its process in its time, rows of its thread in its time, bars of its thread, findings of its process", () =>
      visit(selectionReport(), "", async (page) => {
        await expect(page, { ...ALL, threads: ["3"], flames: "", bar: "" }, "at first");
        await page.click(...(await place(page, 50, 2)));
        const ledger = ["app pid 7", "worker (app) pid 7 thread 8"];
        await expect(page, { span: /^running: .*20 ms from 40 ms on, worker · 8/, threads: ["3"], files: [], ledger, findings: APP.findings, flames: /^Only what is selected, thread 8 of app \(pid 7\), from 40 ms to 60 ms: 2 samples of 8 \(25 %\)\.$/, functions: ["crunch 1 50 %", "pack 1 50 %", "pool 0 0 %"], bar: /^Selected: running, 20 ms at 40 ms.* in the timeline/, ledgerNote: true }, "by pointer");
        await page.key("p");
        await expect(page, { span: /^minor faults: .*worker/, flames: /: no sample\.$/, functions: [] }, "by keyboard");
        await page.key("p");
        await expect(page, { span: /^major faults: .*20 ms from 15 ms/, files: ["a.so"] }, "with a read in it");
        await page.run("document.querySelector('#flame-graph input[value=off_cpu]').click()");
        await expect(page, { flames: /: 1 wait with 20 ms of 140 ms \(14 %\)\. Of waits that begin before or end after it, the time within it counts\.$/, functions: ["read 20 ms 100 %", "pool 0 ms 0 %"] }, "another weight");
        await focus(page, ".timeline");
        await page.key("Escape");
        await expect(page, { ...ALL, flames: "", bar: "" }, "Escape");
      }));

    test("a time of the timeline: reads and rows in it; a link holds it, and the flame graph has a way back", async () => {
      let link = "";
      await visit(selectionReport(), "#timeline/view=40000000..60000000", async (page) => {
        await focus(page, ".timeline");
        await page.key("r");
        await expect(page, { files: ["b.so"], flames: /^Only what is selected, from 40 ms to 60 ms: 4 samples of 8 \(50 %\)\.$/, ledger: ALL.ledger, ledgerNote: true, findings: ALL.findings, bar: /^Selected: 40 ms to 60 ms in the timeline/ }, "by keyboard");
        await page.run("document.querySelector('#flame-graph input[value=off_cpu]').click()");
        await expect(page, { functions: ["futex 20 ms 67 %", "recv 10 ms 33 %", "main 0 ms 0 %", "main 0 ms 0 %"] }, "parts of waits");
        await page.run("document.querySelector('#flame-graph .controls:not(fieldset) select').value = 'callers'; document.querySelector('#flame-graph .controls:not(fieldset) select').dispatchEvent(new Event('change'))");
        await focus(page, ".flames");
        for (const key of ["ArrowDown", "ArrowDown"]) await page.key(key);
        assert.match(await text(page, "#tooltip"), /^futex[\s\S]*20 ms, 67 % of what is selected/, "an inverted graph of the same");
        await page.key("Enter");
        assert.match(await text(page, "#flame-graph .controls:not(fieldset) [role=status]"), /^Zoomed to futex: 20 ms, 67 % of what is selected\.$/);
        await expect(page, { bar: /^Selected: 40 ms to 60 ms in the timeline/ }, "a zoom in it leaves it");
        link = await until(() => page.run<string>("return location.hash"), (hash) => hash.includes("time="));
        assert.equal(link, "#timeline/view=40000000..60000000&time=40000000..60000000");
        await pressOn(page, ".flame-part button");
        await expect(page, { ...ALL, flames: "", bar: "" }, "the way back");
        assert.equal(await page.run("return document.activeElement.classList.contains('flames')"), true, "the focus is not lost");
        assert.equal(await until(() => page.run<string>("return location.hash"), (hash) => !hash.includes("time=")), "#timeline/view=40000000..60000000");
      });
      await visit(selectionReport(), link, (page) => expect(page, { files: ["b.so"], flames: /from 40 ms to 60 ms: 4 samples of 8/, bar: /40 ms to 60 ms/ }, "by link"));
    });

    test("a read of the I/O map: its process, its moment, and the waits that went on then", () =>
      visit(selectionReport(), "", async (page) => {
        await focus(page, "#file-0 .plot");
        await until(async () => (await page.key("n"), page.run<boolean>("return !document.getElementById('tooltip').hidden")), (there) => there);
        await page.key("Enter");
        await expect(page, { bar: /^Selected: read of \/usr\/lib\/a\.so at (20|90) ms, app \(pid 7\) in the I\/O map/, threads: ["2"], flames: /^Only what is selected, app \(pid 7\): 5 samples of 8 \(63 %\)\. A moment has no samples: those of all times are shown\.$/, ledger: APP.ledger, findings: APP.findings, files: ALL.files }, "a read");
        await page.run("document.querySelector('#flame-graph input[value=off_cpu]').click()");
        await expect(page, { flames: /^Only what is selected, app \(pid 7\), at (20 ms: 2 waits with 70 ms|90 ms: 1 wait with 40 ms) of 140 ms .*Those are the waits that were going on at that moment, in full\.$/ }, "its moment");
        await clear(page);
      }));

    test("a box of the flame graph: the processes of its program", () =>
      visit(selectionReport(), "", async (page) => {
        await focus(page, ".flames");
        for (const key of ["ArrowDown", "ArrowDown", "ArrowRight", "ArrowDown", "Enter"]) await page.key(key);
        await expect(page, { ...HELPER, threads: ["1"], flames: "", bar: /^Selected: processes of helper in the flame graph/ }, "a box");
        await page.key("Escape");
        await expect(page, { ...ALL, threads: ["3"], bar: "" }, "Escape");
        for (const key of ["ArrowDown", "ArrowDown", "Enter"]) await page.key(key);
        await expect(page, { ...APP, threads: ["2"], flames: "", bar: /processes of app/ }, "a program");
        await clear(page);
      }));

    test("a bar of the time ledger: its process or its thread", () =>
      visit(selectionReport(), "", async (page) => {
        const worker = await openBar(page, "#ledger .ledger > div:nth-child(2) .ledger-entry:nth-child(2)");
        await pressOn(page, worker);
        await expect(page, { bar: /^Selected: worker \(app\), pid 7, thread 8 in the time/, threads: ["1"], files: APP.files, flames: /^Only what is selected, thread 8 of app \(pid 7\): 3 samples of 8 \(38 %\)\.$/, findings: APP.findings, ledger: ALL.ledger }, "a thread");
        await page.run("document.querySelector('#flame-graph input[value=off_cpu]').click()");
        await expect(page, { flames: /thread 8 of app \(pid 7\): 2 waits with 60 ms of 140 ms/ }, "its waits");
        const app = await openBar(page, "#ledger .ledger > div:nth-child(1) .ledger-entry:nth-child(1)");
        await clickOn(page, app);
        await expect(page, { bar: /^Selected: app, pid 7, 2 threads in the time/, threads: ["2"], flames: /^Only what is selected, app \(pid 7\): / }, "a process");
        await clear(page);
      }));

    test("a finding: its process, or the files that it names and who reads them", () =>
      visit(selectionReport(), "", async (page) => {
        await clickOn(page, "#finding-1 .show-elsewhere");
        await expect(page, { ...APP, findings: ALL.findings, threads: ["2"], flames: /^Only what is selected, app \(pid 7\): 5 samples/, bar: /app waits in the findings/ }, "a process");
        await pressOn(page, "#finding-3 .show-elsewhere");
        await expect(page, { ...HELPER, findings: ALL.findings, threads: ["1"], flames: /^Only what is selected, helper \(pid 9\): 3 samples/, bar: /one file is read in the findings/ }, "a file");
        await clear(page);
      }));

    test("a launch side by side: its time; a category of it or a span that grew: the longest such span of the timeline", () =>
      visit(selectionReport(), "", async (page) => {
        const other = await openBar(page, "#side-by-side .ledger-entry:nth-child(1)");
        assert.equal(await page.run(`return document.querySelector(${JSON.stringify(other)})`), null, "its timeline is not on the page");
        assert.match(await text(page, "#side-by-side .ledger-entry:nth-child(1) .show-elsewhere"), /^The timeline of this page is that of the launch which is shown/);
        const launch = await openBar(page, "#side-by-side .ledger-entry:nth-child(2)");
        await clickOn(page, launch);
        await expect(page, { ...ALL, threads: ["3"], flames: /^Only what is selected, from 0 ms to 100 ms: 8 samples of 8/, bar: /^Selected: launch 2, 100 ms in the launches side by side/, ledgerNote: true }, "a launch");
        await pressOn(page, "#side-by-side .ledger-entry:nth-child(2) tbody tr:nth-child(2) button");
        const faults = { span: /^major faults: .*20 ms from 15 ms on, worker · 8/, threads: ["3"], files: ["a.so"], flames: /thread 8 of app \(pid 7\), from 15 ms to 35 ms: no sample/, ledger: ["app pid 7", "worker (app) pid 7 thread 8"], findings: APP.findings, bar: /^Selected: longest on the critical path: major faults/ };
        await expect(page, faults, "a category");
        assert.match(await until(() => page.run<string>("return location.hash"), (hash) => hash.includes("span=")), /span=7\.8@15000000$/);
        await clear(page);
        await clickOn(page, "#side-by-side .grown-tables tbody tr:nth-child(2) button");
        await expect(page, faults, "a span that grew");
        assert.equal(await page.run("return [...document.querySelectorAll('#side-by-side .grown-tables tbody tr')].filter((r) => r.innerText.includes('gone') && r.querySelector('button')).length"), 0, "what the timeline has not leads nowhere");
        await clear(page);
      }));

    test("a child side by side: its main thread from its fork on", () =>
      visit(selectionReport(), "", async (page) => {
        const child = await openBar(page, "#siblings .ledger-entry:nth-child(1)");
        await pressOn(page, child);
        await expect(page, { ...HELPER, threads: ["1"], flames: /^Only what is selected, thread 9 of helper \(pid 9\), from 40 ms to 85 ms: 3 samples of 8/, bar: /^Selected: start of helper \(pid 9\), 45 ms at 40 ms in the children side by side/ }, "by keyboard");
        const link = await until(() => page.run<string>("return location.hash"), (hash) => hash.includes("of="));
        assert.equal(link, "#timeline/time=40000000..85000000&of=9.9");
        await clear(page);
        await until(() => page.run<string>("return location.hash"), (hash) => hash === "#timeline");
        await page.run(`location.hash = ${JSON.stringify(link)}`);
        await expect(page, { ...HELPER, threads: ["1"], flames: /from 40 ms to 85 ms: 3 samples/, bar: /^Selected: thread 9 of helper \(pid 9\), 40 ms to 85 ms by the link/ }, "by link");
        await clear(page);
        await clickOn(page, child);
        await expect(page, { ...HELPER, threads: ["1"] }, "by pointer");
      }));

    test("hostile names stay text in what is selected, and a stranger's link selects nothing worse", async () => {
      const report = selectionReport();
      report.timeline = smallTimeline(HOSTILE_NAMES);
      for (const kind of report.siblings!.kinds) kind.kind = HOSTILE_NAMES[0]!;
      report.io_map!.processes.forEach((p, i) => (p.name = HOSTILE_NAMES[i]!));
      const { frames: of, places } = report.flame_graphs!;
      of.name = of.name.map((n, i) => (places[of.place[i]!]!.kind === "whole" ? n : HOSTILE_NAMES[i % HOSTILE_NAMES.length]!));
      const isHarmless = async (page: Driven): Promise<void> => {
        const body = await page.run<string>("return document.body.outerHTML.replace(/<script[\\s\\S]*?<\\/script>/g, '')");
        assert.doesNotMatch(body, /[\u0000-\u0008\u000b-\u001f\u007f\u202a-\u202e\u2066-\u2069]/);
        assert.equal(await page.run("return document.querySelectorAll('img, iframe, object').length"), 0);
        assert.equal(await page.run("return document.querySelectorAll('script').length"), 2);
      };
      await visit(report, "", async (page) => {
        await pressOn(page, await openBar(page, "#siblings .ledger-entry:nth-child(1)"));
        await expect(page, { flames: /^Only what is selected, thread 9 of .*\(pid 9\), from 40 ms/ }, "a child");
        await isHarmless(page);
        await page.run("document.querySelector('#finding-2 .show-elsewhere').click()");
        await isHarmless(page);
      });
      await visit(selectionReport(), "#timeline/time=9..1&of=7.x&program=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E%E2%80%AE", async (page) => {
        await expect(page, { threads: ["0"], bar: /^Selected: processes of <img/ }, "a program that is not there");
        await isHarmless(page);
      });
    });

    test("with a million spans and 100,000 rows of each weight a time is selected without delay", () => {
      const report = makeReport({ reads: 20_000, spans: 1_000_000, flames: 6_000, threads: 120 });
      report.flame_graphs = withRandomRows(seeded(8), report.flame_graphs!, 100_000, 120);
      return visit(report, "", async (page) => {
        const load = await page.run<{ data: number; read: number; shown: number }>("const at = (n) => performance.getEntriesByName(n)[0].startTime; return { data: document.getElementById('slowpath-data').textContent.length, read: at('slowpath:read'), shown: at('slowpath:shown') };");
        console.log(`  ${name}: ${(load.data / 1e6).toFixed(1)} MB of data; read after ${load.read.toFixed(0)} ms, shown after ${load.shown.toFixed(0)} ms`);
        await focus(page, ".timeline");
        const times = await page.run<number[]>(`
          const frame = document.querySelector(".timeline");
          const times = [];
          for (const key of ["r", "+", "r", "+", "r", "ArrowRight", "r", "Escape"]) {
            const start = performance.now();
            frame.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
            if (key === "r") times.push(performance.now() - start);
            await new Promise(requestAnimationFrame);
          }
          return times;
        `);
        console.log(`  ${name}: selecting a time takes ${times.map((t) => t.toFixed(0)).join(", ")} ms in all parts`);
        await page.key("r");
        await expect(page, { flames: /^Only what is selected, from .*: [\d,]+ samples of .*The page has no time of 1,234 samples with 5,678, the lightest of all/ }, "what is left out is said");
      });
    });
  });
}
