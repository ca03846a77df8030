// The flame graph: choice of weight and direction, search, zoom, and a table of the same functions.

import { boxesOf, found, functionsOf, heaviestFiles, indexTree, neighbour, ROOT, type Box, type FlameFunction, type FlameIndex } from "../derive/flame-tree";
import { displayText } from "../display-text";
import { count, inUnit, percent } from "../format";
import type { FlameGraph, FlameGraphs, FlameWeight } from "../types";
import { h, isolated, section, type Child } from "./element";
import { FILE_COLOURS, flamePaint, paintFlames, placeVariable, ROW } from "./flame-painter";
import { sortableTable } from "./sortable-table";
import type { Tooltip } from "./tooltip";

const WEIGHTS: Record<FlameWeight, { label: string; what: string }> = {
  cpu_samples: { label: "CPU samples", what: "Samples of running threads." },
  off_cpu: { label: "Off-CPU time", what: "Time in which threads did not run, waits for work included." },
  fault_time: { label: "Fault time", what: "Time in page faults whose duration is known." },
  allocated: { label: "Bytes allocated", what: "Bytes by which mmap, mremap and brk let address spaces grow; what is freed is not subtracted." },
};
/** Narrower boxes are not drawn, in CSS pixels. */
const NARROWEST = 0.4;

type Direction = "callees" | "callers";

export interface FlameView {
  element: HTMLElement;
  /** Paints; to be called once the element is in the page. */
  start: () => void;
}

