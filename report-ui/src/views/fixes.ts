// The fixes as plans: what each changes, what it costs, how it is undone, and what came of it.

import type { Diagnosis, FixPlan, Verdict } from "../types";
import { DECISION_TEXT } from "./arms";
import { h, isolated, section, type Child } from "./element";

/** Null where the diagnosis has no plans to show. */
export function fixesView(diagnosis: Diagnosis | null): HTMLElement | null {
  const fixes = diagnosis?.fixes ?? [];
  if (!diagnosis || fixes.length === 0) return null;
  return section("fixes", "Fixes", ...fixes.map((plan) => planView(plan, diagnosis.verdicts.find((v) => v.arm === plan.name))));
}

function planView(plan: FixPlan, verdict: Verdict | undefined): HTMLElement {
  const decision = verdict?.decision ? DECISION_TEXT[verdict.decision] : "not judged";
  return h(
    "article",
    { class: "finding" },
    h("h3", {}, h("span", {}, plan.title), " ", h("code", { class: "quiet" }, plan.name)),
    h(
      "dl",
      { class: "facts" },
      fact("decision", h("span", { class: `outcome outcome-${verdict?.outcome ?? "not_testable"}` }, decision), verdict?.reason ? `: ${verdict.reason}` : ""),
      ...plan.changes.map((change) => fact("changes", isolated(change.what), ": ", change.from ? [h("code", {}, change.from), " becomes "] : null, h("code", {}, change.to))),
      fact("price", plan.price),
      fact("side effects", plan.side_effects.join("; ")),
      fact("security", plan.security_cost),
      fact("undo", plan.undo),
      plan.trial.possible ? null : fact("not tried because", plan.trial.how),
    ),
  );
}

function fact(label: string, ...value: Child[]): HTMLElement {
  return h("div", {}, h("dt", {}, label), h("dd", {}, ...value));
}
