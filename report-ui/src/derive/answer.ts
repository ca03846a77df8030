// The answer in two sentences, the key figures, and what a reader should doubt.
//
// Owns which facts the report leads with; what is said of the fixes stands in `tried.ts`. Every
// statement follows from the data; where the data do not carry it (nothing was tried, nothing helped,
// no interval), the sentence says that instead.

import { bytes, count, duration, percent, quantityInterval, quantityValue } from "../format";
import type { Diagnosis, Finding, Report } from "../types";
import { armLabel, armsPicture, millisOf, type ArmRow, type ArmsPicture } from "./arms";
import type { IoTotals } from "./io-totals";
import { headlineArm, whatWasTried } from "./tried";
import { interval, strong, type Words } from "./words";
import { baseName } from "../display-text";

export interface Answer {
  why: Words;
  tried: Words;
  figures: { label: string; value: string; detail: string }[];
  cautions: string[];
}

export function answer(report: Report, totals: IoTotals | null): Answer {
  const findings = findingsOf(report);
  const { diagnosis } = report;
  const figures = ioFigures(totals);
  if (!diagnosis || (!diagnosis.running && diagnosis.launch.arms.length === 0 && diagnosis.verdicts.length === 0)) {
    return { why: whyOfRecording(report, findings), tried: ["No launches were compared, so no fix was tried."], figures, cautions: lossCautions(report) };
  }
  const picture = armsPicture(diagnosis);
  return {
    why: diagnosis.warm ? whyOfWarm(diagnosis, picture, findings) : whyOfLaunches(diagnosis, picture, findings),
    tried: [...whatWasTried(diagnosis, picture), ...slowerShams(picture)],
    figures: [...launchFigures(diagnosis, picture), ...figures],
    cautions: [...launchCautions(picture), ...lossCautions(report)],
  };
}

/** The findings of the report, or those of its diagnosis where the report lists none; most costly first. */
export function findingsOf(report: Report): Finding[] {
  return report.findings.length > 0 ? report.findings : (report.diagnosis?.findings ?? []);
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

/** What a warm launch costs; without launches, because nothing could be tried, the findings alone. */
function whyOfWarm(diagnosis: Diagnosis, picture: ArmsPicture, findings: Finding[]): Words {
  if (diagnosis.running) {
    const { processes, watched } = diagnosis.running;
    return [strong(processes), ` was recorded for ${quantityValue(watched)} while it ran. `, ...cause(findings)];
  }
  const row = picture.baseline;
  const lead: Words = row?.shown ? ["A warm launch of ", strong(programName(diagnosis)), " uses ", strong(quantityValue(row.shown)), ` of CPU time (${interval(row.shown)})`, row.arm.median ? ` and is ready after ${quantityValue(row.arm.median)}. ` : ". "] : [];
  return [...lead, ...cause(findings)];
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
  // Of one recording, the least and the most that it allows: no confidence interval.
  const between = quantityInterval(top.cost);
  const bounds = between === null ? "" : `${between}, `;
  return ["The most costly cause found: ", strong(top.title), `, ${quantityValue(top.cost)} (${bounds}${top.confidence} confidence${more}).`];
}

function launchFigures(diagnosis: Diagnosis, picture: ArmsPicture): Answer["figures"] {
  const figure = (row: ArmRow | undefined | null, label: string): Answer["figures"] =>
    row?.median && row.shown ? [{ label, value: quantityValue(row.shown), detail: interval(row.shown) }] : [];
  const lead = picture.warm ? "CPU time, median" : "cold, median";
  const verdict = headlineArm(diagnosis);
  const fix = verdict?.outcome === "helps" ? picture.rows.find((r) => r.verdict === verdict) : undefined;
  return [
    ...figure(picture.baseline, lead),
    ...figure(fix, fix ? `with ${armLabel(fix.arm).name}, median` : ""),
    ...figure(picture.rows.find((r) => r.arm.role === "warm"), "warm, median"),
  ];
}

function ioFigures(totals: IoTotals | null): Answer["figures"] {
  if (!totals || totals.all.reads === 0) return [];
  const size = totals.pageBytes;
  const judged = totals.all.pages - totals.all.unjudged;
  return [
    { label: "read from storage", value: bytes(totals.all.pages * size), detail: `${count(totals.all.reads)} reads, ${count(totals.filesRead)} files` },
    judged > 0
      ? { label: "read, never needed", value: bytes(totals.all.wasted * size), detail: `${percent(totals.all.wasted / judged)} of the ${totals.all.unjudged > 0 ? "judged " : ""}bytes read` }
      : { label: "read, never needed", value: "unknown", detail: "no launch without readahead" },
  ];
}

/** A sham that is worse than the untreated launch is no doubt: a fix has what makes it worse in it, too. */
function slowerShams(picture: ArmsPicture): Words {
  return picture.rows.flatMap(({ arm, verdict }) =>
    arm.role === "sham" && verdict?.outcome === "hurts"
      ? [` The sham arm ${armLabel(arm).name} hurts${verdict.measured ? ` (${quantityValue(verdict.measured, true)})` : ""}, which takes nothing from a fix.`]
      : [],
  );
}

function launchCautions(picture: ArmsPicture): string[] {
  const cautions: string[] = [];
  for (const row of picture.rows) {
    const v = row.verdict;
    if (!v) continue;
    if (row.arm.role === "sham" && v.outcome === "helps") {
      cautions.push(`The sham arm ${armLabel(row.arm).name} changed the launch by ${v.measured ? quantityValue(v.measured, true) : "a measurable amount"}: as much of a fix's effect is not the fix.`);
    }
    if (row.arm.role === "fix" && v.predicted && v.measured?.low != null && v.measured.high != null) {
      const predicted = millisOf(v.predicted)?.value;
      const measured = millisOf(v.measured);
      if (predicted !== undefined && measured?.low != null && measured.high != null && (predicted < measured.low || predicted > measured.high)) {
        cautions.push(`The change predicted for ${armLabel(row.arm).name} (${quantityValue(v.predicted, true)}) lies outside the measured interval (${quantityInterval(v.measured)}): the explanation is not complete.`);
      }
    }
  }
  // A launch that was repeated after it was discarded stands in the samples once.
  const launches = picture.rows.reduce((sum, r) => sum + r.dots.length + r.arm.discarded + r.arm.failed, 0);
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
