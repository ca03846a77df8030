import assert from "node:assert/strict";
import { test } from "node:test";
import { makeReport, quantity } from "../fixtures/report";
import { diagnosisFromText, mapFromText, reportOf } from "../fixtures/text-columns";
import { answer, allLosses } from "../src/derive/answer";
import { armsPicture, blockSummary, shareOf } from "../src/derive/arms";
import type { Words } from "../src/derive/words";
import type { Verdict } from "../src/types";

const plain = (words: Words): string => words.map((w) => (typeof w === "string" ? w : w.strong)).join("").replace(/\u00a0/g, " ");

const LAUNCHES = `
  cold:baseline  plan:fix  empty:sham  warm:warm
  840            520       845         400
  850            510       835         390
  830            -         840         395
`;

function verdict(arm: string, outcome: Verdict["outcome"], measured: number, predicted: number | null = null): Verdict {
  return { arm, outcome, predicted: predicted === null ? null : quantity(predicted, null, null, "ms"), measured: quantity(measured, measured - 10, measured + 10, "ms"), against_sham: null, minimum_detectable_effect: quantity(20, null, null, "ms"), pairs: 3, discarded: 0, reason: "", judged_by: "wall", decision: null, beside: [] };
}

test("a fix that helped is named with its saving, interval, shares and prediction", () => {
  const d = diagnosisFromText(LAUNCHES);
  d.verdicts = [verdict("plan", "helps", -320, -350), verdict("empty", "no_difference", 0)];
  d.share_of_gap_removed = [{ arm: "plan", share: quantity(72, 70, 75, "percent") }];
  const a = answer(reportOf({ diagnosis: d }), null);
  assert.match(plain(a.why), /^A cold launch of prog takes 840 ms to ready \(“exit”; 95 % interval 830 to 850 ms\), 445 ms more than a warm one \(395 ms\)\. No known cause/);
  assert.match(plain(a.tried), /^The fix plan made it 320 ms faster \(95 % interval 310 to 330 ms\), 38 % of the cold launch and 72 % of the gap to a warm one; 350 ms had been predicted\.$/);
  d.verdicts[0]!.against_sham = quantity(-325, -336, -314, "ms");
  assert.match(plain(answer(reportOf({ diagnosis: d }), null).tried), /^The fix plan made it 320 ms faster \(95 % interval 310 to 330 ms; 325 ms against the sham\), 38 % of the cold launch and/);
});

test("what a cause costs of one recording is no confidence interval", () => {
  const why = plain(answer(makeReport({ diagnosis: "none" }), null).why);
  assert.match(why, /most costly cause found: .*, 361 ms \(322 to 397 ms, high confidence; 1 more below\)\.$/);
});

test("when nothing helped the answer says so, with the effect that could have been seen", () => {
  const d = diagnosisFromText(LAUNCHES);
  d.verdicts = [verdict("plan", "no_difference", 4), verdict("empty", "helps", -30)];
  const a = answer(reportOf({ diagnosis: d }), null);
  assert.equal(plain(a.tried), "The fix plan did not make it measurably faster: no difference, +4 ms [−6 to 14 ms]; effects below 20 ms could not be seen.");
});

const RIVALS = `
  cold:baseline  preload_plan:fix  other_order:fix  whole_files:rival  empty:sham  warm:warm
  534            246               240              239                520         138
`;

test("the tool's own fix leads, even where a variant and a rival gained more", () => {
  const d = diagnosisFromText(RIVALS);
  d.launch.arms[1]!.title = "tight ranges in order of first use";
  d.verdicts = [verdict("whole_files", "helps", -295), verdict("other_order", "helps", -294), verdict("empty", "no_difference", -14), { ...verdict("preload_plan", "helps", -288), fix: "preload_plan" }];
  const a = answer(reportOf({ diagnosis: d }), null);
  const tried = plain(a.tried);
  assert.match(tried, /^The fix preload_plan \(tight ranges in order of first use\) made it 288 ms faster \(95 % interval 278 to 298 ms\), 54 % of the cold launch; no saving had been predicted\. Other fixes: /);
  assert.match(tried, / Other fixes: other_order \(helps, −294 ms \[−304 to −284 ms\]\)\. Beside it, what others offer: whole_files \(helps, −295 ms \[−305 to −285 ms\]\)\.$/);
  assert.deepEqual(a.figures.map((f) => f.label), ["cold, median", "with preload_plan, median", "warm, median"]);
  assert.deepEqual(armsPicture(d).rows.map((r) => r.arm.name), ["cold", "preload_plan", "other_order", "whole_files", "empty", "warm"]);
});

