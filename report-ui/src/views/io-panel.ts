// One file of the I/O map: its canvas, the text around the picture, zooming, panning and pointing.

import { binaryTicks, decimalTicks } from "../derive/axis";
import { nearestRead, type FileReads } from "../derive/file-reads";
import { boxed, isWhole, panned, zoomed, type ViewWindow } from "../derive/view-window";
import { bytes, count, duration, percent, sizeOnAxis, timeOnAxis } from "../format";
import { displayText } from "../display-text";
import type { IoMap } from "../types";
import { h, isolated } from "./element";
import { markHeight, paintReads, readsInTime, type Plot } from "./io-painter";
import { describePlace, describeRead } from "./io-tooltip";
import { pixelOf, type Palette } from "./palette";
import type { Tooltip } from "./tooltip";

const LEFT = 62;
const RIGHT = 6;
const BAND = 14;
const STRIP = 8;
/** Between the strip and the picture. */
const GAP = 5;
const AXIS = 17;
/** How near the pointer must be to a read, in CSS pixels. */
const REACH = 5;

/** What all panels share; `visible` changes as the reader hides askers. */
export interface MapState {
  map: IoMap;
  pageSize: number;
  palette: Palette;
  visible: boolean[];
  /** Whether a read is part of what is selected in another part; null where nothing is. */
  chosen: ((reads: FileReads, i: number) => boolean) | null;
  /** The reader chose a read. */
  choose: (reads: FileReads, i: number) => void;
  /** The time that unzoomed pictures show. */
  timeEnd: number;
  tooltip: Tooltip;
}

/** Picture height by pages read, in CSS pixels: by the root, so that small files stay visible. */
export function plotHeight(pagesRead: number): number {
  return Math.round(Math.min(380, 22 + 2.1 * Math.sqrt(pagesRead)));
}

export class IoPanel {
  readonly element: HTMLElement;
  private readonly canvas = h("canvas", { "aria-hidden": "true" });
  private readonly cursor = h("div", { class: "cursor", hidden: true });
  private readonly selection = h("div", { class: "selection", hidden: true });
  private readonly frame: HTMLElement;
  private readonly reset: HTMLButtonElement;
  private readonly zoomText = h("span", { class: "quiet zoom-text" });
  private readonly plot: Plot;
  private readonly edges: number[];
  private view: ViewWindow;
  /** Height of a mark in the picture as painted, in CSS pixels. */
  private mark = 2;
  private image: ImageData | null = null;
  private pending = 0;
  private stepped = -1;
  private drag: { x: number; y: number; view: ViewWindow; box: boolean; id: number } | null = null;
  /** Whether the picture was painted at least once. */
  painted = false;

  constructor(
    private readonly reads: FileReads,
    private readonly state: MapState,
  ) {
    const height = plotHeight(reads.pagesRead);
    this.plot = { left: LEFT, top: BAND + STRIP + GAP, width: 0, height };
    this.view = this.whole();
    this.edges = sectionEdges(reads, state.pageSize);
    this.reset = h("button", { type: "button", class: "reset", hidden: true, onclick: () => this.setView(this.whole()) }, "Reset zoom");
    this.frame = h("div", { class: "plot", tabindex: 0, role: "img", "aria-label": this.summary(), "aria-describedby": "io-map-keys" }, this.canvas, this.cursor, this.selection);
    this.frame.style.height = `${this.plot.top + height + AXIS}px`;
    this.element = h(
      "article",
      { class: height > 100 ? "file-panel wide" : "file-panel", id: `file-${reads.index}` },
      h("div", { class: "file-head" }, h("h4", {}, isolated(reads.file.path)), this.zoomText, this.reset),
      h("p", { class: "quiet file-figures", title: this.summary() }, this.summary()),
      this.frame,
    );
    this.listen();
  }

  /** The whole picture: all pages, and time up to the end that the map shows. */
  private whole(): ViewWindow {
    return { page0: 0, page1: this.reads.pageCount, t0: 0, t1: this.state.timeEnd };
  }

