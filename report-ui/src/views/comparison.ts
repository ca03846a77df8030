// The page of a comparison: what changed in sentences and tables, and what speaks against the figures.

import type { Change, RecordingComparison, ComparedRecording, HtmlComparison, FindingChange, Measure } from "../generated/comparison-page";
import { beside, comparisonAnswer, figure, functionTables, judged, measureWords, MEASURES, perOf, shortName, sideWords, stateWords, titleOf, type Per } from "../derive/comparison";
import { shellCommand } from "../display-text";
import { count, quantityInterval } from "../format";
import type { Quantity } from "../types";
import { wordsOf } from "./answer";
import { unavailableTable } from "./circumstances";
import { h, isolated, section, type Child } from "./element";
import { sortableTable, type Column } from "./sortable-table";

/** Rows before "show all". */
const ROWS = 8;

export function comparisonHead({ comparison, generated }: HtmlComparison): HTMLElement {
  const title = titleOf(comparison);
  return h(
    "header",
    { class: "answer", id: "answer" },
    h("p", { class: "quiet kicker" }, "Slowpath comparison, ", generated),
    h("h1", {}, h("bdi", { dir: "ltr", title }, title)),
    h("p", { class: "why" }, ...wordsOf(comparisonAnswer(comparison))),
    h("p", { class: "quiet" }, `Before: ${sideWords(comparison.before)}. After: ${sideWords(comparison.after)}. ${sentence(comparison.per_reason)}`),
    comparison.gaps.length + comparison.notes.length > 0 &&
      h("ul", { class: "cautions", "aria-label": "Doubts" }, ...comparison.notes.map((n) => h("li", {}, sentence(n))), comparison.gaps.length > 0 && h("li", {}, `${count(comparison.gaps.length)} ${comparison.gaps.length === 1 ? "thing" : "things"} cannot be compared, or only with a doubt: `, h("a", { href: "#circumstances" }, "what and why"), ".")),
  );
}

const sentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith(".") ? "" : "."}`;

const intervalHead = (comparison: RecordingComparison): string => (comparison.has_intervals ? "95 % interval" : "In %");

function changeCell(change: Change, per: Per): Child {
  const verdict = judged(change);
  return h("span", { class: verdict && `outcome-${verdict}` }, figure(change.difference, per, true));
}

export function totalsView(comparison: RecordingComparison): HTMLElement {
  const head = [comparison.per === "second" ? "Each second" : "Whole recording", "Before", "After", "Change", intervalHead(comparison)];
  const row = ({ measure, change }: RecordingComparison["totals"][number]): HTMLElement => {
    const per = perOf(measure, comparison.per);
    const known = MEASURES.get(measure);
    return h(
      "tr",
      {},
      h("th", { scope: "row", class: known?.part ? "part" : null }, measureWords(measure)),
      h("td", { class: "num" }, figure(change.before, per)),
      h("td", { class: "num" }, figure(change.after, per)),
      h("td", { class: "num" }, changeCell(change, per)),
      h("td", { class: "num quiet" }, beside(change)),
    );
  };
  return section(
    "totals",
    "What changed",
    h("div", { class: "table-frame", tabindex: 0, role: "region", "aria-label": "Figures of whole recordings" }, h("table", {}, h("thead", {}, h("tr", {}, ...head.map((t, i) => h("th", { scope: "col", class: i > 0 ? "num" : null }, t)))), h("tbody", {}, ...comparison.totals.map(row)))),
  );
}

export function findingChangesView(comparison: RecordingComparison): HTMLElement {
  const { findings, per } = comparison;
  if (findings.length === 0) return section("findings", "Findings", h("p", { class: "empty" }, "No finding on either side."));
  const cost = (q: Quantity | null, found: number, of: number): Child => (q === null ? h("span", { class: "quiet" }, "not found") : [figure(q, per), found < of ? h("span", { class: "quiet" }, ` in ${count(found)} of ${count(of)}`) : null]);
  const row = (f: FindingChange): HTMLElement =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, h("div", {}, f.title), h("div", { class: "quiet" }, h("code", {}, f.name), ", ", isolated(f.program), f.function !== null && [", ", isolated(shortName(f.function))])),
      h("td", { class: "num" }, cost(f.before, f.found_before, comparison.before.length)),
      h("td", { class: "num" }, cost(f.after, f.found_after, comparison.after.length)),
      h("td", {}, h("span", { class: f.state === "gone" ? "outcome outcome-helps" : f.state === "new" ? "outcome outcome-hurts" : null }, stateWords(f)), f.difference && [`: ${figure(f.difference, per, true)}`, h("span", { class: "quiet" }, ` ${quantityInterval(f.difference) ?? "no interval"}`)]),
    );
  return section(
    "findings",
    "Findings",
    h("p", { class: "quiet" }, "Those with the largest cost first. A finding that is not found costs less than its thresholds, which is not nothing."),
    h("div", { class: "table-frame", tabindex: 0, role: "region", "aria-label": "Findings" }, h("table", { class: "finding-changes" }, h("thead", {}, h("tr", {}, ...["Finding", "Cost before", "Cost after", ""].map((t, i) => h("th", { scope: "col", class: i === 1 || i === 2 ? "num" : null }, t)))), h("tbody", {}, ...findings.map(row)))),
  );
}

interface Changed {
  change: Change;
}

/** Columns of figures; rows come with the largest differences first. */
function changeColumns<Row extends Changed>(comparison: RecordingComparison, measure: Measure): Column<Row>[] {
  const per = perOf(measure, comparison.per);
  return [
    { key: "before", label: "Before", numeric: true, sortBy: (r) => r.change.before.value, cell: (r) => figure(r.change.before, per) },
    { key: "after", label: "After", numeric: true, sortBy: (r) => r.change.after.value, cell: (r) => figure(r.change.after, per) },
    { key: "change", label: "Change", numeric: true, sortBy: (r) => r.change.difference.value, cell: (r) => changeCell(r.change, per) },
    { key: "interval", label: intervalHead(comparison), numeric: true, sortBy: (r) => (r.change.before.value > 0 ? r.change.difference.value / r.change.before.value : null), cell: (r) => beside(r.change) },
  ];
}

/** Null where no measure of functions could be compared. */
export function functionChangesView(comparison: RecordingComparison): HTMLElement | null {
  const tables = functionTables(comparison.functions);
  if (tables.length === 0) return null;
  const left = comparison.functions_left_out;
  return section(
    "functions",
    "Functions",
    h("p", { class: "quiet" }, `A function has what the kernel, the C and C++ libraries and allocators did for it; what other functions did that it called is theirs. The largest differences first${left > 0 ? `; ${count(left)} smaller ones are not listed` : ""}.`),
    ...tables.map(({ measure, rows }) =>
      sortableTable(
        [
          { key: "function", label: "Function", sortBy: (r) => r.function, cell: (r) => (r.function === null ? h("span", { class: "quiet" }, "all without a name") : isolated(r.function, "flame-name")) },
          { key: "file", label: "File", sortBy: (r) => r.file, cell: (r) => isolated(r.file) },
          ...changeColumns<(typeof rows)[number]>(comparison, measure),
        ],
        rows,
        { caption: caption(measure), limit: ROWS },
      ),
    ),
  );
}

const caption = (measure: Measure): string => measureWords(measure).replace(/^./, (c) => c.toUpperCase());

/** Null where one program ran: its figures are those of the whole. */
export function programChangesView(comparison: RecordingComparison): HTMLElement | null {
  const programs = new Set(comparison.programs.map((p) => p.program));
  if (programs.size < 2) return null;
  const measures = [...MEASURES.keys()].filter((m) => comparison.programs.some((p) => p.measure === m));
  return section(
    "programs",
    "Programs",
    h("p", { class: "quiet" }, "All processes of a program together; names in brackets are the kernel's own threads. The largest differences first."),
    ...measures.map((measure) => {
      const rows = comparison.programs.filter((p) => p.measure === measure);
      return sortableTable([{ key: "program", label: "Program", sortBy: (r) => r.program, cell: (r) => isolated(r.program) }, ...changeColumns<(typeof rows)[number]>(comparison, measure)], rows, { caption: caption(measure), limit: ROWS });
    }),
  );
}

export function comparisonCircumstances(comparison: RecordingComparison): HTMLElement {
  const lost = (r: ComparedRecording): string => {
    const kinds = Object.entries(r.losses).filter(([, n]) => n > 0);
    return kinds.length === 0 ? "none" : kinds.map(([kind, n]) => `${kind} ${count(n)}`).join(", ");
  };
  const row = (side: string) => (r: ComparedRecording): HTMLElement => h("tr", {}, h("td", {}, side), h("td", {}, isolated(r.recording)), h("td", { class: "num" }, figure(r.length, "recording")), h("td", {}, isolated(lost(r))), h("td", {}, isolated(shellCommand(r.command))));
  const { before, after } = comparison;
  const words = (side: readonly ComparedRecording[], option: string): string[] => (before.length === 1 && after.length === 1 ? [side[0]!.recording] : side.flatMap((r) => [option, r.recording]));
  return section(
    "circumstances",
    "Gaps, losses and how to repeat it",
    h("h3", {}, "What cannot be compared, or only with a doubt"),
    unavailableTable(comparison.gaps, "Nothing: both sides have all that is compared."),
    h("h3", {}, "Recordings"),
    h("div", { class: "table-frame", tabindex: 0, role: "region", "aria-label": "Recordings" }, h("table", {}, h("thead", {}, h("tr", {}, ...["Side", "Recording", "Length", "Events lost", "Command"].map((t) => h("th", { scope: "col", class: t === "Length" ? "num" : null }, t)))), h("tbody", {}, ...before.map(row("before")), ...after.map(row("after"))))),
    h("h3", {}, "Repeat it"),
    h("p", {}, h("code", { class: "command", tabindex: 0 }, shellCommand(["slowpath", "compare", ...words(before, "--before"), ...words(after, "--after"), ...(comparison.per === "second" ? ["--per-second"] : [])]))),
  );
}