test("without the tool's own fix the best other one leads, and a rival alone is called no fix", () => {
  const d = diagnosisFromText(RIVALS);
  d.verdicts = [verdict("readahead_size 512", "helps", -100), verdict("other_order", "helps", -294), verdict("whole_files", "helps", -295)];
  assert.match(plain(answer(reportOf({ diagnosis: d }), null).tried), /^The fix other_order made it 294 ms faster/);
  d.verdicts = [verdict("whole_files", "helps", -295)];
  assert.equal(plain(answer(reportOf({ diagnosis: d }), null).tried), "No fix was tried. Only what others offer was: whole_files (helps, −295 ms [−305 to −285 ms]).");
});

test("a fix that did not help leads as such, beside a rival that did", () => {
  const d = diagnosisFromText(RIVALS);
  d.verdicts = [verdict("whole_files", "helps", -295), verdict("preload_plan", "inconclusive", -5)];
  assert.match(plain(answer(reportOf({ diagnosis: d }), null).tried), /^The fix preload_plan did not make it measurably faster: inconclusive, .*Beside it, what others offer: whole_files/);
});

test("a sham arm that helps is a doubt about every fix", () => {
  const d = diagnosisFromText(LAUNCHES);
  d.verdicts = [verdict("empty", "helps", -30)];
  const { cautions } = answer(reportOf({ diagnosis: d }), null);
  assert.ok(cautions.some((c) => c.includes("sham arm empty changed the launch by −30\u00a0ms")), cautions.join());
});

test("a sham arm that hurts is no doubt, and the answer shows it", () => {
  const d = diagnosisFromText(LAUNCHES);
  d.verdicts = [verdict("plan", "helps", -320), verdict("empty", "hurts", 30)];
  const { cautions, tried } = answer(reportOf({ diagnosis: d }), null);
  assert.ok(!cautions.some((c) => c.includes("sham")), cautions.join());
  assert.match(plain(tried), / The sham arm empty hurts \(\+30\sms\), which takes nothing from a fix\.$/);
});

test("a prediction outside the measured interval is a doubt, one inside is none", () => {
  const d = diagnosisFromText(LAUNCHES);
  d.verdicts = [verdict("plan", "helps", -320, -400)];
  assert.equal(answer(reportOf({ diagnosis: d }), null).cautions.filter((c) => c.includes("outside the measured interval")).length, 1);
  d.verdicts = [verdict("plan", "helps", -320, -325)];
  assert.equal(answer(reportOf({ diagnosis: d }), null).cautions.filter((c) => c.includes("outside the measured interval")).length, 0);
});

test("discarded launches and lost events are doubts", () => {
  const d = diagnosisFromText(LAUNCHES);
  const { cautions } = answer(reportOf({ diagnosis: d, losses: { faults: 3, reads: 0 } }), null);
  assert.ok(cautions.includes("Of 12 launches 1 discarded; these are in no figure."), cautions.join());
  assert.ok(cautions.some((c) => c.includes("faults: 3") && !c.includes("reads")));
});

test("a recording without compared launches claims no fix", () => {
  const map = { ...mapFromText("path pages needed\n/a 4 ?", "h\n1 /a 0 4 fault"), ready_ns: 840e6 };
  const a = answer(reportOf({ io_map: map }), null);
  assert.equal(plain(a.why), "The recorded launch was ready after 840 ms. No known cause of a slow launch was found.");
  assert.equal(plain(a.tried), "No launches were compared, so no fix was tried.");
});

test("a cold launch no slower than a warm one is not called slow because it is cold", () => {
  const a = answer(reportOf({ diagnosis: diagnosisFromText("cold:baseline warm:warm\n400 410") }), null);
  assert.match(plain(a.why), /not slow because it is cold/);
});

test("a loss counted by both the recording and the diagnosis counts once", () => {
  const d = { ...diagnosisFromText(LAUNCHES), losses: { faults: 5 } };
  assert.deepEqual(allLosses(reportOf({ diagnosis: d, losses: { faults: 3, reads: 1 } })), { faults: 5, reads: 1 });
});

test("arms stand in the order of their roles, with a gap where a launch was discarded", () => {
  const p = armsPicture(diagnosisFromText("warm:warm b:fix a:fix cold:baseline\n400 600 500 800\n400 600 - 800"));
  assert.deepEqual(p.rows.map((r) => r.arm.name), ["cold", "a", "b", "warm"]);
  assert.deepEqual(p.rows[1]!.dots, [{ block: 0, ms: 500 }]);
  assert.deepEqual(blockSummary(p, 1).map((c) => c.ms), [800, null, 600, 400]);
});

