// Reads the data block, derives, and puts the views into the page. Owns their order and what is
// shown when the data cannot be read.

import { answer } from "./derive/answer";
import { armsPicture } from "./derive/arms";
import { groupReads } from "./derive/file-reads";
import { ioTotals } from "./derive/io-totals";
import { readReport, UnreadableReport } from "./derive/read-report";
import { displayText } from "./display-text";
import type { Report } from "./types";
import { answerView } from "./views/answer";
import { armsView } from "./views/arms";
import { circumstancesView } from "./views/circumstances";
import { h } from "./views/element";
import { findingsView } from "./views/findings";
import { fixesView } from "./views/fixes";
import { flameView } from "./views/flame-graph";
import { ioMapView } from "./views/io-map";
import { ledgerView } from "./views/ledger";
import { Tooltip } from "./views/tooltip";

function show(report: Report, root: HTMLElement): void {
  document.title = `Slowpath: ${displayText(report.title)}`;
  const pageSize = report.machine.page_size;
  const files = report.io_map ? groupReads(report.io_map, pageSize) : [];
  const totals = report.io_map ? ioTotals(report.io_map, files, pageSize) : null;
  performance.mark("slowpath:derived");
  const tooltip = new Tooltip(document.body);
  const map = ioMapView(report, files, totals, tooltip);
  // Most recordings have neither: a diagnosis asks for what it judges, not for everything.
  const ledger = report.ledger && ledgerView(report.ledger, tooltip);
  const fixes = fixesView(report.diagnosis);
  const flames = report.flame_graphs && flameView(report.flame_graphs, tooltip);
  const links = [
    ["arms", "Launches"],
    ["findings", "Findings"],
    ...(fixes ? [["fixes", "Fixes"]] : []),
    ...(ledger ? [["ledger", "Time"]] : []),
    ...(flames ? [["flame-graph", "Flame graph"]] : []),
    ["io-map", "I/O map"],
    ["circumstances", "Losses, limits, repeat"],
  ];
  root.replaceChildren(
    h("nav", { "aria-label": "Parts of the report" }, ...links.map(([id = "", text = ""]) => h("a", { href: `#${id}` }, text))),
    answerView(report, answer(report, totals)),
    armsView(report.diagnosis ? armsPicture(report.diagnosis) : null, tooltip),
    findingsView(report),
    ...(fixes ? [fixes] : []),
    ...(ledger ? [ledger] : []),
    ...(flames ? [flames.element] : []),
    map.element,
    circumstancesView(report),
  );
  performance.mark("slowpath:built");
  flames?.start();
  map.start();
}

function start(): void {
  const root = document.getElementById("report");
  const data = document.getElementById("slowpath-data");
  if (!root || !data) return;
  try {
    const report = readReport(data.textContent ?? "");
    performance.mark("slowpath:read");
    show(report, root);
  } catch (error) {
    if (!(error instanceof UnreadableReport)) console.error(error);
    const why = error instanceof UnreadableReport ? error.message : "The data in this page do not have the expected form.";
    root.replaceChildren(h("p", { class: "empty", role: "alert" }, why));
  }
}

start();
