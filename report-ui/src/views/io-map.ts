// The I/O map: a picture per file, with the figures that serve as its legend, and its controls.

import { selectFiles, type FileOrder, type FileReads } from "../derive/file-reads";
import { fileRows, type Amount, type IoTotals } from "../derive/io-totals";
import { bytes, count, duration, percent } from "../format";
import { isOfProcess, type Selection, type Selections } from "../selection";
import type { Report } from "../types";
import { h, section, type Child } from "./element";
import { filesTable } from "./files-table";
import { IoPanel, type MapState } from "./io-panel";
import { askerVariable, readPalette } from "./palette";
import type { Tooltip } from "./tooltip";

/** Panels before "show more": more than anybody reads, few enough to lay out at once. */
const FIRST_PANELS = 24;

export interface MapView {
  element: HTMLElement;
  /** Paints the panels in sight; to be called once the element is in the page. */
  start: () => void;
}

/** `selections` is null where there is no other part to be filtered. */
export function ioMapView(report: Report, files: readonly FileReads[], totals: IoTotals | null, tooltip: Tooltip, selections: Selections | null): MapView {
  const map = report.io_map;
  if (!map || !totals || totals.all.reads === 0) {
    const why = map ? "The recording holds no read of a file: everything was in memory already, or the probe was not available (see below)." : "The recording holds no page cache events, so there is no picture of the reads.";
    return { element: section("io-map", "I/O map", h("p", { class: "empty" }, why)), start: () => undefined };
  }
  const pageSize = map.page_bytes;
  const lastRead = files.reduce((last, f) => Math.max(last, f.t[f.t.length - 1] ?? 0), 0);
  const end = Math.max(map.duration_ns, lastRead, 1);
  // Reads long after the launch would squeeze the launch itself.
  const launchEnd = map.ready_ns !== null && map.ready_ns * 1.5 < end ? map.ready_ns * 1.1 : end;
  const state: MapState = { map, pageSize, palette: readPalette(map.askers), visible: map.askers.map(() => true), timeEnd: launchEnd, tooltip, chosen: null, choose };

  const panels = new Map<number, IoPanel>();
  const grid = h("div", { class: "file-grid" });
  const status = h("p", { class: "quiet", role: "status" });
  const more = h("button", { type: "button", class: "more", onclick: () => ((limit = Infinity), arrange()) });
  let limit = FIRST_PANELS;
  let order: FileOrder = "bytes";
  let filter = "";

  const inSight = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        const panel = panelOf.get(entry.target);
        if (panel && entry.isIntersecting && !panel.painted) panel.paint();
      }
    },
    { rootMargin: "300px" },
  );
  const resized = new ResizeObserver(() => shown().forEach((p) => p.painted && p.repaintSoon()));
  const panelOf = new Map<Element, IoPanel>();
  const shown = (): IoPanel[] => [...grid.children].flatMap((e) => panelOf.get(e) ?? []);

  let selected: Selection | null = null;
  /** By index of the map's processes, whether one is meant. */
  let isMeantProcess: boolean[] = [];

  function choose(reads: FileReads, i: number): void {
    const process = map!.processes[reads.process[i]!]!;
    const at = reads.t[i]!;
    selections?.select({ origin: "io-map", text: `read of ${reads.file.path} at ${duration(at)}, ${process.name} (pid ${process.pid})`, time: { from: at, to: at }, processes: [process], tid: null, files: new Set([reads.index]) });
  }

  selections?.listen((selection) => {
    selected = selection?.origin === "io-map" ? null : selection;
    const of = selected;
    isMeantProcess = of ? map.processes.map((p) => isOfProcess(of, p.pid, p.name)) : [];
    state.chosen = of && ((reads, i) => isMeant(of, reads, i));
    arrange();
    for (const panel of panels.values()) if (panel.painted) panel.repaintSoon();
  });

  function isMeant(of: Selection, reads: FileReads, i: number): boolean {
    const { time, files } = of;
    const isThen = !time || (reads.t[i]! >= time.from && reads.t[i]! <= time.to);
    return isThen && (files === null || files.has(reads.index)) && isMeantProcess[reads.process[i]!]!;
  }

  function panelFor(reads: FileReads): IoPanel {
    let panel = panels.get(reads.index);
    if (!panel) {
      panel = new IoPanel(reads, state);
      panels.set(reads.index, panel);
      panelOf.set(panel.element, panel);
      inSight.observe(panel.element);
    }
    return panel;
  }

  function arrange(): void {
    const all = selectFiles(files, order, filter);
    const of = selected;
    const chosen = of ? all.filter((f) => f.t.some((_, i) => isMeant(of, f, i))) : all;
    const wanted = chosen.slice(0, limit).map((f) => panelFor(f).element);
    // A panel that is put in anew loses the focus.
    if (wanted.length !== grid.children.length || wanted.some((e, i) => grid.children[i] !== e)) grid.replaceChildren(...wanted);
    more.hidden = chosen.length <= limit;
    more.textContent = `Show all ${count(chosen.length)} files`;
    status.textContent = chosen.length === 0 ? (of ? "No file was read in what is selected." : "No file with a read has this in its name.") : `${count(Math.min(limit, chosen.length))} of ${count(chosen.length)} files with reads${of ? " in what is selected" : ""}${filter ? " whose path matches" : ""}.`;
  }

  function repaintAll(): void {
    state.palette = readPalette(map!.askers);
    for (const panel of panels.values()) if (panel.painted) panel.paint();
  }

  function showFile(index: number): void {
    const reads = files[index];
    if (!reads) return;
    const panel = panelFor(reads);
    if (!panel.element.isConnected) {
      filter = "";
      filterInput.value = "";
      limit = Infinity;
      arrange();
    }
    panel.element.scrollIntoView({ block: "start" });
    panel.element.querySelector<HTMLElement>(".plot")?.focus({ preventScroll: true });
  }

  const filterInput = h("input", { type: "search", placeholder: "part of a path", autocomplete: "off", spellcheck: "false" });
  filterInput.addEventListener("input", () => {
    filter = filterInput.value;
    arrange();
  });
  const orderSelect = h("select", {}, ...([["bytes", "bytes read"], ["first_use", "first use"], ["waste", "bytes wasted"], ["name", "path"]] as const).map(([value, text]) => h("option", { value }, text)));
  orderSelect.addEventListener("change", () => {
    order = orderSelect.value as FileOrder;
    arrange();
  });
  const rangeSelect = h("select", {}, h("option", { value: "launch" }, `launch (${duration(launchEnd)})`), h("option", { value: "all" }, `whole recording (${duration(end)})`));
  rangeSelect.addEventListener("change", () => {
    state.timeEnd = rangeSelect.value === "all" ? end : launchEnd;
    for (const panel of panels.values()) panel.showWhole();
  });

  const toggle = (asker: number, on: boolean): void => {
    state.visible[asker] = on;
    for (const panel of panels.values()) if (panel.painted) panel.repaintSoon();
  };

  const element = section(
    "io-map",
    "I/O map",
    h("p", { class: "quiet" }, `Every insertion into the page cache: across is the offset in the file, down is time since the launch began${map.ready_ns === null ? "" : ` (ready after ${duration(map.ready_ns)})`}. Colour is who asked; texture is whether the pages were needed by a launch without readahead.`),
    h("div", { class: "legend" }, askerTable(map.askers, totals, pageSize, toggle), sectionTable(totals, pageSize), textureKey()),
    filesTable(fileRows(files), pageSize, showFile),
    h(
      "div",
      { class: "controls" },
      h("label", {}, "Filter ", filterInput),
      h("label", {}, "Order by ", orderSelect),
      launchEnd < end ? h("label", {}, "Time ", rangeSelect) : null,
      status,
    ),
    h("p", { class: "quiet", id: "io-map-keys" }, `Click a picture, then turn the wheel to zoom (Shift: offset only, Alt: time only; Ctrl zooms without the click). Drag selects a part of a whole picture and moves a zoomed one; Shift and drag selects a part of a zoomed one. Double-click or Escape resets. Keys: + and − zoom, arrows move, n and p step through the reads.${selections ? " A click on a read, or Enter, shows its moment and process in the other parts." : ""}`),
    grid,
    more,
  );
  return {
    element,
    start: () => {
      arrange();
      resized.observe(grid);
      for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", repaintAll);
      addEventListener("beforeprint", () => {
        shown().forEach((p) => p.paint());
      });
      addEventListener("afterprint", repaintAll);
    },
  };
}