/** Null where nothing has a call stack. */
export function flameView(graphs: FlameGraphs, tooltip: Tooltip): FlameView | null {
  const first = graphs.graphs.find((g) => g.callees !== null);
  if (!first) return null;
  let graph: FlameGraph = first;
  let direction: Direction = "callees";
  let search = "";
  let focus = ROOT;
  let pointed = -1;
  let boxes: Box[] = [];
  const indices = new Map<string, FlameIndex>();
  let index = indexOf(graph, direction);
  let files: number[] = [];

  const canvas = h("canvas", { "aria-hidden": "true" });
  const cursor = h("div", { class: "cursor", hidden: true });
  const plot = h("div", { class: "plot flames", tabindex: 0, role: "application", "aria-label": "Flame graph", "aria-describedby": "flame-keys" }, canvas, cursor);
  const what = h("p", { class: "quiet" });
  const status = h("p", { class: "quiet", role: "status" });
  const colours = h("div", { class: "flame-colours" });
  const table = h("div");
  const reset = h("button", { type: "button", class: "reset", onclick: () => zoom(ROOT) }, "Reset zoom");
  const searchInput = h("input", { type: "search", placeholder: "part of a function or file", autocomplete: "off", spellcheck: "false" });
  const directionSelect = h("select", {}, h("option", { value: "callees" }, "from the processes inwards"), h("option", { value: "callers" }, "inverted: from the innermost functions"));

  function indexOf(g: FlameGraph, d: Direction): FlameIndex {
    const key = `${g.weight} ${d}`;
    let known = indices.get(key);
    if (!known) indices.set(key, (known = indexTree(g[d] ?? g.callees ?? { depth: [0], frame: [0], weight: [0], smallest: 0 })));
    return known;
  }

  const amount = (weight: number): string => inUnit(weight, graph.unit);
  const share = (weight: number, of: number): string => (of > 0 ? percent(weight / of) : "");
  const nameOf = (frame: number): string => graphs.frames.name[frame]!;
  const fileOf = (frame: number): string => graphs.places[graphs.frames.place[frame]!]!.name;

  function show(): void {
    index = indexOf(graph, direction);
    focus = ROOT;
    files = heaviestFiles(indexOf(graph, "callees"), graphs, FILE_COLOURS);
    what.textContent = `${WEIGHTS[graph.weight].what} ${amount(graph.total)} in all; what is below ${amount(index.tree.smallest)} is together in (other).`;
    colours.replaceChildren(...colourKeys());
    table.replaceChildren(functionTable());
    paint();
  }

  function colourKeys(): HTMLElement[] {
    const key = (variable: string, text: Child): HTMLElement => {
      const swatch = h("span", { class: "swatch", "aria-hidden": "true" });
      swatch.style.background = `var(${variable})`;
      return h("span", {}, swatch, " ", text);
    };
    const used = new Set(index.tree.frame.map((f) => graphs.frames.place[f]!));
    const kinds = new Set([...used].map((p) => graphs.places[p]!.kind));
    const others = [...used].some((p) => graphs.places[p]!.kind === "file" && !files.includes(p));
    return [
      ...files.map((p, rank) => key(placeVariable("file", rank), isolated(graphs.places[p]!.name))),
      ...(others ? [key(placeVariable("file", -1), "other files")] : []),
      ...(kinds.has("kernel") || kinds.has("vdso") ? [key(placeVariable("kernel", -1), "kernel, vdso")] : []),
      ...(kinds.has("generated") ? [key(placeVariable("generated", -1), "generated code")] : []),
      key(placeVariable("process", -1), "processes"),
      ...(kinds.has("folded") || kinds.has("unknown") ? [key(placeVariable("folded", -1), "not shown or not known")] : []),
    ];
  }

  function functionTable(): HTMLElement {
    const all = functionsOf(indexOf(graph, "callees")).filter((f) => graphs.places[graphs.frames.place[f.frame]!]!.kind !== "process");
    const number = (weight: number): Child => [amount(weight), h("span", { class: "quiet" }, ` ${share(weight, graph.total)}`)];
    return sortableTable<FlameFunction>(
      [
        { key: "function", label: "Function", sortBy: (f) => nameOf(f.frame), cell: (f) => isolated(nameOf(f.frame), "flame-name") },
        { key: "file", label: "File", sortBy: (f) => fileOf(f.frame), cell: (f) => isolated(fileOf(f.frame)) },
        { key: "own", label: "Of its own", hint: "Without what it called", numeric: true, sortBy: (f) => f.own, cell: (f) => number(f.own) },
        { key: "all", label: "With what it called", hint: "Each row once, however often it calls itself", numeric: true, sortBy: (f) => f.all, cell: (f) => number(f.all) },
      ],
      all,
      { caption: `The same by function: ${WEIGHTS[graph.weight].label}`, limit: 12, sortedBy: { key: "own", descending: true } },
    );
  }

  function paint(): void {
    const width = plot.clientWidth;
    const context = canvas.getContext("2d");
    if (width === 0 || !context) return;
    const start = performance.now();
    const ratio = Math.min(window.devicePixelRatio || 1, 3);
    const drawn = boxesOf(index, focus, NARROWEST / width);
    boxes = drawn.boxes;
    const height = drawn.rows * ROW;
    plot.style.height = `${height}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const hits = found(index, graphs, search);
    const focusRow = boxes.find((b) => b.node === focus)?.row ?? 0;
    paintFlames(context, width, ratio, graphs, flamePaint(graphs, files), { boxes, frame: index.tree.frame, focusRow, found: hits.nodes, isSearching: search.trim() !== "" });
    reset.disabled = focus === ROOT;
    point(-1, 0, 0);
    const parts: string[] = [];
    if (focus !== ROOT) parts.push(`Zoomed to ${displayText(nameOf(index.tree.frame[focus]!))}: ${amount(index.tree.weight[focus]!)}, ${share(index.tree.weight[focus]!, graph.total)} of all.`);
    if (search.trim() !== "") parts.push(hits.count === 0 ? "Nothing has this in its name." : `Found in ${count(hits.count)} boxes with ${amount(hits.weight)}, ${share(hits.weight, graph.total)} of all.`);
    if (drawn.isCut) parts.push("Deeper levels show when one of the lowest is zoomed to.");
    status.textContent = parts.join(" ");
    performance.measure("slowpath:flames", { start, detail: { boxes: boxes.length } });
  }

  function zoom(node: number): void {
    focus = node;
    paint();
  }

  /** Marks a node and says what it is; -1 for none. */
  function point(node: number, x: number, y: number): void {
    pointed = node;
    const box = boxes.find((b) => b.node === node);
    cursor.hidden = !box;
    if (!box) return tooltip.hide();
    Object.assign(cursor.style, { left: `${box.from * 100}%`, width: `${(box.to - box.from) * 100}%`, top: `${box.row * ROW}px`, height: `${ROW - 1}px` });
    const { frame, weight } = index.tree;
    const [own, all] = [index.own[node]!, weight[node]!];
    const file = fileOf(frame[node]!);
    tooltip.show(
      [
        { heading: isolated(nameOf(frame[node]!)) },
        ...(file === "" ? [] : [{ label: "file", value: isolated(file) }]),
        { label: WEIGHTS[graph.weight].label, value: `${amount(all)}, ${share(all, graph.total)} of all` },
        ...(focus === ROOT || all > weight[focus]! ? [] : [{ label: "of the zoom", value: share(all, weight[focus]!) }]),
        ...(direction === "callees" ? [{ label: "of its own", value: `${amount(own)}, ${share(own, graph.total)}` }] : []),
      ],
      x,
      y,
    );
  }

  function nodeAt(e: MouseEvent): number {
    const area = canvas.getBoundingClientRect();
    const [x, row] = [(e.clientX - area.left) / area.width, Math.floor((e.clientY - area.top) / ROW)];
    return boxes.find((b) => b.row === row && b.from <= x && x < b.to)?.node ?? -1;
  }

  function onKey(e: KeyboardEvent): void {
    const { key } = e;
    if (key === "Escape") zoom(ROOT);
    else if (key === "Enter") zoom(pointed < 0 ? focus : pointed);
    else if (key === "ArrowUp" || key === "ArrowDown" || key === "ArrowLeft" || key === "ArrowRight") {
      const to = pointed < 0 ? focus : neighbour(index, pointed, key);
      const box = boxes.find((b) => b.node === to);
      if (box) {
        const area = canvas.getBoundingClientRect();
        point(to, area.left + ((box.from + box.to) / 2) * area.width, area.top + (box.row + 1) * ROW);
      }
    } else return;
    e.preventDefault();
  }

  plot.addEventListener("pointermove", (e) => point(nodeAt(e), e.clientX, e.clientY));
  plot.addEventListener("pointerleave", () => point(-1, 0, 0));
  plot.addEventListener("blur", () => point(-1, 0, 0));
  plot.addEventListener("click", (e) => {
    const node = nodeAt(e);
    if (node >= 0) zoom(node);
  });
  plot.addEventListener("keydown", onKey);
  searchInput.addEventListener("input", () => {
    search = searchInput.value;
    paint();
  });
  directionSelect.addEventListener("change", () => {
    direction = directionSelect.value as Direction;
    show();
  });

  const choice = (g: FlameGraph): HTMLElement => {
    const input = h("input", { type: "radio", name: "flame-weight", value: g.weight, checked: g === graph, disabled: g.callees === null });
    input.addEventListener("change", () => {
      graph = g;
      show();
    });
    const why = g.unavailable && h("span", {}, ` (${g.unavailable.reason}: ${g.unavailable.remedy})`);
    return h("label", { class: g.callees === null ? "quiet" : null }, input, " ", WEIGHTS[g.weight].label, why);
  };

  const element = section(
    "flame-graph",
    "Flame graph",
    what,
    h("fieldset", { class: "controls" }, h("legend", {}, "Weight"), ...graphs.graphs.map(choice)),
    h("div", { class: "controls" }, h("label", {}, "Direction ", directionSelect), h("label", {}, "Search ", searchInput), reset, status),
    colours,
    plot,
    h("p", { class: "quiet", id: "flame-keys" }, "A box is a function, as wide as its share; below it is what it called, heaviest first. Processes of one program are together. A click or Enter zooms, arrows move, Escape shows all."),
    table,
  );
  return {
    element,
    start: () => {
      show();
      let width = plot.clientWidth;
      new ResizeObserver(() => {
        if (plot.clientWidth === width) return;
        width = plot.clientWidth;
        paint();
      }).observe(plot);
      for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", paint);
    },
  };
}
