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
import { ioMapView } from "./views/io-map";
import { Tooltip } from "./views/tooltip";

function show(report: Report, root: HTMLElement): void {
  document.title = `Slowpath: ${displayText(report.title)}`;
  const pageSize = report.machine.page_size;
  const files = report.io_map ? groupReads(report.io_map, pageSize) : [];
  const totals = report.io_map ? ioTotals(report.io_map, files, pageSize) : null;
  performance.mark("slowpath:derived");
  const tooltip = new Tooltip(document.body);
  const map = ioMapView(report, files, totals, tooltip);
  const fixes = fixesView(report.diagnosis);
  const links = [
    ["arms", "Launches"],
    ["findings", "Findings"],
    ...(fixes ? ([["fixes", "Fixes"]] as const) : []),
    ["io-map", "I/O map"],
    ["circumstances", "Losses, limits, repeat"],
  ] as const;
  root.replaceChildren(
    h("nav", { "aria-label": "Parts of the report" }, ...links.map(([id, text]) => h("a", { href: `#${id}` }, text))),
    answerView(report, answer(report, totals)),
    armsView(report.diagnosis ? armsPicture(report.diagnosis) : null, tooltip),
    findingsView(report),
    ...(fixes ? [fixes] : []),
    map.element,
    circumstancesView(report),
  );
  performance.mark("slowpath:built");
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
