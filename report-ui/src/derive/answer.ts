// The answer in two sentences, the key figures, and what a reader should doubt.
//
// Owns which facts the report leads with. Every statement follows from the data; where the data do
// not carry it (nothing was tried, nothing helped, no interval), the sentence says that instead.

import { bytes, count, duration, inUnit, negated, percent, quantityInterval, quantityValue } from "../format";
import type { Diagnosis, Finding, Quantity, Report, Verdict } from "../types";
import { armsPicture, millisOf, type ArmRow, type ArmsPicture } from "./arms";
import type { IoTotals } from "./io-totals";
import { baseName } from "../display-text";

/** Text, some of it marked as the point of its sentence. */
export type Words = (string | { strong: string })[];

export interface Answer {
  why: Words;
  tried: Words;
  figures: { label: string; value: string; detail: string }[];
  cautions: string[];
}

export function answer(report: Report, totals: IoTotals | null): Answer {
  const findings = findingsOf(report);
  const { diagnosis } = report;
  const figures = ioFigures(report, totals);
  if (!diagnosis || diagnosis.launch.arms.length === 0) {
    return { why: whyOfRecording(report, findings), tried: ["No launches were compared, so no fix was tried."], figures, cautions: lossCautions(report) };
  }
  const picture = armsPicture(diagnosis);
  return {
    why: whyOfLaunches(diagnosis, picture, findings),
    tried: whatWasTried(diagnosis, picture),
    figures: [...launchFigures(picture), ...figures],
    cautions: [...launchCautions(diagnosis, picture), ...lossCautions(report)],
  };
}

/** The findings of the report, or those of its diagnosis where the report lists none; most costly first. */
export function findingsOf(report: Report): Finding[] {
  return report.findings.length > 0 ? report.findings : (report.diagnosis?.findings ?? []);
}

const strong = (text: string): { strong: string } => ({ strong: text });

function interval(q: Quantity): string {
  const text = quantityInterval(q);
  return text === null ? "no interval" : `95 % interval ${text}`;
}

function programName(report: { command: string[] }): string {
  return baseName(report.command[0] ?? "") || "the program";
}

function whyOfLaunches(diagnosis: Diagnosis, picture: ArmsPicture, findings: Finding[]): Words {
  const cold = picture.baseline;
  const ready = diagnosis.launch.ready ? `to ready (“${diagnosis.launch.ready}”; ` : "to ready (";
  const words: Words = [];
  if (cold?.median && cold.arm.median) {
    words.push("A cold launch of ", strong(programName(diagnosis)), " takes ", strong(quantityValue(cold.arm.median)), ` ${ready}${interval(cold.arm.median)})`);
    const warm = picture.rows.find((r) => r.arm.role === "warm");
    if (warm?.median && warm.arm.median) {
      const gap = cold.median.value - warm.median.value;
      words.push(gap > 0 ? `, ${duration(gap * 1e6)} more than a warm one (${quantityValue(warm.arm.median)}). ` : `, no more than a warm one (${quantityValue(warm.arm.median)}): it is not slow because it is cold. `);
    } else words.push(". ");
  } else {
    words.push("No cold launch of ", strong(programName(diagnosis)), " could be measured. ");
  }
  words.push(...cause(findings));
  return words;
}

function whyOfRecording(report: Report, findings: Finding[]): Words {
  const map = report.io_map;
  const lead = map?.ready_ns != null ? ["The recorded launch was ready after ", strong(duration(map.ready_ns)), ". "] : map ? [`The recording covers ${duration(map.duration_ns)}; no ready event was seen. `] : [];
  return [...lead, ...cause(findings)];
}

function cause(findings: Finding[]): Words {
  const top = findings[0];
  if (!top) return ["No known cause of a slow launch was found."];
  const more = findings.length > 1 ? `; ${count(findings.length - 1)} more below` : "";
  return ["The most costly cause found: ", strong(top.title), `, ${quantityValue(top.cost)} (${interval(top.cost)}, ${top.confidence} confidence${more}).`];
}

/** Verdicts on arms that treat the program; sham and warm arms are controls. */
function treatments(diagnosis: Diagnosis): Verdict[] {
  const control = new Set(diagnosis.launch.arms.filter((a) => a.role === "sham" || a.role === "warm" || a.role === "baseline").map((a) => a.name));
  return diagnosis.verdicts.filter((v) => !control.has(v.arm));
}

function nameOf(diagnosis: Diagnosis, v: Verdict): string {
  return diagnosis.launch.arms.find((a) => a.name === v.arm)?.title ?? v.fix ?? v.arm;
}

function whatWasTried(diagnosis: Diagnosis, picture: ArmsPicture): Words {
  const tried = treatments(diagnosis);
  if (tried.length === 0) return ["No fix was tried."];
  const helped = tried.filter((v) => v.outcome === "helps" && v.measured).sort((a, b) => a.measured!.value - b.measured!.value);
  const best = helped[0];
  if (!best?.measured) return noneHelped(diagnosis, tried);

  const saving = negated(best.measured);
  const words: Words = ["The fix ", strong(nameOf(diagnosis, best)), " made it ", strong(`${quantityValue(saving)} faster`), ` (${interval(saving)}`];
  const row = picture.rows.find((r) => r.verdict === best);
  const shares: string[] = [];
  const savedMs = millisOf(saving)?.value;
  const cold = picture.baseline?.median?.value;
  if (savedMs !== undefined && cold) shares.push(`${percent(savedMs / cold)} of the cold launch`);
  if (row?.gapRemoved) shares.push(`${percent(row.gapRemoved.value)} of the gap to a warm one`);
  words.push(shares.length > 0 ? `), ${shares.join(" and ")}` : ")");
  words.push(best.predicted ? `; ${quantityValue(negated(best.predicted))} had been predicted.` : "; no saving had been predicted.");
  const others = tried.filter((v) => v !== best);
  if (others.length > 0) words.push(` Also tried: ${others.map((v) => `${nameOf(diagnosis, v)} (${outcomeWords(v)})`).join(", ")}.`);
  return words;
}

