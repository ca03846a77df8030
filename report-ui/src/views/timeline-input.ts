// Pointer, wheel and keys of the timeline.

import { firstAtOrAfter } from "../derive/file-reads";
import { spanAt, wakeOf, type Timeline } from "../derive/timeline";
import { AXIS } from "./timeline-painter";
import type { Handle } from "./timeline";

/** Less than this many CSS pixels is a click. */
const CLICK = 4;

export function listenTo(handle: Handle, box: HTMLElement, home: () => void, show: (line: number, span: number) => void, timeline: Timeline): void {
  const { frame, scroller } = handle;
  let drag: { x: number; y: number; view: { from: number; to: number }; scroll: number; selects: boolean; id: number; moved: boolean } | null = null;

  const plotWidth = (): number => Math.max(1, scroller.clientWidth - handle.left());
  const perPixel = (): number => (handle.view().to - handle.view().from) / plotWidth();
  const place = (e: MouseEvent): { x: number; y: number } => {
    const area = scroller.getBoundingClientRect();
    return { x: e.clientX - area.left, y: e.clientY - area.top };
  };
  const timeAt = (x: number): number => handle.view().from + (x - handle.left()) * perPixel();

  function zoom(factor: number, at: number): void {
    const { from, to } = handle.view();
    handle.setView(at - (at - from) * factor, at + (to - at) * factor);
  }

  function pan(by: number): void {
    const { from, to } = handle.view();
    const move = (to - from) * by;
    const { from: low, to: high } = handle.whole();
    // At the end of the time the picture stays as long as it is.
    const begin = Math.min(Math.max(from + move, low), high - (to - from));
    handle.setView(begin, begin + (to - from));
  }

  frame.addEventListener(
    "wheel",
    (e) => {
      if ((document.activeElement !== frame && !e.ctrlKey && !e.metaKey) || e.shiftKey) return;
      e.preventDefault();
      const lines = e.deltaMode === WheelEvent.DOM_DELTA_LINE ? 30 : e.deltaMode === WheelEvent.DOM_DELTA_PAGE ? 300 : 1;
      if (e.deltaX !== 0 && Math.abs(e.deltaX) > Math.abs(e.deltaY)) pan((e.deltaX * lines) / plotWidth());
      else zoom(Math.exp(Math.max(-300, Math.min(300, e.deltaY * lines)) * 0.0022), timeAt(Math.max(handle.left(), place(e).x)));
    },
    { passive: false },
  );
  scroller.addEventListener("pointerdown", (e) => {
    const at = place(e);
    // Not the scroll bar.
    if (e.button !== 0 || at.x > scroller.clientWidth) return;
    frame.focus({ preventScroll: true });
    scroller.setPointerCapture(e.pointerId);
    drag = { ...at, view: handle.view(), scroll: scroller.scrollTop, selects: e.shiftKey, id: e.pointerId, moved: false };
    handle.hide();
  });
  scroller.addEventListener("pointermove", (e) => {
    const at = place(e);
    if (!drag) {
      if (at.x < handle.left() || at.y < AXIS || at.x > scroller.clientWidth) handle.hide();
      else handle.describe(handle.rowAt(at.y), timeAt(at.x), perPixel(), e.clientX, e.clientY);
      return;
    }
    if (Math.hypot(at.x - drag.x, at.y - drag.y) >= CLICK) drag.moved = true;
    if (!drag.moved) return;
    if (drag.selects) {
      const [a, b] = [Math.max(handle.left(), Math.min(at.x, drag.x)), Math.max(at.x, drag.x)];
      Object.assign(box.style, { left: `${a}px`, width: `${Math.max(1, b - a)}px`, top: `${AXIS}px`, bottom: "0" });
      box.hidden = false;
      return;
    }
    const move = (drag.x - at.x) * ((drag.view.to - drag.view.from) / plotWidth());
    const { from: low, to: high } = handle.whole();
    const size = drag.view.to - drag.view.from;
    const begin = Math.min(Math.max(drag.view.from + move, low), high - size);
    if (size < high - low) handle.setView(begin, begin + size);
    scroller.scrollTop = drag.scroll + (drag.y - at.y);
  });
  const end = (e: PointerEvent): void => {
    const done = drag;
    drag = null;
    box.hidden = true;
    if (!done || e.type === "pointercancel") return;
    const at = place(e);
    if (done.moved) {
      if (done.selects) handle.chooseTime(timeAt(Math.max(handle.left(), Math.min(at.x, done.x))), timeAt(Math.max(at.x, done.x)));
      return;
    }
    const row = handle.rows()[handle.rowAt(at.y)];
    if (!row || row.kind === "process" || at.y < AXIS || at.x < handle.left()) return;
    const t = timeAt(at.x);
    const span = spanAt(timeline, timeline.lines[row.index]!, t);
    if (span !== null) handle.choose(row.index, span);
  };
  scroller.addEventListener("pointerup", end);
  scroller.addEventListener("pointercancel", end);
  scroller.addEventListener("pointerleave", () => !drag && handle.hide());
  frame.addEventListener("blur", () => handle.hide());

  /** The span that keys begin with: the selected one, or in the first line the one in the middle of the picture. */
  function current(): { line: number; span: number } | null {
    const chosen = handle.current();
    if (chosen) return chosen;
    const { from, to } = handle.view();
    for (const row of handle.rows()) {
      if (row.kind === "process") continue;
      const line = timeline.lines[row.index]!;
      const span = spanAt(timeline, line, (from + to) / 2) ?? (line.first < line.last ? line.first : null);
      if (span !== null) return { line: row.index, span };
    }
    return null;
  }

  function toLine(by: number): void {
    const at = current();
    if (!at) return;
    if (!handle.current()) return show(at.line, at.span);
    const lines = handle.rows().filter((r) => r.kind !== "process");
    const { starts } = timeline;
    const { from, to } = handle.view();
    const middle = Math.min(Math.max((starts[at.span]! + starts[at.span + 1]!) / 2, from), to);
    for (let i = lines.findIndex((r) => r.index === at.line) + by; i >= 0 && i < lines.length; i += by) {
      const line = timeline.lines[lines[i]!.index]!;
      if (line.first === line.last) continue;
      const span = spanAt(timeline, line, middle) ?? (starts[line.first]! > middle ? line.first : line.last - 1);
      return show(lines[i]!.index, span);
    }
  }

  function toSpan(by: number): void {
    const at = current();
    if (!at) return;
    if (!handle.current()) return show(at.line, at.span);
    const line = timeline.lines[at.line]!;
    const span = at.span + by;
    if (span < line.first || span >= line.last) return;
    show(at.line, span);
    const { from, to } = handle.view();
    const [a, b] = [timeline.starts[span]!, timeline.starts[span + 1]!];
    if (b <= from || a >= to) handle.setView((a + b) / 2 - (to - from) / 2, (a + b) / 2 + (to - from) / 2);
  }

  function toWaker(): void {
    const at = handle.current();
    const wake = at && timeline.lines[at.line]!.thread ? wakeOf(timeline, at.line, at.span) : null;
    if (wake === null) return;
    const [line, t] = [timeline.wakes.waker[wake]!, timeline.wakes.at[wake]!];
    const span = spanAt(timeline, timeline.lines[line]!, t);
    if (span !== null) show(line, span);
  }

  /** Along the critical path: the step after or before the selected span. */
  function toStep(by: number): void {
    const { path } = timeline;
    const at = handle.current();
    if (!path || path.from.length === 0) return;
    const t = at ? (by > 0 ? timeline.starts[at.span + 1]! : timeline.starts[at.span]! - 1) : path.from[0]!;
    let i = Math.max(0, firstAtOrAfter(path.from, t + 1) - 1);
    // Nobody's steps, and those before a thread's first span, have nothing to show.
    for (; i >= 0 && i < path.from.length; i += by) {
      const thread = path.thread[i]!;
      const span = thread < 0 ? null : spanAt(timeline, timeline.lines[thread]!, Math.max(t, path.from[i]!));
      if (span !== null) return show(thread, span);
    }
  }

  const keys: Record<string, () => void> = {
    ArrowLeft: () => pan(-0.15),
    ArrowRight: () => pan(0.15),
    ArrowUp: () => toLine(-1),
    ArrowDown: () => toLine(1),
    PageUp: () => (scroller.scrollTop -= scroller.clientHeight - 60),
    PageDown: () => (scroller.scrollTop += scroller.clientHeight - 60),
    "+": () => zoom(0.7, (handle.view().from + handle.view().to) / 2),
    "=": () => zoom(0.7, (handle.view().from + handle.view().to) / 2),
    "-": () => zoom(1 / 0.7, (handle.view().from + handle.view().to) / 2),
    n: () => toSpan(1),
    p: () => toSpan(-1),
    w: toWaker,
    c: () => toStep(1),
    C: () => toStep(-1),
    z: () => {
      const at = handle.current();
      if (!at) return;
      const [a, b] = [timeline.starts[at.span]!, timeline.starts[at.span + 1]!];
      handle.setView(a - (b - a), b + (b - a));
    },
    r: () => handle.chooseTime(handle.view().from, handle.view().to),
    "0": home,
    Escape: handle.clear,
  };
  frame.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.target !== frame) return;
    const key = keys[e.key];
    if (!key) return;
    e.preventDefault();
    key();
  });
}
