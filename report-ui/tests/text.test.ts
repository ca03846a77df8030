import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { embeddedJson, fill } from "../fixtures/fill";
import { HOSTILE_NAMES } from "../fixtures/io-map";
import { reportOf } from "../fixtures/text-columns";
import { readPage, UnreadableReport } from "../src/derive/read-report";
import { displayText, shellCommand, shortenMiddle } from "../src/display-text";
import { bytes, count, duration, inUnit, percent, quantityInterval, significant, timeOnAxis } from "../src/format";
import { cellText, keyText } from "../src/derive/cell";

const spaces = (s: string | null): string => (s ?? "null").replace(/\u00a0/g, " ");

test("invisible and reordering characters become visible escapes", () => {
  assert.equal(displayText("a\u202eb\u0000c\u200bd\u2028e\ud800f\u{e0041}"), "a\\u{202e}b\\u{0}c\\u{200b}d\\u{2028}e\\u{d800}f\\u{e0041}");
});

test("letters, accents, emoji and a no-break space stay as they are", () => {
  const text = "naïve שלום 日本 👍 5\u00a0ms";
  assert.equal(displayText(text), text);
});

test("a shell splits the shown command into the words that it was made of", () => {
  const words = ["/bin/echo", "it's", "a b", "", "$HOME", "x\u202ey", "tab\there", "back\\slash\u200b'q'"];
  const shown = shellCommand(words);
  assert.equal(shown, displayText(shown));
  const out = execFileSync("bash", ["--norc", "-c", `printf '%s\\0' ${shown}`], { env: { LC_ALL: "C.UTF-8", PATH: process.env["PATH"] ?? "" } }).toString("utf8");
  assert.deepEqual(out.split("\0").slice(0, -1), words);
});

test("embedded data cannot end their element and come back unchanged", () => {
  const report = reportOf({ title: HOSTILE_NAMES.join("") + "$&" });
  const json = embeddedJson(report);
  assert.doesNotMatch(json, /[<>&\u2028\u2029]/);
  const page = readPage(json);
  assert.equal("report" in page && page.report.title, report.title);
  assert.equal(fill("a__SLOWPATH_DATA__b", report), `a${json}b`);
});

test("data of another schema, cut-off data and broken columns are refused with a reason", () => {
  const refused = (text: string, why: RegExp): void => assert.throws(() => readPage(text), (e) => e instanceof UnreadableReport && why.test(e.message));
  refused("{", /not complete JSON/);
  refused('{"schema":"other/1"}', /schema slowpath-report\/2/);
  refused("null", /schema/);
  const map = { page_bytes: 4096, duration_ns: 1, ready_ns: null, files: [], processes: [], askers: ["fault"], reads: { t_ns: [1], file: [0], page: [0], pages: [1], asker: [0], process: [0] } };
  refused(JSON.stringify(reportOf({ io_map: map })), /Read 0 names file 0, of which there are 0/);
  refused(JSON.stringify(reportOf({ io_map: { ...map, reads: { ...map.reads, page: [] } } })), /Column "page" of the reads has 0 rows, "t_ns" has 1/);
  refused(JSON.stringify(reportOf({ io_map: { ...map, page_bytes: 0 } })), /A page of the I\/O map has 0 bytes/);
});

test("numbers carry three significant digits, exact ones no false decimals", () => {
  assert.deepEqual([0, 4, 4.001, 12.345, 1234.5, 0.5, -0.0321, 123456789].map((n) => significant(n)), ["0", "4", "4.00", "12.3", "1,235", "0.5", "−0.0321", "123,456,789"]);
  assert.equal(significant(NaN), "unknown");
  assert.equal(count(1234567.4), "1,234,567");
  assert.equal(count(-3), "−3");
});

test("times and sizes choose their unit and name it", () => {
  assert.deepEqual([0, 12, 1500, 2.5e6, 840e6, 2335e6, 1.25e10].map((n) => spaces(duration(n))), ["0 ms", "12 ns", "1.50 µs", "2.50 ms", "840 ms", "2,335 ms", "12.5 s"]);
  assert.deepEqual([512, 4096, 141e6, 2 ** 40].map((n) => spaces(bytes(n))), ["512 B", "4 KiB", "134 MiB", "1,024 GiB"]);
  assert.equal(spaces(timeOnAxis(505.5e6, 0.5e6)), "505.5 ms");
  assert.deepEqual([0, 0.004, 0.0996, 0.5, 1].map((s) => spaces(percent(s))), ["0 %", "0.4 %", "10 %", "50 %", "100 %"]);
});

test("an interval has both ends, each with its unit where these differ", () => {
  assert.equal(spaces(quantityInterval({ value: 12.3, low: 11, high: 13.94, unit: "ms" })), "11 to 13.9 ms");
  assert.equal(quantityInterval({ value: 3, low: null, high: 4, unit: "pages" }), null);
  assert.equal(spaces(quantityInterval({ value: 1, low: 1000, high: 2 ** 21, unit: "bytes" })), "1,000 B to 2 MiB");
  assert.equal(spaces(inUnit(1.52, "ratio")), "1.52×");
});

test("cells of evidence get their unit from their key", () => {
  assert.deepEqual([["blocked_ns", 2e6], ["bytes", 4096], ["pid", 12345], ["faults", 12345], ["share", 0.25], ["x", null], ["x", true], ["pids", [7, 8]], ["x", { value: 3, low: null, high: null, unit: "ms" }], ["x", { a: 1 }]].map(([k, v]) => spaces(cellText(k as string, v as number))), ["2 ms", "4 KiB", "12345", "12,345", "25 %", "none", "yes", "7, 8", "3 ms", '{"a":1}']);
  assert.deepEqual(["blocked_ns", "read_bytes", "ms", "pid", "x_constructor"].map(keyText), ["blocked", "read bytes", "ms", "pid", "x constructor"]);
});

test("a long path keeps both of its ends", () => {
  const short = shortenMiddle("/usr/lib/x86_64-linux-gnu/libfontconfig.so.1", 20);
  assert.equal(short.length, 20);
  assert.ok(short.startsWith("/usr") && short.endsWith("config.so.1"), short);
});
