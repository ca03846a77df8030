// What launches as root could not show: files that another user may not read, and the rules that deny.

import type { Diagnosis } from "../types";
import { h, isolated, pathText, section, type Child } from "./element";
import { sortableTable } from "./sortable-table";

/** Rows before "show all". */
const ROWS = 10;

/** Null where launches did not run as root, or nothing was hidden. */
export function hiddenByRootView(diagnosis: Diagnosis | null): HTMLElement | null {
  const hidden = diagnosis?.hidden_by_root;
  if (!hidden || hidden.unreadable === 0) return null;
  const unknown = hidden.unknown > 0 ? ` Of ${hidden.unknown} more it cannot be decided.` : "";
  return section(
    "hidden-by-root",
    "What root hides",
    h("p", {}, `The launches ran as root, who may read everything. User ${hidden.uid} may not read ${hidden.unreadable} of the ${hidden.used} compiled and cached files that they used.${unknown}`),
    h("p", { class: "quiet" }, "What that costs is shown by ", h("code", {}, "slowpath diagnose --user NAME"), "."),
    sortableTable(
      [
        { key: "artifacts", label: "Files", numeric: true, sortBy: (row) => row.artifacts, cell: (row) => row.artifacts.toLocaleString("en") },
        { key: "path", label: "What denies", sortBy: (row) => row.path, cell: (row) => pathText(row.path) },
        { key: "rule", label: "Rule", sortBy: (row) => row.rule, cell: (row) => isolated(row.rule) },
      ],
      hidden.rules,
      { caption: "Rules that deny, those of the most files first.", limit: ROWS },
    ),
    sortableTable(
      [
        { key: "path", label: "File", sortBy: (row) => row.path, cell: (row) => pathText(row.path) },
        { key: "family", label: "Family", sortBy: (row) => row.family, cell: (row) => isolated(row.family) },
        { key: "change", label: "Smallest change", hint: "What would let the user read it", sortBy: (row) => row.change, cell: (row) => change(row.change) },
      ],
      hidden.artifacts,
      { caption: "Some of the files.", limit: ROWS },
    ),
  );
}

function change(commands: string | null): Child {
  return commands === null ? h("span", { class: "quiet" }, "none") : h("code", {}, commands);
}