test("an arm that ended before a block is not one whose launch was discarded", () => {
  const d = diagnosisFromText("warm:warm a:fix cold:baseline\n400 500 800\n400 - 800");
  d.launch.arms.find((arm) => arm.role === "warm")!.samples_ms.pop();
  const p = armsPicture(d);
  assert.equal(p.blocks, 2);
  assert.deepEqual(blockSummary(p, 1).map((c) => [c.title, c.ms, c.ended]), [["cold", 800, false], ["a", null, false], ["warm", null, true]]);
});

test("the axis holds every launch and every prediction", () => {
  const d = diagnosisFromText(LAUNCHES);
  d.verdicts = [verdict("plan", "helps", -320, -600)];
  const p = armsPicture(d);
  assert.equal(p.rows.find((r) => r.arm.name === "plan")!.predictedAt!.value, 240);
  assert.ok(p.domain[0] < 240 && p.domain[1] > 850, p.domain.join());
});

test("shares are read from a ratio and from percent alike", () => {
  assert.deepEqual(shareOf(quantity(73, 70, null, "percent")), shareOf(quantity(0.73, 0.7, null, "ratio")));
});

test("an arm of which no launch counts has no median and is no figure", () => {
  const d = diagnosisFromText("cold:baseline plan:fix\n- 500");
  d.launch.arms[0]!.median = null;
  const a = answer(reportOf({ diagnosis: d }), null);
  assert.match(plain(a.why), /^No cold launch of prog could be measured\./);
  assert.deepEqual(a.figures, []);
  assert.equal(armsPicture(d).rows[0]!.median, null);
});

test("the generated fixture is the same for the same seed and another for another", () => {
  const [a, b, c] = [{ seed: 1 }, { seed: 1 }, { seed: 2 }].map((o) => JSON.stringify(makeReport({ ...o, reads: 500 })));
  assert.equal(a, b);
  assert.notEqual(a, c);
});

test("a warm diagnosis is told by CPU time, with what is proved, withdrawn and not tried", () => {
  const d = diagnosisFromText("untreated:baseline tunables:fix sham:sham\n1000 1000 1000\n1010 1005 1008");
  d.warm = true;
  d.launch.judged_by = "cpu";
  [200, 140, 201].forEach((ms, i) => {
    const arm = d.launch.arms[i]!;
    arm.cpu_samples_ms = [ms, ms + 2];
    arm.cpu = quantity(ms, ms, ms + 2, "ms");
  });
  d.verdicts = [
    { ...verdict("tunables", "helps", -60, -50), decision: "proved" },
    { ...verdict("sham", "no_difference", 1) },
    { ...verdict("huge_pages", "hurts", 20), decision: "withdrawn" },
    { ...verdict("reuse_buffer", "not_testable", 0, -50), measured: null, decision: "not_tried", reason: "change the source" },
  ];
  const a = answer(reportOf({ diagnosis: d }), null);
  assert.match(plain(a.why), /^A warm launch of prog uses 200 ms of CPU time \(95 % interval 200 to 202 ms\) and is ready after 1,000 ms\. No known cause/);
  assert.match(plain(a.tried), /^Proved: tunables saves 60 ms \(95 % interval 50 to 70 ms\), 30 % of it; 50 ms had been predicted\. Withdrawn: huge_pages \(hurts, \+20 ms \[10 to 30 ms\]\)\. Not tried: reuse_buffer \(change the source; 50 ms predicted\)\.$/);
  assert.deepEqual(a.figures.map((f) => [f.label, f.value.replace(/\u00a0/g, " ")]), [["CPU time, median", "200 ms"], ["with tunables, median", "140 ms"]]);
  const picture = armsPicture(d);
  assert.equal(picture.what, "CPU time");
  assert.deepEqual(blockSummary(picture, 1).map((c) => c.ms), [202, 142, 203]);
});

test("a warm diagnosis that could launch nothing still says what to change", () => {
  const d = { ...diagnosisFromText(""), warm: true };
  d.verdicts = [{ ...verdict("reuse_buffer", "not_testable", 0, -50), measured: null, decision: "not_tried", reason: "change the source" }];
  const a = answer(reportOf({ diagnosis: d }), null);
  assert.equal(plain(a.tried), "Not tried: reuse_buffer (change the source; 50 ms predicted).");
});

test("of processes that ran already the page says how long they were recorded", () => {
  const d = diagnosisFromText("");
  const running = { processes: "app (7)", watched: { value: 10, low: null, high: null, unit: "s" as const } };
  const told = answer(reportOf({ diagnosis: { ...d, warm: true, running, launch: { ...d.launch, arms: [] }, verdicts: [verdict("reuse_buffer", "not_testable", 0)] } }), null);
  assert.match(plain(told.why), /^app \(7\) was recorded for 10\S* s while it ran\. /);
});
