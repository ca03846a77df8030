// The findings, most costly first, each with its evidence and what became of its fixes.

import { findingsOf } from "../derive/answer";
import { cellText, keyText } from "../derive/cell";
import { evidenceColumns, type EvidenceColumn, type Row } from "../derive/evidence-columns";
import { fileNumbers, findingSubject, type FindingSubject } from "../derive/finding-subject";
import { outcomeWords } from "../derive/tried";
import { inMillis, quantityInterval, quantityValue } from "../format";
import { displayText, shortenMiddle } from "../display-text";
import { isOfProcess, type Selections } from "../selection";
import type { Evidence, Finding, Quantity, Report, Verdict } from "../types";
import { h, isolated, pathText, section, type Child } from "./element";
import { sortableTable, type Column } from "./sortable-table";

/** `selections` is null where there is no other part to be filtered. */
export function findingsView(report: Report, selections: Selections | null): HTMLElement {
  const findings = findingsOf(report);
  if (findings.length === 0) {
    return section("findings", "Findings", h("p", { class: "empty" }, "No finding. Either none of the patterns that Slowpath knows is costly here, or what would show one was not available (see below)."));
  }
  const largest = Math.max(...findings.map((f) => millis(f.cost)), 0);
  const verdicts = report.diagnosis?.verdicts ?? [];
  const numbers = fileNumbers(report.io_map);
  const subjects = findings.map((f) => findingSubject(f, report.io_map, numbers));
  const articles = findings.map((f, i) => findingView(f, i, largest, verdicts, subjects[i]!, selections));
  const hidden = h("p", { class: "quiet", role: "status", hidden: true });
  selections?.listen((selection) => {
    const others = findings.filter((_, i) => {
      const { pid, name } = subjects[i]!;
      const isOther = selection !== null && selection.origin !== "findings" && (pid !== null || name !== null) && !isOfProcess(selection, pid, name);
      articles[i]!.hidden = isOther;
      return isOther;
    });
    hidden.hidden = others.length === 0;
    hidden.textContent = others.length === 1 ? "1 finding about another process is hidden." : `${others.length} findings about other processes are hidden.`;
  });
  return section(
    "findings",
    "Findings",
    findings.length > 1 && h("p", { class: "quiet" }, "Most costly first. Two findings may explain the same time, so costs are not to be added."),
    hidden,
    ...articles,
  );
}

function millis(q: Quantity): number {
  return inMillis(q.value, q.unit) ?? 0;
}

/** Shows what the finding is about in the other parts; none where its subject is no process and no file. */
function selectButton(f: Finding, { processes, files }: FindingSubject, selections: Selections | null): Child {
  if (!selections || (!processes && !files)) return null;
  const select = (): void => selections.select({ origin: "findings", text: f.title, time: null, processes, tid: null, files });
  return h("p", {}, h("button", { type: "button", class: "link show-elsewhere", onclick: select }, "Show what this is about in the other parts"));
}

function findingView(f: Finding, index: number, largest: number, verdicts: Verdict[], subject: FindingSubject, selections: Selections | null): HTMLElement {
  const bar = h("span", { class: "bar" });
  bar.style.width = `${largest > 0 ? Math.max(1, (100 * millis(f.cost)) / largest) : 0}%`;
  const saving = f.predicted_saving;
  return h(
    "article",
    { class: "finding", id: `finding-${index + 1}` },
    h("h3", {}, h("span", {}, f.title), " ", h("code", { class: "quiet" }, f.name)),
    h("div", { class: "bar-frame", "aria-hidden": "true" }, bar),
    h(
      "dl",
      { class: "facts" },
      fact("cost", [h("strong", {}, quantityValue(f.cost)), ` (${quantityInterval(f.cost) ?? "no interval"})`]),
      fact("predicted saving", saving ? [quantityValue(saving), ` (${quantityInterval(saving) ?? "no interval"})`] : "none given"),
      fact("confidence", [h("span", { class: `confidence confidence-${f.confidence}` }, f.confidence), f.reasons.length > 0 ? `: ${f.reasons.join("; ")}` : null]),
      ...Object.entries(f.subject).map(([key, cell]) => fact(keyText(key), isolated(cellText(key, cell)))),
    ),
    selectButton(f, subject, selections),
    ...f.evidence.map(evidenceView),
    fixesView(f, verdicts),
    f.see_by_hand ? h("p", { class: "by-hand" }, "See it by hand: ", h("code", { class: "command", tabindex: 0 }, f.see_by_hand)) : null,
  );
}

function fact(label: string, ...value: Child[]): HTMLElement {
  return h("div", {}, h("dt", {}, label), h("dd", {}, ...value));
}

function fixesView(f: Finding, verdicts: Verdict[]): Child {
  if (f.fixes.length === 0) return h("p", { class: "quiet" }, "No fix is known for this finding.");
  return h(
    "ul",
    { class: "fixes", "aria-label": "Fixes" },
    ...f.fixes.map((name) => {
      const tried = verdicts.filter((v) => v.fix === name || v.arm === name);
      if (tried.length === 0) return h("li", {}, "Fix ", h("code", {}, name), ": not tried.");
      return h("li", {}, "Fix ", h("code", {}, name), ": ", ...tried.map((v, i) => [i > 0 ? "; " : "", h("span", { class: `outcome outcome-${v.outcome}` }, outcomeWords(v)), v.predicted ? ` (predicted ${quantityValue(v.predicted, true)})` : ""]), ".");
    }),
  );
}

/** Rows before "show all"; a few more are shown at once rather than asked for. */
const ROWS = 12;
const ROWS_WITHOUT_ASKING = 15;
/** Longer texts in a cell lose their middle, so that a row stays a line. */
const TEXT_LENGTH = 64;

function evidenceView(e: Evidence): HTMLElement {
  const rows = e.rows ?? [];
  const columns = evidenceColumns(rows);
  if (columns.length === 0) return h("p", { class: "evidence" }, e.text);
  const shown = columns.map((c): Column<Row> => ({ key: c.key, label: c.label, hint: c.hint, numeric: c.numeric, extra: c.extra, sortBy: c.order, cell: (r) => evidenceCell(c, r) }));
  return h("div", { class: "evidence" }, sortableTable(shown, rows, { caption: e.text, limit: rows.length <= ROWS_WITHOUT_ASKING ? Infinity : ROWS }));
}

function evidenceCell(column: EvidenceColumn, row: Row): Child {
  const text = column.text(row);
  if (row[column.key] === null || text === "–") return h("span", { class: "quiet" }, text);
  const share = row[column.key];
  if (column.key.endsWith("_percent") && typeof share === "number") return [meter(share / 100), text];
  if (column.numeric) return text;
  if (text.startsWith("/")) return pathText(text);
  return h("bdi", { dir: "ltr", title: text }, shortenMiddle(displayText(text), TEXT_LENGTH));
}

/** A share as a length beside its number; shares of one column can be compared at a glance. */
function meter(share: number): HTMLElement {
  const bar = h("span", { class: "bar" });
  bar.style.width = `${Math.min(Math.max(share, 0), 1) * 100}%`;
  return h("span", { class: "meter", "aria-hidden": "true" }, bar);
}
