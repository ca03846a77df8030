// The flame graph: choice of weight and direction, search, zoom, and a table of the same functions.
//
// Owns the picture and its events, whatever it is of. Leaves trees, colours and amounts to the subject.

import { boxesOf, callersOf, found, neighbour, ROOT, type Box, type Direction } from "../derive/flame-tree";
import { displayText } from "../display-text";
import { count, inUnit, percent } from "../format";
import type { Selection, Selections } from "../selection";
import { append, h, isolated, section } from "./element";
import { flamePaint, paintFlames, ROW } from "./flame-painter";
import type { FlameChoice, FlamePicture, FlameSubject } from "./flame-subject";
import type { Tooltip } from "./tooltip";

/** Narrower boxes are not drawn, in CSS pixels. */
const NARROWEST = 0.4;

export interface FlameView {
  element: HTMLElement;
  /** Paints; to be called once the element is in the page. */
  start: () => void;
}

/** Null where nothing has a call stack; `selections` where there is no other part to be filtered. */
export function flameView(subject: FlameSubject, tooltip: Tooltip, selections: Selections | null = null): FlameView | null {
  const first = subject.choices.find((c) => c.unavailable === null);
  if (!first) return null;
  const { names } = subject;
  let choice: FlameChoice = first;
  let direction: Direction = "callees";
  let search = "";
  let focus = ROOT;
  let pointed = -1;
  let boxes: Box[] = [];
  /** In another part. */
  let selected: Selection | null = null;
  let picture: FlamePicture = subject.picture(choice, direction, selected);

  const canvas = h("canvas", { "aria-hidden": "true" });
  const cursor = h("div", { class: "cursor", hidden: true });
  const plot = h("div", { class: "plot flames", tabindex: 0, role: "application", "aria-label": subject.title, "aria-describedby": "flame-keys" }, canvas, cursor);
  const what = h("p", { class: "quiet" });
  const partText = h("span", { "aria-live": "polite" });
  const part = h("p", { class: "flame-part", hidden: true }, partText, " ", h("button", { type: "button", class: "everything", onclick: () => showAll() }, "Show everything"));
  const status = h("p", { class: "quiet", role: "status" });
  const colours = h("div", { class: "flame-colours" });
  const table = h("div");
  const reset = h("button", { type: "button", class: "reset", onclick: () => zoomAndSelect(ROOT) }, "Reset zoom");
  const searchInput = h("input", { type: "search", placeholder: "part of a function or file", autocomplete: "off", spellcheck: "false" });
  const directionSelect = h("select", {}, h("option", { value: "callees" }, "from the processes inwards"), h("option", { value: "callers" }, "inverted: from the innermost functions"));

  const amount = (weight: number): string => inUnit(weight, choice.unit);
  const share = (weight: number, of: number): string => (of > 0 ? percent(weight / of) : "");
  const nameOf = (frame: number): string => names.frames.name[frame]!;
  const fileOf = (frame: number): string => names.places[names.frames.place[frame]!]!.name;

  function show(): void {
    picture = subject.picture(choice, direction, selected);
    focus = ROOT;
    what.textContent = picture.what;
    part.hidden = picture.part === null;
    partText.replaceChildren();
    append(partText, [picture.part]);
    colours.replaceChildren(
      ...picture.colourKeys.map(({ variable, text }) => {
        const swatch = h("span", { class: "swatch", "aria-hidden": "true" });
        swatch.style.background = `var(${variable})`;
        return h("span", {}, swatch, " ", text);
      }),
    );
    paint();
  }

  function showTable(): void {
    table.replaceChildren(subject.table(choice, selected));
  }

  function paint(): void {
    const width = plot.clientWidth;
    const context = canvas.getContext("2d");
    if (width === 0 || !context) return;
    const start = performance.now();
    const ratio = Math.min(window.devicePixelRatio || 1, 3);
    const { index, total, whole } = picture;
    const drawn = boxesOf(index, focus, NARROWEST / width);
    boxes = drawn.boxes;
    const height = drawn.rows * ROW;
    plot.style.height = `${height}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const hits = found(index, names, search);
    const focusRow = boxes.find((b) => b.node === focus)?.row ?? 0;
    paintFlames(context, width, ratio, flamePaint(picture.colour), { boxes, name: (node) => nameOf(index.tree.frame[node]!), focusRow, found: hits.nodes, isSearching: search.trim() !== "" });
    reset.disabled = focus === ROOT;
    point(-1, 0, 0);
    const parts: string[] = [];
    if (focus !== ROOT) parts.push(`Zoomed to ${displayText(nameOf(index.tree.frame[focus]!))}: ${amount(index.tree.weight[focus]!)}, ${share(index.tree.weight[focus]!, total)} of ${whole}.`);
    if (search.trim() !== "") parts.push(hits.count === 0 ? "Nothing has this in its name." : `Found in ${count(hits.count)} boxes with ${amount(hits.weight)}, ${share(hits.weight, total)} of ${whole}.`);
    if (drawn.isCut) parts.push("Deeper levels show when one of the lowest is zoomed to.");
    status.textContent = parts.join(" ");
    performance.measure("slowpath:flames", { start, detail: { boxes: boxes.length } });
  }

  function zoom(node: number): void {
    focus = node;
    paint();
  }

  /** Zooms as the reader wants, and shows the process of what is zoomed to in the other parts. */
  function zoomAndSelect(node: number): void {
    zoom(node);
    // Within what another part has selected, a zoom is only a zoom.
    if (!selections || picture.part !== null) return;
    selected = null;
    const process = direction === "callees" ? [node, ...callersOf(picture.index, node)].find((n) => picture.index.tree.depth[n] === 1) : undefined;
    const frame = process === undefined ? undefined : picture.index.tree.frame[process]!;
    if (frame !== undefined && names.places[names.frames.place[frame]!]!.kind === "process") {
      selections.select({ origin: "flame-graph", text: `processes of ${nameOf(frame)}`, time: null, processes: [{ pid: null, name: nameOf(frame) }], tid: null, files: null });
    } else if (selections.current?.origin === "flame-graph") selections.select(null);
  }

  /** The part of the picture that is of a process of this name; all of it where there is none. */
  function zoomToProcess(name: string | null): void {
    const { tree } = picture.index;
    const node = name === null || direction !== "callees" ? -1 : tree.depth.findIndex((depth, n) => depth === 1 && nameOf(tree.frame[n]!) === name);
    zoom(node < 0 ? ROOT : node);
  }

  function showAll(): void {
    selections?.select(null);
    // Its button is gone.
    plot.focus({ preventScroll: true });
  }

  selections?.listen((selection) => {
    if (selection?.origin === "flame-graph") return;
    selected = selection;
    show();
    showTable();
    // Without the times of rows there is only a place to go to.
    const processes = selection?.processes ?? [];
    if (picture.part === null) zoomToProcess(processes.length === 1 ? processes[0]!.name : null);
  });

  /** Marks a node and says what it is; -1 for none. */
  function point(node: number, x: number, y: number): void {
    pointed = node;
    const box = boxes.find((b) => b.node === node);
    cursor.hidden = !box;
    if (!box) return tooltip.hide();
    Object.assign(cursor.style, { left: `${box.from * 100}%`, width: `${(box.to - box.from) * 100}%`, top: `${box.row * ROW}px`, height: `${ROW - 1}px` });
    const { frame, weight } = picture.index.tree;
    const file = fileOf(frame[node]!);
    tooltip.show(
      [
        { heading: isolated(nameOf(frame[node]!)) },
        ...(file === "" ? [] : [{ label: "file", value: isolated(file) }]),
        ...picture.lines(node),
        ...(focus === ROOT || weight[node]! > weight[focus]! ? [] : [{ label: "of the zoom", value: share(weight[node]!, weight[focus]!) }]),
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
    if (key === "Escape") zoomAndSelect(ROOT);
    else if (key === "Enter") zoomAndSelect(pointed < 0 ? focus : pointed);
    else if (key === "ArrowUp" || key === "ArrowDown" || key === "ArrowLeft" || key === "ArrowRight") {
      const to = pointed < 0 ? focus : neighbour(picture.index, pointed, key);
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
    if (node >= 0) zoomAndSelect(node);
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

  const weightChoice = (c: FlameChoice): HTMLElement => {
    const input = h("input", { type: "radio", name: "flame-weight", value: c.weight, checked: c === choice, disabled: c.unavailable !== null });
    input.addEventListener("change", () => {
      choice = c;
      show();
      showTable();
    });
    const why = c.unavailable && h("span", {}, ` (${[c.unavailable.reason, c.unavailable.remedy].filter((t) => t !== "").join(": ")})`);
    return h("label", { class: c.unavailable ? "quiet" : null }, input, " ", c.label, why);
  };

  const element = section(
    "flame-graph",
    subject.title,
    what,
    part,
    h("fieldset", { class: "controls" }, h("legend", {}, "Weight"), ...subject.choices.map(weightChoice)),
    h("div", { class: "controls" }, ...subject.controls(show), h("label", {}, "Direction ", directionSelect), h("label", {}, "Search ", searchInput), reset, status),
    colours,
    plot,
    h("p", { class: "quiet", id: "flame-keys" }, `A box is a function, as wide as its share; ${subject.hint}. Processes of one program are together. A click or Enter zooms, arrows move, Escape shows all.`),
    table,
  );
  return {
    element,
    start: () => {
      show();
      showTable();
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
