// What qualifies the figures: losses, what could not be observed, conditions, the machine, and how to
// repeat it.

import { allLosses } from "../derive/answer";
import { shellCommand } from "../display-text";
import { bytes, count } from "../format";
import type { Report, Unavailable } from "../types";
import { h, isolated, section, type Child } from "./element";

export function circumstancesView(report: Report): HTMLElement {
  const { diagnosis, machine } = report;
  return section(
    "circumstances",
    "Losses, limits and how to repeat it",
    h("h3", {}, "Lost events"),
    losses(report),
    h("h3", {}, "Not available"),
    unavailable(report),
    diagnosis && diagnosis.notes.length > 0 ? [h("h3", {}, "Notes"), h("ul", {}, ...diagnosis.notes.map((n) => h("li", {}, n)))] : null,
    h("h3", {}, "Repeat it"),
    diagnosis
      ? [
          h("p", {}, h("code", { class: "command", tabindex: 0 }, diagnosis.running ? "slowpath diagnose --pid PID" : `slowpath diagnose ${diagnosis.warm ? "--warm " : ""}-- ${shellCommand(diagnosis.command)}`)),
          facts([
            ["seed of the order of launches", exactWhole(diagnosis.launch.seed)],
            ["blocks", count(diagnosis.launch.blocks)],
            ["ready when", diagnosis.launch.ready],
            ["recording", diagnosis.recording],
          ]),
          diagnosis.launch.conditions.length > 0 ? [h("p", { class: "quiet" }, "Conditions of the launches:"), h("ul", {}, ...diagnosis.launch.conditions.map((c) => h("li", {}, c)))] : null,
        ]
      : h("p", {}, "Recorded command: ", h("code", { class: "command", tabindex: 0 }, report.title)),
    h("h3", {}, "Machine"),
    facts([
      ["kernel", machine.kernel],
      ["CPUs", count(machine.cpus)],
      ["memory", bytes(machine.memory_bytes)],
      ["page", bytes(machine.page_size)],
      ["storage", machine.storage],
      ["report made", report.generated],
    ]),
    h("p", { class: "quiet" }, "Absolute times hold for this machine and day. Compare ratios, and only launches of one run."),
  );
}

/** JSON numbers above 2^53 arrive rounded; a wrong seed would be worse than none. */
function exactWhole(n: number): string {
  return Number.isSafeInteger(n) ? String(n) : "above 2^53, see the JSON";
}

function losses(report: Report): Child {
  const entries = Object.entries(allLosses(report));
  const lost = entries.filter(([, n]) => n > 0);
  if (entries.length === 0) return h("p", { class: "empty" }, "Nothing was counted: the recording holds no loss counters.");
  if (lost.length === 0) return h("p", {}, `None. ${count(entries.length)} ${entries.length === 1 ? "counter" : "counters"} (${entries.map(([k]) => k).join(", ")}) stood at 0.`);
  return h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Kind"), h("th", { scope: "col", class: "num" }, "Events lost"))), h("tbody", {}, ...entries.map(([kind, n]) => h("tr", {}, h("td", {}, isolated(kind)), h("td", { class: "num" }, count(n))))));
}

function unavailable(report: Report): Child {
  return unavailableTable([...report.unavailable, ...(report.diagnosis?.unavailable ?? [])], "Everything that the analysis asks for could be observed.");
}

/** What is lacking, each once; `nothing` says that nothing is. */
export function unavailableTable(list: readonly Unavailable[], nothing: string): Child {
  const all = new Map<string, Unavailable>();
  for (const u of list) all.set(JSON.stringify([u.what, u.reason]), u);
  if (all.size === 0) return h("p", {}, nothing);
  return h(
    "div",
    { class: "table-frame", tabindex: 0, role: "region", "aria-label": "Not available" },
    h("table", {}, h("thead", {}, h("tr", {}, ...["What", "Reason", "Remedy"].map((t) => h("th", { scope: "col" }, t)))), h("tbody", {}, ...[...all.values()].map((u) => h("tr", {}, h("td", {}, u.what), h("td", {}, u.reason), h("td", {}, u.remedy))))),
  );
}

function facts(pairs: [string, string][]): HTMLElement {
  return h("dl", { class: "facts" }, ...pairs.map(([k, v]) => h("div", {}, h("dt", {}, k), h("dd", {}, isolated(v)))));
}