function noneHelped(diagnosis: Diagnosis, tried: Verdict[]): Words {
  const list = tried.map((v) => `${nameOf(diagnosis, v)} (${outcomeWords(v)})`).join(", ");
  const lead = tried.length === 1 ? "The one fix that was tried did not make it measurably faster" : `None of the ${count(tried.length)} fixes that were tried made it measurably faster`;
  return [strong(lead), `: ${list}.`];
}

/** A verdict in a few words, with the figure that it rests on. */
export function outcomeWords(v: Verdict): string {
  const effect = v.minimum_detectable_effect ? `; effects below ${inUnit(Math.abs(v.minimum_detectable_effect.value), v.minimum_detectable_effect.unit)} could not be seen` : "";
  const measured = v.measured ? quantityValue(v.measured, true) : "not measured";
  switch (v.outcome) {
    case "helps":
      return `helps, ${measured}`;
    case "hurts":
      return `hurts, ${measured}`;
    case "no_difference":
      return `no difference, ${measured}${effect}`;
    case "inconclusive":
      return `inconclusive, ${measured}${effect}`;
    case "not_testable":
      return `not testable: ${v.reason}`;
  }
}

function launchFigures(picture: ArmsPicture): Answer["figures"] {
  const figure = (row: ArmRow | undefined | null, label: string): Answer["figures"] =>
    row?.median && row.arm.median ? [{ label, value: quantityValue(row.arm.median), detail: interval(row.arm.median) }] : [];
  const fix = picture.rows.find((r) => r.arm.role === "fix" && r.verdict?.outcome === "helps");
  return [
    ...figure(picture.baseline, "cold, median"),
    ...figure(fix, fix ? `with ${fix.arm.title}` : ""),
    ...figure(picture.rows.find((r) => r.arm.role === "warm"), "warm, median"),
  ];
}

function ioFigures(report: Report, totals: IoTotals | null): Answer["figures"] {
  if (!totals || totals.all.reads === 0) return [];
  const size = report.machine.page_size;
  const judged = totals.all.pages - totals.all.unjudged;
  return [
    { label: "read from storage", value: bytes(totals.all.pages * size), detail: `${count(totals.all.reads)} reads, ${count(totals.filesRead)} files` },
    judged > 0
      ? { label: "read, never needed", value: bytes(totals.all.wasted * size), detail: `${percent(totals.all.wasted / judged)} of the ${totals.all.unjudged > 0 ? "judged " : ""}bytes read` }
      : { label: "read, never needed", value: "unknown", detail: "no launch without readahead" },
  ];
}

function launchCautions(diagnosis: Diagnosis, picture: ArmsPicture): string[] {
  const cautions: string[] = [];
  for (const row of picture.rows) {
    const v = row.verdict;
    if (!v) continue;
    if (row.arm.role === "sham" && (v.outcome === "helps" || v.outcome === "hurts")) {
      cautions.push(`The sham arm ${row.arm.title} changed the launch by ${v.measured ? quantityValue(v.measured, true) : "a measurable amount"}: as much of a fix's effect is not the fix.`);
    }
    if (row.arm.role === "fix" && v.predicted && v.measured?.low != null && v.measured.high != null) {
      const predicted = millisOf(v.predicted)?.value;
      const measured = millisOf(v.measured);
      if (predicted !== undefined && measured?.low != null && measured.high != null && (predicted < measured.low || predicted > measured.high)) {
        cautions.push(`The change predicted for ${row.arm.title} (${quantityValue(v.predicted, true)}) lies outside the measured interval (${quantityInterval(v.measured)}): the explanation is not complete.`);
      }
    }
  }
  const launches = diagnosis.launch.arms.reduce((sum, a) => sum + a.samples_ms.length, 0);
  if (picture.discarded + picture.failed > 0) {
    const parts = [picture.discarded > 0 && `${count(picture.discarded)} discarded`, picture.failed > 0 && `${count(picture.failed)} failed`].filter(Boolean);
    cautions.push(`Of ${count(launches)} launches ${parts.join(" and ")}; these are in no figure.`);
  }
  return cautions;
}

function lossCautions(report: Report): string[] {
  const lost = Object.entries(allLosses(report)).filter(([, n]) => n > 0);
  if (lost.length === 0) return [];
  return [`Events were lost while recording (${lost.map(([kind, n]) => `${kind}: ${count(n)}`).join(", ")}): figures from the recording are lower bounds.`];
}

/** Losses of the recording and of the diagnosis; a kind in both is the same loss, so the larger counts. */
export function allLosses(report: Report): Record<string, number> {
  const all = new Map(Object.entries(report.losses));
  for (const [kind, n] of Object.entries(report.diagnosis?.losses ?? {})) all.set(kind, Math.max(all.get(kind) ?? 0, n));
  return Object.fromEntries(all);
}
