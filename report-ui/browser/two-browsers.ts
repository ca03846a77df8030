// One way to drive a page in Chromium and in Firefox, for tests that must hold in both.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium, type Browser } from "playwright-core";
import { fill } from "../fixtures/fill";
import type { Report } from "../src/types";
import { Firefox } from "./firefox";
import { empty } from "./open-page";

export interface Driven {
  /** Runs a function's body in the page and gives what it returns, or what its promise does. */
  run: <T>(body: string) => Promise<T>;
  /** By the names of `KeyboardEvent.key`. */
  key: (key: string) => Promise<void>;
  move: (x: number, y: number) => Promise<void>;
  click: (x: number, y: number) => Promise<void>;
  drag: (from: [number, number], to: [number, number]) => Promise<void>;
  wheel: (x: number, y: number, by: number) => Promise<void>;
  screenshot: (path: string) => Promise<void>;
  /** Errors and warnings of the console, what the policy blocked included. */
  problems: () => Promise<string[]>;
  close: () => Promise<void>;
}

export interface DrivenBrowser {
  name: "Chromium" | "Firefox";
  /** The page of a report, or of a whole page that is filled already. */
  open: (report: Report | { html: string }, fragment?: string) => Promise<Driven>;
  close: () => Promise<void>;
}

const WIDTH = 1400;
const HEIGHT = 1000;

/** Where a page is written for a browser to read. */
class Pages {
  private readonly folder = mkdtempSync(join(tmpdir(), "slowpath-timeline-"));
  private count = 0;

  write(report: Report | { html: string }): string {
    const html = "html" in report ? report.html : fill(readFileSync(new URL("../report.html", import.meta.url), "utf8"), report);
    // A page of its own each time: going to another fragment of the same one loads nothing.
    const file = join(this.folder, `${this.count++}.html`);
    writeFileSync(file, html);
    return `file://${file}`;
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export async function startChromium(colours: "light" | "dark" = "light"): Promise<DrivenBrowser> {
  const args = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  const browser: Browser = await chromium.launch({ executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium", args, chromiumSandbox: false });
  const pages = new Pages();
  // One for all reports, as in Firefox: another address in it takes Chromium a quarter of what a new page does.
  const page = await browser.newPage({ viewport: { width: WIDTH, height: HEIGHT }, colorScheme: colours });
  return {
    name: "Chromium",
    async open(report, fragment = "") {
      const problems: string[] = [];
      page.on("console", (m) => ["error", "warning"].includes(m.type()) && problems.push(m.text()));
      page.on("pageerror", (e) => problems.push(e.message));
      await page.goto(pages.write(report) + fragment);
      return {
        run: <T>(body: string) => page.evaluate(`(async () => { ${body} })()`) as Promise<T>,
        key: (key) => page.keyboard.press(key),
        move: (x, y) => page.mouse.move(x, y),
        click: (x, y) => page.mouse.click(x, y),
        drag: async (from, to) => {
          await page.mouse.move(...from);
          await page.mouse.down();
          await page.mouse.move(...to, { steps: 4 });
          await page.mouse.up();
        },
        wheel: async (x, y, by) => {
          await page.mouse.move(x, y);
          await page.mouse.wheel(0, by);
        },
        screenshot: async (path) => void (await page.screenshot({ path })),
        problems: async () => problems,
        close: () => empty(page),
      };
    },
    async close() {
      await browser.close();
      pages.remove();
    },
  };
}

/** Keys that have no character, as WebDriver names them (https://www.w3.org/TR/webdriver2/#keyboard-actions). */
const KEYS: Record<string, string> = { ArrowLeft: "\ue012", ArrowUp: "\ue013", ArrowRight: "\ue014", ArrowDown: "\ue015", Escape: "\ue00c", Enter: "\ue007", Tab: "\ue004" };

export async function startFirefox(colours: "light" | "dark" = "light"): Promise<DrivenBrowser> {
  const firefox = await Firefox.start(colours);
  const pages = new Pages();
  const pointer = (actions: object[]): Promise<unknown> => firefox.send("WebDriver:PerformActions", { actions: [{ type: "pointer", id: "mouse", parameters: { pointerType: "mouse" }, actions }] });
  const moveTo = (x: number, y: number): object => ({ type: "pointerMove", x: Math.round(x), y: Math.round(y), duration: 0, origin: "viewport" });
  const run = (body: string): Promise<unknown> => firefox.value("WebDriver:ExecuteScript", { script: `return (async () => { ${body} })()`, args: [], sandbox: null });
  const inChrome = async (script: string): Promise<unknown> => {
    await firefox.send("Marionette:SetContext", { value: "chrome" });
    try {
      return await firefox.value("WebDriver:ExecuteScript", { script, args: [] });
    } finally {
      await firefox.send("Marionette:SetContext", { value: "content" });
    }
  };
  return {
    name: "Firefox",
    async open(report, fragment = "") {
      await firefox.send("WebDriver:SetWindowRect", { width: WIDTH, height: HEIGHT + 86 });
      await inChrome(`Services.console.reset(); Cc["@mozilla.org/consoleAPI-storage;1"].getService(Ci.nsIConsoleAPIStorage).clearEvents();`);
      const url = pages.write(report);
      await firefox.send("WebDriver:Navigate", { url: url + fragment });
      return {
        run: <T>(body: string) => run(body) as Promise<T>,
        key: async (key) => {
          const value = KEYS[key] ?? key;
          await firefox.send("WebDriver:PerformActions", { actions: [{ type: "key", id: "keys", actions: [{ type: "keyDown", value }, { type: "keyUp", value }] }] });
        },
        move: async (x, y) => void (await pointer([moveTo(x, y)])),
        click: async (x, y) => void (await pointer([moveTo(x, y), { type: "pointerDown", button: 0 }, { type: "pointerUp", button: 0 }])),
        drag: async (from, to) => void (await pointer([moveTo(...from), { type: "pointerDown", button: 0 }, moveTo((from[0] + to[0]) / 2, (from[1] + to[1]) / 2), moveTo(...to), { type: "pointerUp", button: 0 }])),
        wheel: async (x, y, by) => void (await firefox.send("WebDriver:PerformActions", { actions: [{ type: "wheel", id: "wheel", actions: [{ type: "scroll", x: Math.round(x), y: Math.round(y), deltaX: 0, deltaY: by, duration: 0, origin: "viewport" }] }] })),
        screenshot: async (path) => {
          const text = (await firefox.value("WebDriver:TakeScreenshot", { full: false })) as string;
          writeFileSync(path, Buffer.from(text, "base64"));
        },
        // Modules of Firefox itself write to the same storage, of folders of the machine for example.
        problems: async () =>
          (await inChrome(`
            const of = ${JSON.stringify(url)};
            const scripts = Services.console.getMessageArray().filter((m) => m instanceof Ci.nsIScriptError && String(m.sourceName).startsWith(of)).map((m) => m.errorMessage);
            const said = Cc["@mozilla.org/consoleAPI-storage;1"].getService(Ci.nsIConsoleAPIStorage).getEvents().filter((e) => ["error", "warn"].includes(e.level) && !/^(resource|chrome):/.test(e.filename)).map((e) => String(e.arguments));
            return [...scripts, ...said];
          `)) as string[],
        close: async () => void (await firefox.send("WebDriver:Navigate", { url: "about:blank" })),
      };
    },
    async close() {
      await firefox.close();
      pages.remove();
    },
  };
}
