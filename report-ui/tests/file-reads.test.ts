import assert from "node:assert/strict";
import { test } from "node:test";
import { mapFromText } from "../fixtures/text-columns";
import { groupReads, nearestRead, neededPagesOfRead, sectionAt, selectFiles } from "../src/derive/file-reads";
import { fileRows, ioTotals } from "../src/derive/io-totals";
import { PageSet } from "../src/derive/page-set";

const FILES = `
  path     pages  needed
  /lib/a   100    0-9,20-21
  /lib/B   10     none
  /etc/c   4      ?
`;
const READS = `
  ms  file    page  pages  asker
  1   /lib/a  0     32     readahead
  2   /lib/B  0     4      fault
  3   /lib/a  64    8      fault
  4   /etc/c  0     4      read
  5   /lib/a  32    2      fault
`;
const files = groupReads(mapFromText(FILES, READS));
const all = [true, true, true];

test("reads are grouped by file and stay in the order of time", () => {
  assert.deepEqual([...files[0]!.t], [1e6, 3e6, 5e6]);
  assert.deepEqual([...files[0]!.page], [0, 64, 32]);
  assert.deepEqual(files.map((f) => f.t.length), [3, 1, 1]);
});

test("waste is what was read and not needed, and unknown where need is unknown", () => {
  assert.deepEqual(files.map((f) => f.pagesWasted), [42 - 12, 4, null]);
  assert.equal(neededPagesOfRead(files[0]!, 0), 12);
  assert.equal(neededPagesOfRead(files[2]!, 0), null);
});

test("a read past the recorded end of a file widens its picture", () => {
  const [f] = groupReads(mapFromText("path pages needed\n/a 4 0-3", "h\n1 /a 2 8 fault"));
  assert.equal(f!.pageCount, 10);
  assert.equal(f!.pagesWasted, 6);
});

test("the nearest read is found within the tolerances and not outside of them", () => {
  const find = (page: number, ms: number) => nearestRead(files[0]!, page, ms * 1e6, { pages: 2, time: 0.5e6 }, all);
  assert.equal(find(10, 1.2), 0);
  assert.equal(find(33, 1.2), 0);
  assert.equal(find(35, 1.2), null);
  assert.equal(find(10, 1.6), null);
  assert.equal(find(66, 3), 1);
});

test("of two reads at one place the later one is found, because it is drawn on top", () => {
  const [f] = groupReads(mapFromText("path pages needed\n/a 40 ?", "h\n1 /a 0 8 fault\n1 /a 0 8 read"));
  assert.equal(nearestRead(f!, 4, 1e6, { pages: 1, time: 1e6 }, all), 1);
});

test("a hidden asker's read is not found", () => {
  assert.equal(nearestRead(files[0]!, 66, 3e6, { pages: 2, time: 0.5e6 }, [false, true, true]), null);
});

test("files are filtered by a part of their path in any case and ordered as asked", () => {
  const paths = (...args: Parameters<typeof selectFiles> extends [unknown, ...infer R] ? R : never) => selectFiles(files, ...args).map((f) => f.file.path);
  assert.deepEqual(paths("bytes", "LIB"), ["/lib/a", "/lib/B"]);
  assert.deepEqual(paths("name", ""), ["/etc/c", "/lib/B", "/lib/a"]);
  assert.deepEqual(paths("waste", ""), ["/lib/a", "/lib/B", "/etc/c"]);
  assert.deepEqual(paths("first_use", "nothing"), []);
});

test("where sections overlap the smallest one names a place", () => {
  const file = { ...files[0]!.file, sections: [{ name: "segment", kind: "other" as const, offset: 0, size: 1000 }, { name: ".text", kind: "text" as const, offset: 100, size: 50 }] };
  assert.equal(sectionAt(file, 120)?.name, ".text");
  assert.equal(sectionAt(file, 150)?.name, "segment");
  assert.equal(sectionAt(file, 1000), null);
});

test("totals count each page once in each table", () => {
  const map = mapFromText(FILES, READS);
  map.files[0]!.sections = [
    { name: ".rodata", kind: "rodata", offset: 0, size: 10 * 4096 + 5 },
    { name: ".text", kind: "text", offset: 10 * 4096 + 5, size: 30 * 4096 },
  ];
  const totals = ioTotals(map, groupReads(map));
  assert.deepEqual(totals.all, { reads: 5, pages: 50, wasted: 34, unjudged: 4 });
  assert.deepEqual(totals.byAsker.map((a) => a.pages), [14, 4, 32]);
  const sections = Object.fromEntries(totals.bySection.map((s) => [s.kind, s.amount]));
  // Page 10 holds the end of .rodata and the start of .text; it counts for the earlier one.
  assert.deepEqual(sections["rodata"], { reads: 1, pages: 11, wasted: 1, unjudged: 0 });
  assert.deepEqual(sections["text"], { reads: 1, pages: 23, wasted: 21, unjudged: 0 });
  assert.deepEqual(sections["outside sections"], { reads: 1, pages: 8, wasted: 8, unjudged: 0 });
  assert.equal(totals.bySection.reduce((s, x) => s + x.amount.pages, 0), totals.all.pages);
  assert.equal(totals.bySection.reduce((s, x) => s + x.amount.reads, 0), totals.all.reads);
  assert.equal(totals.pagesNeeded, 12);
});

test("rows of files carry the share that was wasted", () => {
  const [a, , c] = fileRows(files).sort((x, y) => x.index - y.index);
  assert.equal(a!.wastedShare, 30 / 42);
  assert.equal(a!.pagesPerRead, 14);
  assert.equal(c!.wastedShare, null);
});

test("a set of pages counts members in any run, however its runs overlap", () => {
  const set = new PageSet([[9, 1], [2, 3], [4, 2], [3, 1], [7, 0]]);
  assert.equal(set.countIn(0, 10), 5);
  assert.equal(set.countIn(3, 5), 2);
  assert.equal(set.countIn(-5, 3), 1);
  assert.equal(set.countIn(8, 99), 1);
  assert.equal(set.countIn(6, 6), 0);
  assert.ok(set.has(5) && !set.has(6) && !set.has(50));
});

test("a set of pages at the far end of a sparse file needs no memory for the hole", () => {
  const far = 2 ** 50;
  const [f] = groupReads(mapFromText(`path pages needed\n/a ${far + 8} ${far}-${far + 3}`, `h\n1 /a ${far} 8 fault`));
  assert.equal(f!.pagesWasted, 4);
  assert.ok(f!.needed!.has(far + 3) && !f!.needed!.has(far + 4));
});

test("bytes follow the page that the map counts in", () => {
  const map = mapFromText("path pages needed\n/a 4 0-1", "h\n1 /a 0 4 fault", 65_536);
  map.files[0]!.sections = [{ name: ".text", kind: "text", offset: 65_536, size: 65_536 }];
  const [f] = groupReads(map);
  assert.equal(f!.pageCount, 4);
  const totals = ioTotals(map, groupReads(map));
  assert.equal(totals.pageBytes, 65_536);
  assert.equal(totals.bySection.find((s) => s.kind === "text")?.amount.pages, 1);
});
