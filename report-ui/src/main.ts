// Reads the data block, derives, and puts the views into the page. Owns their order and what is
// shown when the data cannot be read.

import { answer } from "./derive/answer";
import { armsPicture } from "./derive/arms";
import { groupReads } from "./derive/file-reads";
import { ioTotals } from "./derive/io-totals";
import type { HtmlComparison } from "./generated/comparison-page";
import { titleOf } from "./derive/comparison";
import { readPage, UnreadableReport } from "./derive/read-report";
import { displayText } from "./display-text";
import type { Timeline } from "./derive/timeline";
import { Selections } from "./selection";
import type { Report } from "./types";
import { answerView } from "./views/answer";
import { armsView } from "./views/arms";
import { circumstancesView } from "./views/circumstances";
import { comparisonCircumstances, comparisonHead, findingChangesView, functionChangesView, programChangesView, totalsView } from "./views/comparison";
import { differentialFlames } from "./views/differential-flames";
import { h } from "./views/element";
import { findingsView } from "./views/findings";
import { fixesView } from "./views/fixes";
import { flameView } from "./views/flame-graph";
import { hiddenByRootView } from "./views/hidden-by-root";
import { ioMapView } from "./views/io-map";
import { timeSpentView } from "./views/time-spent";
import { launchSelector } from "./views/launch-selector";
import { ledgerView } from "./views/ledger";
import { ledgerPairsView } from "./views/ledger-pairs";
import { recordedFlames } from "./views/recorded-flames";
import { selectionBar } from "./views/selection-bar";
import { siblingsView } from "./views/siblings";
import { sideBySideView } from "./views/side-by-side";
import { timelineView } from "./views/timeline";
import { Tooltip } from "./views/tooltip";

function show(report: Report, timeline: Timeline | null, root: HTMLElement): void {
  document.title = `Slowpath: ${displayText(report.title)}`;
  const files = report.io_map ? groupReads(report.io_map) : [];
  const totals = report.io_map ? ioTotals(report.io_map, files) : null;
  performance.mark("slowpath:derived");
  const tooltip = new Tooltip(document.body);
  const selections = new Selections();
  const line = timeline && timelineView(timeline, report.io_map, selections, tooltip);
  const others = line || report.flame_graphs ? selections : null;
  const map = ioMapView(report, files, totals, tooltip, others);
  // Most recordings have neither: a diagnosis asks for what it judges, not for everything.
  const ledger = report.ledger && ledgerView(report.ledger, tooltip, others);
  const time = timeSpentView(report.diagnosis);
  const beside = report.launches && sideBySideView(report.launches, tooltip, timeline && launchSelector(report.launches, timeline, selections));
  const siblings = report.siblings && siblingsView(report.siblings, report.findings, tooltip, others);
  const fixes = fixesView(report.diagnosis);
  const hidden = hiddenByRootView(report.diagnosis);
  const flames = report.flame_graphs && flameView(recordedFlames(report.flame_graphs), tooltip, selections);
  const links = [
    ["arms", "Launches"],
    ...(time ? [["time-spent", "Where the time goes"]] : []),
    ...(beside ? [["side-by-side", "Side by side"]] : []),
    ["findings", "Findings"],
    ...(fixes ? [["fixes", "Fixes"]] : []),
    ...(hidden ? [["hidden-by-root", "What root hides"]] : []),
    ...(line ? [["timeline", "Timeline"]] : []),
    ...(siblings ? [["siblings", "Children"]] : []),
    ...(ledger ? [["ledger", "Time"]] : []),
    ...(flames ? [["flame-graph", "Flame graph"]] : []),
    ["io-map", "I/O map"],
    ["circumstances", "Losses, limits, repeat"],
  ];
  root.replaceChildren(
    partsOfPage(links),
    answerView(report, answer(report, totals)),
    armsView(report.diagnosis ? armsPicture(report.diagnosis) : null, tooltip),
    ...(time ? [time] : []),
    ...(beside ? [beside.element] : []),
    findingsView(report, others),
    ...(fixes ? [fixes] : []),
    ...(hidden ? [hidden] : []),
    ...(line ? [line.element] : []),
    ...(siblings ? [siblings] : []),
    ...(ledger ? [ledger] : []),
    ...(flames ? [flames.element] : []),
    map.element,
    circumstancesView(report),
    selectionBar(selections),
  );
  performance.mark("slowpath:built");
  line?.start();
  beside?.start();
  flames?.start();
  map.start();
  performance.mark("slowpath:shown");
}

function partsOfPage(links: readonly (readonly string[])[]): HTMLElement {
  return h("nav", { "aria-label": "Parts of the report" }, ...links.map(([id = "", text = ""]) => h("a", { href: `#${id}` }, text)));
}

function showComparison(page: HtmlComparison, root: HTMLElement): void {
  const { comparison } = page;
  document.title = `Slowpath: ${displayText(titleOf(comparison))}`;
  const tooltip = new Tooltip(document.body);
  const beside = page.launches && sideBySideView(page.launches, tooltip, null);
  const flames = page.flame_graphs && flameView(differentialFlames(page.flame_graphs, comparison.per), tooltip);
  performance.mark("slowpath:derived");
  const parts: [HTMLElement | null, string][] = [
    [totalsView(comparison), "What changed"],
    [beside ? beside.element : null, "Side by side"],
    [findingChangesView(comparison), "Findings"],
    [ledgerPairsView(comparison, tooltip), "Time"],
    [flames && flames.element, "Flame graph"],
    [functionChangesView(comparison), "Functions"],
    [programChangesView(comparison), "Programs"],
    [comparisonCircumstances(comparison), "Gaps, losses, repeat"],
  ];
  const there = parts.flatMap(([element, text]) => (element ? [{ element, text }] : []));
  root.replaceChildren(partsOfPage(there.map(({ element, text }) => [element.id, text])), comparisonHead(page), ...there.map((p) => p.element));
  performance.mark("slowpath:built");
  beside?.start();
  flames?.start();
}

function start(): void {
  const root = document.getElementById("report");
  const data = document.getElementById("slowpath-data");
  if (!root || !data) return;
  try {
    const page = readPage(data.textContent ?? "");
    performance.mark("slowpath:read");
    if ("report" in page) show(page.report, page.timeline, root);
    else showComparison(page.comparison, root);
  } catch (error) {
    if (!(error instanceof UnreadableReport)) console.error(error);
    const why = error instanceof UnreadableReport ? error.message : "The data in this page do not have the expected form.";
    root.replaceChildren(h("p", { class: "empty", role: "alert" }, why));
  }
}

start();
