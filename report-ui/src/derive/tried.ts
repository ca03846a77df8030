// What is said of the arms that were tried.
//
// Owns which arm leads: the fix of the tool, even where a rival gained more; other fixes and rivals come
// second with their own figures, sham arms only as doubts (in `answer.ts`).

import { count, inUnit, negated, percent, quantityInterval, quantityValue } from "../format";
import type { ArmSummary, Decision, Diagnosis, Verdict } from "../types";
import { armLabel, leadingFix, millisOf, type ArmsPicture } from "./arms";
import { interval, strong, type Words } from "./words";

function armOf(diagnosis: Diagnosis, v: Verdict): ArmSummary | undefined {
  return diagnosis.launch.arms.find((a) => a.name === v.arm);
}

/** A verdict on an arm that was not launched is one on a fix that could not be tried. */
function roleOf(diagnosis: Diagnosis, v: Verdict): ArmSummary["role"] {
  return armOf(diagnosis, v)?.role ?? "fix";
}

function nameOf(diagnosis: Diagnosis, v: Verdict): string {
  const arm = armOf(diagnosis, v);
  return arm ? armLabel(arm).name : (v.fix ?? v.arm);
}

/** Fastest first; what was not measured comes last. */
function byGain(a: Verdict, b: Verdict): number {
  return (a.measured?.value ?? Infinity) - (b.measured?.value ?? Infinity) || 0;
}

/** The verdict that the report leads with: the tool's own fix, or the best of the other fixes; null without a fix. */
export function headlineArm(diagnosis: Diagnosis): Verdict | null {
  const fixes = diagnosis.verdicts.filter((v) => roleOf(diagnosis, v) === "fix");
  return leadingFix(fixes) ?? [...fixes.filter((v) => v.outcome === "helps")].sort(byGain)[0] ?? [...fixes].sort(byGain)[0] ?? null;
}

/** The sentence about the fix, and a shorter one about everything else that was tried. */
export function whatWasTried(diagnosis: Diagnosis, picture: ArmsPicture): Words {
  if (diagnosis.warm) return decisions(diagnosis, picture);
  const main = headlineArm(diagnosis);
  const others = (role: ArmSummary["role"]): Verdict[] => diagnosis.verdicts.filter((v) => v !== main && roleOf(diagnosis, v) === role).sort(byGain);
  const list = (verdicts: Verdict[]): string => verdicts.map((v) => `${nameOf(diagnosis, v)} (${outcomeWords(v, true)})`).join(", ");
  const [variants, rivals] = [others("fix"), others("rival")];
  const fixes = main ? [main, ...variants] : [];
  const none = fixes.length > 1 && fixes.every((v) => v.outcome !== "helps");
  const words: Words = none ? [strong(`None of the ${count(fixes.length)} fixes that were tried made it measurably faster`), `: ${list(fixes)}.`] : main ? fixWords(diagnosis, picture, main) : ["No fix was tried."];
  if (variants.length > 0 && !none) words.push(` Other fixes: ${list(variants)}.`);
  if (rivals.length > 0) words.push(` ${main ? "Beside it, what others offer" : "Only what others offer was"}: ${list(rivals)}.`);
  return words;
}

/** The fixes of a warm diagnosis, by what follows for them. */
function decisions(diagnosis: Diagnosis, picture: ArmsPicture): Words {
  const of = (decision: Decision): Verdict[] => diagnosis.verdicts.filter((v) => v.decision === decision).sort(byGain);
  const words: Words = [];
  for (const v of of("proved")) {
    if (!v.measured) continue;
    const saving = negated(v.measured);
    const [saved, whole] = [millisOf(saving)?.value, picture.baseline?.median?.value];
    const share = saved !== undefined && whole ? `, ${percent(saved / whole)} of it` : "";
    words.push("Proved: ", strong(`${v.arm} saves ${quantityValue(saving)}`), ` (${interval(saving)})${share}${v.predicted ? `; ${quantityValue(negated(v.predicted))} had been predicted` : ""}. `);
  }
  for (const [decision, lead] of [["withdrawn", "Withdrawn"], ["not_shown", "Not shown"]] as const) {
    const list = of(decision).map((v) => `${v.arm} (${outcomeWords(v, true)})`);
    if (list.length > 0) words.push(strong(`${lead}: `), `${list.join(", ")}. `);
  }
  const untried = of("not_tried").map((v) => `${v.arm} (${v.reason}${v.predicted ? `; ${quantityValue(negated(v.predicted))} predicted` : ""})`);
  if (untried.length > 0) words.push(`Not tried: ${untried.join(", ")}.`);
  return words.length > 0 ? words : ["No fix was tried."];
}

function fixWords(diagnosis: Diagnosis, picture: ArmsPicture, v: Verdict): Words {
  const arm = armOf(diagnosis, v);
  const what = arm ? armLabel(arm).what : null;
  const words: Words = ["The fix ", strong(nameOf(diagnosis, v)), what ? ` (${what})` : ""];
  if (v.outcome !== "helps" || !v.measured) {
    words.push(" ", strong(v.outcome === "not_testable" ? "could not be tested" : "did not make it measurably faster"), `: ${v.outcome === "not_testable" ? v.reason : outcomeWords(v, true)}.`);
    return words;
  }
  const saving = negated(v.measured);
  const againstSham = v.against_sham ? `; ${quantityValue(negated(v.against_sham))} against the sham` : "";
  words.push(" made it ", strong(`${quantityValue(saving)} faster`), ` (${interval(saving)}${againstSham}`);
  const row = picture.rows.find((r) => r.verdict === v);
  const shares: string[] = [];
  const savedMs = millisOf(saving)?.value;
  const cold = picture.baseline?.median?.value;
  if (savedMs !== undefined && cold) shares.push(`${percent(savedMs / cold)} of the cold launch`);
  if (row?.gapRemoved) shares.push(`${percent(row.gapRemoved.value)} of the gap to a warm one`);
  words.push(shares.length > 0 ? `), ${shares.join(" and ")}` : ")");
  words.push(v.predicted ? `; ${quantityValue(negated(v.predicted))} had been predicted.` : "; no saving had been predicted.");
  return words;
}

/** A verdict in a few words, with the figure that it rests on, and its interval where asked for. */
export function outcomeWords(v: Verdict, withInterval = false): string {
  const effect = v.minimum_detectable_effect ? `; effects below ${inUnit(Math.abs(v.minimum_detectable_effect.value), v.minimum_detectable_effect.unit)} could not be seen` : "";
  const range = v.measured && withInterval ? quantityInterval(v.measured) : null;
  const measured = v.measured ? quantityValue(v.measured, true) + (range ? ` [${range}]` : "") : "not measured";
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
