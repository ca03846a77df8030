// Takes pictures of the report for a human to judge: `node dist/browser/screenshots.browser.js DIR`.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { largeComparison } from "../fixtures/comparison";
import { makeReport } from "../fixtures/report";
import { selectionReport } from "../fixtures/selection";
import { makeSiblings, makeSideBySide } from "../fixtures/side-by-side";
import { ReportBrowser } from "./open-page";

const folder = process.argv[2];
if (!folder) throw new Error("name the directory for the pictures");
mkdirSync(folder, { recursive: true });
const browser = await ReportBrowser.start();
try {
  for (const colours of ["light", "dark"] as const) {
    const { page } = await browser.open(makeReport(), { colours, height: 1100 });
    await page.waitForTimeout(400);
    await page.screenshot({ path: join(folder, `${colours}-1-top.png`) });
    for (const [n, id] of [[2, "arms"], [3, "findings"], [4, "io-map"], [6, "circumstances"]] as const) {
      await page.evaluate((i) => document.getElementById(i)?.scrollIntoView(), id);
      await page.waitForTimeout(150);
      if (id === "arms") await page.hover(".arms-picture circle:nth-of-type(5)");
      await page.screenshot({ path: join(folder, `${colours}-${n}-${id}.png`) });
    }
    const plot = page.locator(".file-panel .plot").first();
    await plot.evaluate((e) => e.closest("article")?.scrollIntoView());
    await page.waitForTimeout(300);
    await page.screenshot({ path: join(folder, `${colours}-5-panels.png`) });
    await plot.click({ position: { x: 700, y: 200 } });
    for (let i = 0; i < 14; i++) await page.mouse.wheel(0, -120);
    await page.waitForTimeout(200);
    for (let i = 0; i < 5; i++) await page.keyboard.press("n");
    await page.screenshot({ path: join(folder, `${colours}-5-zoomed.png`) });
    if (colours === "light") await page.pdf({ path: join(folder, "print.pdf"), preferCSSPageSize: true, printBackground: true });
    await page.close();
  }
  for (const colours of ["light", "dark"] as const) {
    const { page } = await browser.open(makeReport({ diagnosis: "none", threads: 60, flames: 6_000 }), { colours, height: 1100 });
    for (const id of ["ledger", "flame-graph"]) {
      await page.evaluate((i) => document.getElementById(i)?.scrollIntoView(), id);
      await page.waitForTimeout(150);
      await page.screenshot({ path: join(folder, `${colours}-7-${id}.png`) });
    }
    await page.close();
  }
  for (const colours of ["light", "dark"] as const) {
    const { page } = await browser.open({ ...makeReport({ diagnosis: "none", reads: 3_000 }), launches: makeSideBySide(), siblings: makeSiblings() }, { colours, height: 1100 });
    for (const id of ["side-by-side", "siblings"]) {
      await page.evaluate((i) => document.getElementById(i)?.scrollIntoView(), id);
      await page.waitForTimeout(150);
      await page.screenshot({ path: join(folder, `${colours}-8-${id}.png`) });
    }
    await page.close();
  }
  for (const colours of ["light", "dark"] as const) {
    for (const [name, spans] of [["small", 1], ["large", 300_000]] as const) {
      const { page } = await browser.open(makeReport({ diagnosis: "none", reads: 3_000, spans }), { colours, height: 1100 });
      const shoot = async (what: string): Promise<void> => {
        await page.evaluate(() => document.getElementById("timeline")!.scrollIntoView());
        await page.waitForTimeout(200);
        await page.screenshot({ path: join(folder, `${colours}-9-timeline-${name}${what}.png`) });
      };
      await shoot("");
      await page.locator(".timeline").focus();
      for (const key of ["ArrowDown", "ArrowDown", "p", "z", "-", "-"]) await page.keyboard.press(key);
      await shoot("-selected");
      await page.emulateMedia({ media: "print" });
      await shoot("-print");
      await page.close();
    }
  }
  for (const colours of ["light", "dark"] as const) {
    const { page } = await browser.open(selectionReport(), { colours, height: 1100 });
    const shoot = async (id: string, what: string): Promise<void> => {
      await page.evaluate((i) => document.getElementById(i)!.scrollIntoView(), id);
      await page.waitForTimeout(200);
      await page.screenshot({ path: join(folder, `${colours}-10-selected-${what}.png`) });
    };
    await page.locator("#siblings .ledger-entry > summary").first().click();
    await page.locator("#siblings .show-elsewhere").first().click();
    await shoot("siblings", "child");
    await page.locator("#side-by-side .ledger-entry > summary").nth(1).click();
    await page.locator("#side-by-side .ledger-entry button.show-elsewhere").click();
    await shoot("side-by-side", "launch");
    await page.locator("#flame-graph input[value=off_cpu]").click();
    await shoot("timeline", "timeline");
    await shoot("flame-graph", "flames");
    await page.emulateMedia({ media: "print" });
    await shoot("flame-graph", "flames-print");
    await page.close();
  }
  for (const colours of ["light", "dark"] as const) {
    const { page } = await browser.open(largeComparison(3_000, false), { colours, height: 1100 });
    await page.screenshot({ path: join(folder, `${colours}-8-comparison.png`) });
    for (const id of ["ledger", "flame-graph"]) {
      await page.evaluate((i) => document.getElementById(i)?.scrollIntoView(), id);
      await page.waitForTimeout(150);
      await page.screenshot({ path: join(folder, `${colours}-8-${id}.png`) });
    }
    await page.close();
  }
  const cases = { hostile: { hostileNames: true }, "nothing-helps": { diagnosis: "nothing-helps", needed: false }, recording: { diagnosis: "none", needed: false }, empty: { diagnosis: "none", map: false } } as const;
  for (const [name, options] of Object.entries(cases)) {
    const { page } = await browser.open(makeReport({ ...options }));
    await page.waitForTimeout(200);
    await page.screenshot({ path: join(folder, `case-${name}.png`), fullPage: true });
    await page.close();
  }
  const { page } = await browser.open(makeReport(), { width: 420, height: 900 });
  await page.screenshot({ path: join(folder, "narrow.png") });
} finally {
  await browser.close();
}
