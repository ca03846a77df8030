// Text of the data block -> a checked `Report`.
//
// Owns the checks without which a view could fail half-way: the schema, and columns of one length
// whose indices exist. It does not judge the content.

import { SCHEMA, type IoMap, type Report } from "../types";

/** Thrown when the data block cannot be shown; its message is meant for the reader. */
export class UnreadableReport extends Error {
  override name = "UnreadableReport";
}

export function readReport(text: string): Report {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (cause) {
    throw new UnreadableReport("The data in this page is not complete JSON; the file may be cut off or never filled in.", { cause });
  }
  const report = parsed as Report;
  if (typeof report !== "object" || report === null || report.schema !== SCHEMA) {
    throw new UnreadableReport(`The data in this page is not of the schema ${SCHEMA}.`);
  }
  if (report.io_map) checkColumns(report.io_map);
  return report;
}

function checkColumns(map: IoMap): void {
  const { reads } = map;
  const rows = reads.t_ns.length;
  for (const name of ["file", "page", "pages", "asker", "process"] as const) {
    if (reads[name].length !== rows) {
      throw new UnreadableReport(`Column "${name}" of the reads has ${reads[name].length} rows, "t_ns" has ${rows}.`);
    }
  }
  const limits = { file: map.files.length, asker: map.askers.length, process: map.processes.length };
  for (const name of ["file", "asker", "process"] as const) {
    const bad = reads[name].findIndex((i) => !(Number.isInteger(i) && i >= 0 && i < limits[name]));
    if (bad >= 0) {
      throw new UnreadableReport(`Read ${bad} names ${name} ${reads[name][bad]}, of which there are ${limits[name]}.`);
    }
  }
}