function amountCells(a: Amount, all: Amount, pageSize: number): Child[] {
  const judged = a.pages - a.unjudged;
  return [
    h("td", { class: "num" }, count(a.reads)),
    h("td", { class: "num" }, bytes(a.pages * pageSize)),
    h("td", { class: "num" }, all.pages > 0 ? percent(a.pages / all.pages) : ""),
    h("td", { class: "num" }, judged > 0 ? [bytes(a.wasted * pageSize), h("span", { class: "quiet" }, ` ${percent(a.wasted / judged)}`)] : h("span", { class: "quiet" }, a.pages > 0 ? "unknown" : "none")),
  ];
}

function amountHead(first: string): HTMLElement {
  return h("thead", {}, h("tr", {}, ...[first, "Reads", "Read", "Share", "Wasted"].map((t, i) => h("th", { scope: "col", class: i > 0 ? "num" : null }, t))));
}

/** The legend of the colours, with what each stands for; the boxes hide and show. */
function askerTable(askers: string[], totals: IoTotals, pageSize: number, toggle: (asker: number, on: boolean) => void): HTMLElement {
  const rows = askers.map((name, i) => {
    const box = h("input", { type: "checkbox", checked: true });
    box.addEventListener("change", () => toggle(i, box.checked));
    const swatch = h("span", { class: "swatch", "aria-hidden": "true" });
    swatch.style.background = `var(${askerVariable(name)})`;
    return { amount: totals.byAsker[i]!, row: h("tr", {}, h("th", { scope: "row" }, h("label", {}, box, swatch, name)), ...amountCells(totals.byAsker[i]!, totals.all, pageSize)) };
  });
  return framed("Who asked", h("table", { class: "compact" }, h("caption", {}, "Who asked"), amountHead("Asker"), h("tbody", {}, ...rows.filter((r) => r.amount.reads > 0).map((r) => r.row), h("tr", { class: "total" }, h("th", { scope: "row" }, "all"), ...amountCells(totals.all, totals.all, pageSize)))));
}

/** A frame that scrolls sideways where the window is narrow. */
function framed(label: string, table: HTMLElement): HTMLElement {
  return h("div", { class: "table-frame", tabindex: 0, role: "region", "aria-label": label }, table);
}

function sectionTable(totals: IoTotals, pageSize: number): HTMLElement {
  return framed("Part of the file", h("table", { class: "compact" }, h("caption", {}, "Part of the file"), amountHead("Section kind"), h("tbody", {}, ...totals.bySection.map((s) => h("tr", {}, h("th", { scope: "row" }, s.kind), ...amountCells(s.amount, totals.all, pageSize))))));
}

function textureKey(): HTMLElement {
  const sample = (kind: string): Child => h("span", { class: `texture ${kind}`, "aria-hidden": "true" });
  return h(
    "dl",
    { class: "texture-key" },
    h("div", {}, h("dt", {}, sample("solid")), h("dd", {}, "needed (or need not known)")),
    h("div", {}, h("dt", {}, sample("partly")), h("dd", {}, "partly needed, at this zoom")),
    h("div", {}, h("dt", {}, sample("wasted")), h("dd", {}, "wasted: read, never needed")),
  );
}
