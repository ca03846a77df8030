// Opens a filled report in a real browser and records what it must not do: errors and requests.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, type Browser, type Page } from "playwright-core";
import { fill } from "../fixtures/fill";
import type { HtmlComparison } from "../src/generated/comparison-page";
import type { Report } from "../src/types";

export interface Opened {
  page: Page;
  /** Console errors and warnings, uncaught exceptions and violations of the policy. */
  errors: string[];
  /** Requests beside the one for the file itself. */
  requests: string[];
  dialogs: string[];
  /** Leaves the page to the next visit. */
  leave: () => Promise<void>;
}

export interface Visit {
  width?: number;
  height?: number;
  colours?: "light" | "dark";
  /** Use the template as it is, without data. */
  unfilled?: boolean;
}

export class ReportBrowser {
  /** That of the last visit: another address in it takes Chromium a quarter of what a new page does. */
  private idle: Page | undefined;

  private constructor(
    private readonly browser: Browser,
    private readonly folder: string,
  ) {}

  static async start(): Promise<ReportBrowser> {
    const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
    const browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args, chromiumSandbox: false });
    return new ReportBrowser(browser, mkdtempSync(join(tmpdir(), "slowpath-report-")));
  }

  async open(report: Report | HtmlComparison, visit: Visit = {}): Promise<Opened> {
    const template = readFileSync(new URL("../report.html", import.meta.url), "utf8");
    const file = join(this.folder, "report.html");
    writeFileSync(file, visit.unfilled ? template : fill(template, report));
    const page = this.idle ?? (await this.browser.newPage());
    this.idle = undefined;
    await page.setViewportSize({ width: visit.width ?? 1400, height: visit.height ?? 1000 });
    await page.emulateMedia({ media: null, colorScheme: visit.colours ?? "light" });
    const leave = async (): Promise<void> => {
      await empty(page);
      this.idle = page;
    };
    const opened: Opened = { page, errors: [], requests: [], dialogs: [], leave };
    page.on("console", (m) => ["error", "warning"].includes(m.type()) && opened.errors.push(m.text()));
    page.on("pageerror", (e) => opened.errors.push(e.message));
    page.on("dialog", (d) => (opened.dialogs.push(d.message()), void d.dismiss()));
    page.on("request", (r) => r.url() !== `file://${file}` && opened.requests.push(r.url()));
    await page.goto(`file://${file}`);
    await page.waitForSelector("#circumstances, .empty");
    // The launches are drawn when their table has been laid out, a frame later.
    await page.waitForFunction(() => !document.querySelector(".arms-picture") || document.querySelector(".arms-picture .median"));
    return opened;
  }

  async close(): Promise<void> {
    await this.browser.close();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Makes a page as good as new for another address. */
export async function empty(page: Page): Promise<void> {
  page.removeAllListeners();
  await page.mouse.move(0, 0);
  await page.goto("about:blank");
}

/** Opens, checks, and demands that the page was silent and stayed on its own. */
export async function visit(opened: Promise<Opened>, check: (page: Page, opened: Opened) => Promise<void>): Promise<void> {
  const o = await opened;
  await check(o.page, o);
  assert.deepEqual({ errors: o.errors, requests: o.requests, dialogs: o.dialogs }, { errors: [], requests: [], dialogs: [] });
  // A page whose test failed may be in any state: no other visit gets it.
  await o.leave();
}

export const text = async (page: Page, selector: string): Promise<string> => (await page.locator(selector).first().innerText()).replace(/\u00a0/g, " ");

/** Scrolling hides tooltips, so it must be over before the pointer comes. */
export async function scrollTo(page: Page, selector: string): Promise<void> {
  await page.locator(selector).first().evaluate((e) => e.scrollIntoView({ block: "center" }));
  await page.evaluate(async () => {
    for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
  });
}

/** The middle of a row of the flame graph at a fraction of its width. */
export async function flamePlace(page: Page, fx: number, row: number): Promise<{ x: number; y: number }> {
  const box = (await page.locator(".flames").boundingBox())!;
  return { x: box.x + fx * box.width, y: box.y + (row + 0.5) * 18 };
}
