// The arms of an experiment as rows of one picture.
//
// Owns the order of the arms, the axis they share, and which verdict and prediction stand beside
// which arm. It computes no statistics: medians, intervals and verdicts come from the experiment.

import { inMillis } from "../format";
import type { ArmSummary, Diagnosis, Millis, Quantity, ArmRole, Verdict } from "../types";

export interface ArmRow {
  arm: ArmSummary;
  /** What is judged of every launch; the index is the block. */
  samples: (Millis | null)[];
  /** Launches that count, in the order of their blocks. */
  dots: { block: number; ms: Millis }[];
  median: Interval | null;
  /** The same as text. */
  shown: Quantity | null;
  /** Where the baseline's median plus the predicted change lies. */
  predictedAt: Interval | null;
  verdict: Verdict | null;
  /** Share of the gap between cold and warm that the arm removed, 1 is all of it. */
  gapRemoved: Interval | null;
}

export interface Interval {
  value: number;
  low: number | null;
  high: number | null;
}

export interface ArmsPicture {
  rows: ArmRow[];
  /** What is judged, and drawn. */
  what: "Time to ready" | "CPU time";
  warm: boolean;
  /** Axis in ms; does not start at 0 unless the data reach near it. */
  domain: [Millis, Millis];
  blocks: number;
  baseline: ArmRow | null;
  discarded: number;
  failed: number;
}

/** The first fix that can be kept; arms of that role without a fix are variants of one. */
export function leadingFix(verdicts: Verdict[]): Verdict | undefined {
  return verdicts.find((verdict) => verdict.fix);
}

const ROLE_ORDER: ArmRole[] = ["baseline", "fix", "rival", "sham", "warm"];

export function armsPicture(diagnosis: Diagnosis): ArmsPicture {
  const { arms, blocks } = diagnosis.launch;
  const baselineArm = arms.find((a) => a.role === "baseline") ?? null;
  const byCpu = diagnosis.launch.judged_by === "cpu";
  const samplesOf = (arm: ArmSummary): (Millis | null)[] => (byCpu ? (arm.cpu_samples_ms ?? []) : arm.samples_ms);
  const shownOf = (arm: ArmSummary | null): Quantity | null => (byCpu ? arm?.cpu : arm?.median) ?? null;
  const baselineMedian = millisOf(shownOf(baselineArm));
  const leading = leadingFix(diagnosis.verdicts)?.arm;
  const rows = arms
    .map((arm): ArmRow => {
      const verdict = diagnosis.verdicts.find((v) => v.arm === arm.name) ?? null;
      const share = diagnosis.share_of_gap_removed.find((s) => s.arm === arm.name)?.share;
      const predicted = verdict?.predicted ? millisOf(verdict.predicted) : null;
      return {
        arm,
        samples: samplesOf(arm),
        dots: samplesOf(arm).flatMap((ms, block) => (ms === null ? [] : [{ block, ms }])),
        median: millisOf(shownOf(arm)),
        shown: shownOf(arm),
        predictedAt: predicted && baselineMedian ? shifted(predicted, baselineMedian.value) : null,
        verdict,
        gapRemoved: share ? shareOf(share) : null,
      };
    })
    .sort((a, b) => ROLE_ORDER.indexOf(a.arm.role) - ROLE_ORDER.indexOf(b.arm.role) || Number(b.arm.name === leading) - Number(a.arm.name === leading) || (a.median?.value ?? 0) - (b.median?.value ?? 0));
  return {
    rows,
    what: byCpu ? "CPU time" : "Time to ready",
    warm: diagnosis.warm === true,
    domain: domainOf(rows),
    blocks: Math.max(blocks, ...arms.map((a) => a.samples_ms.length), 0),
    baseline: rows.find((r) => r.arm === baselineArm) ?? null,
    discarded: arms.reduce((sum, a) => sum + a.discarded, 0),
    failed: arms.reduce((sum, a) => sum + a.failed, 0),
  };
}

/** An arm's name and what it does, where its title says more than its name. */
export function armLabel(arm: Pick<ArmSummary, "name" | "title">): { name: string; what: string | null } {
  const plain = (text: string): string => text.toLowerCase().replace(/[^a-z0-9]+/g, " ").trim();
  return arm.title === "" || plain(arm.title) === plain(arm.name) ? { name: arm.title || arm.name, what: null } : { name: arm.name, what: arm.title };
}

/** Null where there is no value or its unit is not a time. */
export function millisOf(q: Quantity | null): Interval | null {
  if (q === null || !Number.isFinite(q.value)) return null;
  const value = inMillis(q.value, q.unit);
  if (value === null) return null;
  return { value, low: q.low === null ? null : inMillis(q.low, q.unit), high: q.high === null ? null : inMillis(q.high, q.unit) };
}

/** A share with 1 as the whole, from a ratio or from percent. */
export function shareOf(q: Quantity): Interval {
  const by = q.unit === "percent" ? 100 : 1;
  return { value: q.value / by, low: q.low === null ? null : q.low / by, high: q.high === null ? null : q.high / by };
}

function shifted(i: Interval, by: number): Interval {
  return { value: i.value + by, low: i.low === null ? null : i.low + by, high: i.high === null ? null : i.high + by };
}

function domainOf(rows: readonly ArmRow[]): [Millis, Millis] {
  const values: number[] = [];
  for (const row of rows) {
    for (const dot of row.dots) values.push(dot.ms);
    for (const i of [row.median, row.predictedAt]) {
      if (i) values.push(...[i.value, i.low, i.high].filter((v) => v !== null && Number.isFinite(v)).map(Number));
    }
  }
  if (values.length === 0) return [0, 1];
  const low = values.reduce((a, b) => Math.min(a, b));
  const high = values.reduce((a, b) => Math.max(a, b));
  const margin = Math.max((high - low) * 0.06, high * 0.005, 1e-6);
  const from = low - margin;
  // Close to zero the axis starts there, so that lengths can be compared too.
  return [from < (high - low) * 0.4 ? Math.min(0, low) : from, high + margin];
}

/** One line that tells what is judged of a block's launches in all arms. */
export function blockSummary(picture: ArmsPicture, block: number): { title: string; ms: Millis | null; ended: boolean }[] {
  return picture.rows.map((row) => ({ title: armLabel(row.arm).name, ms: row.samples[block] ?? null, ended: block >= row.samples.length }));
}