  private summary(): string {
    const { reads, state } = this;
    // The last page reaches past the end of the file; "172 of 168 KiB" would look like a fault.
    const read = reads.pagesRead <= Math.ceil(reads.file.size / state.pageSize) ? Math.min(reads.pagesRead * state.pageSize, reads.file.size) : reads.pagesRead * state.pageSize;
    const parts = [`${bytes(read)} of ${bytes(reads.file.size)} in ${count(reads.t.length)} ${reads.t.length === 1 ? "read" : "reads"}`];
    if (reads.pagesWasted === null) parts.push("waste unknown");
    else parts.push(`${percent(reads.pagesRead > 0 ? reads.pagesWasted / reads.pagesRead : 0)} wasted`);
    if (reads.file.blocked_ns > 0) parts.push(`blocked ${duration(reads.file.blocked_ns)}`);
    return parts.join(", ");
  }

  /** Paints at the current width, in the current colours. */
  paint(): void {
    const width = this.frame.clientWidth;
    if (width === 0) return;
    const start = performance.now();
    const ratio = Math.min(window.devicePixelRatio || 1, 3);
    this.plot.width = Math.max(10, width - LEFT - RIGHT);
    const [w, hgt] = [Math.round(width * ratio), Math.round(this.frame.clientHeight * ratio)];
    if (this.canvas.width !== w || this.canvas.height !== hgt) {
      this.canvas.width = w;
      this.canvas.height = hgt;
      this.image = null;
    }
    const context = this.canvas.getContext("2d");
    if (!context) return;
    const { palette, visible } = this.state;
    const { left, top } = this.plot;
    const [pw, ph] = [Math.round(this.plot.width * ratio), Math.round(this.plot.height * ratio)];
    if (!this.image || this.image.width !== pw || this.image.height !== ph) this.image = context.createImageData(pw, ph);
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, w, hgt);
    this.mark = markHeight(this.plot, this.reads, this.view);
    paintReads(this.image, ratio, Math.max(1, Math.round(this.mark * ratio)), this.reads, this.view, this.edges, {
      askers: Uint32Array.from(palette.askers, pixelOf),
      visible,
      chosen: this.state.chosen && ((i) => this.state.chosen!(this.reads, i)),
      ground: pixelOf(palette.plot),
      groundAlternate: pixelOf(palette.plotAlternate),
    });
    context.putImageData(this.image, Math.round(left * ratio), Math.round(top * ratio));
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.paintBands(context);
    this.paintNeeded(context);
    this.paintAxes(context);
    this.painted = true;
    this.cursor.hidden = true;
    performance.measure("slowpath:paint", { start, detail: { file: this.reads.index, reads: this.reads.t.length } });
  }

  repaintSoon(): void {
    if (this.pending === 0) {
      this.pending = requestAnimationFrame(() => {
        this.pending = 0;
        this.paint();
      });
    }
  }

  /** Back to the whole picture, for a new end of time. */
  showWhole(): void {
    this.setView(this.whole());
  }

  private setView(view: ViewWindow): void {
    this.view = view;
    const whole = isWhole(view, this.whole());
    this.reset.hidden = whole;
    const size = this.state.pageSize;
    this.zoomText.textContent = whole ? "" : `${bytes(view.page0 * size)} to ${bytes(view.page1 * size)}, ${duration(view.t0)} to ${duration(view.t1)}`;
    this.state.tooltip.hide();
    this.repaintSoon();
  }

  private xOf(page: number): number {
    return this.plot.left + ((page - this.view.page0) / (this.view.page1 - this.view.page0)) * this.plot.width;
  }

  private yOf(t: number): number {
    return this.plot.top + ((t - this.view.t0) / (this.view.t1 - this.view.t0)) * this.plot.height;
  }

  private paintBands(context: CanvasRenderingContext2D): void {
    const { palette, pageSize } = this.state;
    context.font = `10px ${palette.font}`;
    context.textBaseline = "middle";
    const right = this.plot.left + this.plot.width;
    context.save();
    context.beginPath();
    context.rect(this.plot.left, 0, this.plot.width, BAND);
    context.clip();
    context.fillStyle = palette.band;
    context.fillRect(this.plot.left, 0, this.plot.width, BAND);
    const sections = [...this.reads.file.sections].sort((a, b) => a.offset - b.offset);
    sections.forEach((s, i) => {
      const x0 = Math.max(this.plot.left, this.xOf(s.offset / pageSize));
      const x1 = Math.min(right, this.xOf((s.offset + s.size) / pageSize));
      if (x1 <= x0) return;
      context.fillStyle = i % 2 === 0 ? palette.bandAlternate : palette.band;
      context.fillRect(x0, 0, x1 - x0, BAND);
      context.fillStyle = palette.line;
      context.fillRect(x0, 0, 1, BAND);
      const name = displayText(s.name);
      if (context.measureText(name).width + 8 <= x1 - x0) {
        context.fillStyle = palette.text;
        context.textAlign = "left";
        context.fillText(name, x0 + 4, BAND / 2 + 0.5);
      }
    });
    context.restore();
    context.fillStyle = palette.quiet;
    context.textAlign = "right";
    if (sections.length > 0) context.fillText("section", LEFT - 6, BAND / 2 + 0.5);
    context.fillText("needed", LEFT - 6, BAND + STRIP / 2 + 1);
  }

  /** The strip of needed pages: a column is as dark as its share of needed pages. */
  private paintNeeded(context: CanvasRenderingContext2D): void {
    const { needed } = this.reads;
    const { palette } = this.state;
    const { left, width } = this.plot;
    context.strokeStyle = palette.line;
    context.lineWidth = 1;
    context.strokeRect(left + 0.5, BAND + 0.5, width - 1, STRIP);
    if (!needed) {
      context.fillStyle = palette.quiet;
      context.textAlign = "left";
      context.font = `9px ${palette.font}`;
      context.fillText("not known", left + 4, BAND + STRIP / 2 + 1);
      return;
    }
    const perPixel = (this.view.page1 - this.view.page0) / width;
    context.fillStyle = palette.needed;
    for (let x = 0; x < width; x++) {
      const a = Math.floor(this.view.page0 + x * perPixel);
      const b = Math.max(a + 1, Math.ceil(this.view.page0 + (x + 1) * perPixel));
      const share = needed.countIn(a, b) / (b - a);
      if (share === 0) continue;
      context.globalAlpha = 0.25 + 0.75 * share;
      context.fillRect(left + x, BAND + 1, 1, STRIP - 1);
    }
    context.globalAlpha = 1;
  }

  private paintAxes(context: CanvasRenderingContext2D): void {
    const { palette, pageSize, map } = this.state;
    const { left, top, width, height } = this.plot;
    const bottom = top + height;
    context.strokeStyle = palette.line;
    context.lineWidth = 1;
    context.strokeRect(left - 0.5, top - 0.5, width + 1, height + 1);
    context.font = `10px ${palette.font}`;
    context.fillStyle = palette.quiet;

    const times = decimalTicks(this.view.t0, this.view.t1, Math.max(1, height / 44));
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const t of times.at) {
      const y = Math.round(this.yOf(t)) + 0.5;
      context.fillRect(left - 4, y - 0.5, 4, 1);
      if (y >= top + 4 || t === 0) context.fillText(timeOnAxis(t, times.step), left - 6, Math.min(Math.max(y, top + 5), bottom - 4));
    }
    const sizes = binaryTicks(this.view.page0 * pageSize, this.view.page1 * pageSize, Math.max(2, width / 95));
    context.textBaseline = "top";
    let clear = -Infinity;
    for (const at of sizes.at) {
      const x = Math.round(this.xOf(at / pageSize));
      context.fillRect(x, bottom, 1, 3);
      const label = sizeOnAxis(at, sizes.step);
      const half = context.measureText(label).width / 2;
      const middle = Math.min(Math.max(x, left + half), left + width - half);
      if (middle - half < clear) continue;
      context.textAlign = "center";
      context.fillText(label, middle, bottom + 5);
      clear = middle + half + 10;
    }
    const { ready_ns } = map;
    if (ready_ns !== null && ready_ns >= this.view.t0 && ready_ns <= this.view.t1) {
      const y = Math.round(this.yOf(ready_ns)) + 0.5;
      context.strokeStyle = palette.text;
      context.setLineDash([4, 3]);
      context.beginPath();
      context.moveTo(left, y);
      context.lineTo(left + width, y);
      context.stroke();
      context.setLineDash([]);
      if (height > 60) {
        // On a ground of its own, because it may stand over many reads.
        const label = context.measureText("ready").width;
        context.fillStyle = palette.plot;
        context.fillRect(left + width - label - 7, y - 14, label + 6, 13);
        context.fillStyle = palette.text;
        context.textAlign = "right";
        context.textBaseline = "bottom";
        context.fillText("ready", left + width - 4, y - 1);
      }
    }
  }

  /** Fractions of the picture under a pointer event, or null outside of it. */
  private fractions(event: MouseEvent): [number, number] {
    const box = this.frame.getBoundingClientRect();
    return [(event.clientX - box.left - this.plot.left) / this.plot.width, (event.clientY - box.top - this.plot.top) / this.plot.height];
  }

  private listen(): void {
    const { frame } = this;
    frame.addEventListener("wheel", (e) => this.onWheel(e), { passive: false });
    frame.addEventListener("pointerdown", (e) => this.onDown(e));
    frame.addEventListener("pointermove", (e) => this.onMove(e));
    frame.addEventListener("pointerup", (e) => this.onUp(e));
    frame.addEventListener("pointercancel", () => this.endDrag());
    frame.addEventListener("pointerleave", () => this.clearPointer());
    frame.addEventListener("dblclick", () => this.setView(this.whole()));
    frame.addEventListener("keydown", (e) => this.onKey(e));
    frame.addEventListener("blur", () => this.clearPointer());
  }

  /** Zooms only where the reader has chosen the picture; otherwise the wheel must scroll the page. */
  private onWheel(event: WheelEvent): void {
    if (document.activeElement !== this.frame && !event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const [fx, fy] = this.fractions(event);
    const lines = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 30 : event.deltaMode === WheelEvent.DOM_DELTA_PAGE ? 300 : 1;
    const factor = Math.exp(Math.max(-300, Math.min(300, (event.deltaY || event.deltaX) * lines)) * 0.0022);
    const axes = { page: !event.altKey, time: !event.shiftKey };
    this.setView(zoomed(this.view, this.whole(), factor, clamp(fx), clamp(fy), axes));
  }

  private onDown(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.frame.focus({ preventScroll: true });
    this.frame.setPointerCapture(event.pointerId);
    const [fx, fy] = this.fractions(event);
    // The whole picture cannot be moved, so there a drag selects a part of it.
    const box = event.shiftKey || isWhole(this.view, this.whole());
    this.drag = { x: clamp(fx), y: clamp(fy), view: this.view, box, id: event.pointerId };
    this.state.tooltip.hide();
  }

  private onMove(event: PointerEvent): void {
    const [fx, fy] = this.fractions(event);
    if (!this.drag) {
      this.point(fx, fy, event.clientX, event.clientY);
      return;
    }
    const { drag } = this;
    if (drag.box) this.placeSelection(drag.x, drag.y, clamp(fx), clamp(fy));
    else this.setView(panned(drag.view, this.whole(), drag.x - fx, drag.y - fy));
  }

  private onUp(event: PointerEvent): void {
    const { drag } = this;
    this.endDrag();
    if (!drag) return;
    const [fx, fy] = this.fractions(event).map(clamp) as [number, number];
    // Less than a few pixels is a click.
    if (Math.abs(fx - drag.x) * this.plot.width < 4 && Math.abs(fy - drag.y) * this.plot.height < 4) {
      this.point(fx, fy, event.clientX, event.clientY);
      if (!this.cursor.hidden && this.stepped >= 0) this.state.choose(this.reads, this.stepped);
      return;
    }
    if (!drag.box) return;
    this.setView(boxed(this.view, this.whole(), [drag.x, drag.y], [fx, fy]));
  }

  private endDrag(): void {
    if (this.drag && this.frame.hasPointerCapture(this.drag.id)) this.frame.releasePointerCapture(this.drag.id);
    this.drag = null;
    this.selection.hidden = true;
  }

  private placeSelection(ax: number, ay: number, bx: number, by: number): void {
    const { left, top, width, height } = this.plot;
    place(this.selection, left + Math.min(ax, bx) * width, top + Math.min(ay, by) * height, Math.abs(ax - bx) * width, Math.abs(ay - by) * height);
  }

  private point(fx: number, fy: number, x: number, y: number): void {
    const { view, state, reads, plot } = this;
    const above = fy * plot.height < -1;
    if (fx < 0 || fx > 1 || fy > 1 || fy * plot.height < -plot.top) {
      this.clearPointer();
      return;
    }
    const page = view.page0 + fx * (view.page1 - view.page0);
    if (above) {
      this.cursor.hidden = true;
      state.tooltip.show(describePlace(reads, state, Math.floor(page)), x, y);
      return;
    }
    const t = view.t0 + fy * (view.t1 - view.t0);
    const mark = this.markTime();
    const tolerance = { pages: (REACH / plot.width) * (view.page1 - view.page0), time: (REACH / plot.height) * (view.t1 - view.t0) };
    const found = nearestRead(reads, page, t - mark / 2, tolerance, state.visible);
    if (found === null) this.clearPointer();
    else this.showRead(found, Math.floor(page), x, y);
  }

  /** The time that the height of a mark stands for. */
  private markTime(): number {
    return (this.mark / this.plot.height) * (this.view.t1 - this.view.t0);
  }

  private showRead(i: number, page: number, x: number, y: number): void {
    const { reads, state, plot } = this;
    this.stepped = i;
    const x0 = Math.max(plot.left, this.xOf(reads.page[i]!));
    const x1 = Math.min(plot.left + plot.width, this.xOf(reads.page[i]! + reads.pages[i]!));
    const { mark } = this;
    const top = Math.min(this.yOf(reads.t[i]!), plot.top + plot.height - mark);
    place(this.cursor, x0 - 2, top - 2, Math.max(2, x1 - x0) + 4, mark + 4);
    state.tooltip.show(describeRead(reads, state, i, page), x, y);
  }

  private clearPointer(): void {
    this.cursor.hidden = true;
    this.state.tooltip.hide();
  }

  private onKey(event: KeyboardEvent): void {
    const whole = this.whole();
    const moves: Record<string, () => ViewWindow> = {
      ArrowLeft: () => panned(this.view, whole, -0.15, 0),
      ArrowRight: () => panned(this.view, whole, 0.15, 0),
      ArrowUp: () => panned(this.view, whole, 0, -0.15),
      ArrowDown: () => panned(this.view, whole, 0, 0.15),
      "+": () => zoomed(this.view, whole, 0.7, 0.5, 0.5),
      "=": () => zoomed(this.view, whole, 0.7, 0.5, 0.5),
      "-": () => zoomed(this.view, whole, 1 / 0.7, 0.5, 0.5),
      Escape: () => whole,
      "0": () => whole,
    };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const move = moves[event.key];
    // An unzoomed picture leaves the arrows to the page.
    if (move && !(event.key.startsWith("Arrow") && isWhole(this.view, whole))) {
      event.preventDefault();
      if (event.key === "Escape" && this.drag) this.endDrag();
      this.setView(move());
    } else if (event.key === "n" || event.key === "p") {
      event.preventDefault();
      this.step(event.key === "n" ? 1 : -1);
    } else if (event.key === "Enter" && !this.cursor.hidden && this.stepped >= 0) {
      event.preventDefault();
      this.state.choose(this.reads, this.stepped);
    }
  }

  /** Goes to the next read in view in the order of time, so that reads can be inspected by keyboard. */
  private step(by: number): void {
    const { reads, view, state } = this;
    const { from, to } = readsInTime(reads, view);
    let i = this.stepped < from || this.stepped >= to ? (by > 0 ? from - 1 : to) : this.stepped;
    for (i += by; i >= from && i < to; i += by) {
      const shown = reads.page[i]! < view.page1 && reads.page[i]! + reads.pages[i]! > view.page0;
      if (!shown || state.visible[reads.asker[i]!] === false) continue;
      const box = this.frame.getBoundingClientRect();
      this.showRead(i, reads.page[i]!, box.left + this.xOf(reads.page[i]!), box.top + this.yOf(reads.t[i]!));
      return;
    }
  }
}

function clamp(f: number): number {
  return Math.min(1, Math.max(0, f));
}

function place(element: HTMLElement, left: number, top: number, width: number, height: number): void {
  Object.assign(element.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
  element.hidden = false;
}

/** Section starts and ends as pages, ascending, for the alternating ground. */
function sectionEdges(reads: FileReads, pageSize: number): number[] {
  const starts = reads.file.sections.map((s) => s.offset / pageSize);
  return [...new Set(starts)].sort((a, b) => a - b);
}

