// A bar of the time ledger: its pieces, and pointing at them by pointer and by keyboard.
//
// Owns the look of a bar. Leaves what stands beside it, and its table, to the views that have bars.

import { partWords, UNEXPLAINED, type BarPart, type LedgerBar } from "../derive/ledger-bars";
import { h } from "./element";
import type { Tooltip, TooltipLine } from "./tooltip";

/** Below this share of its bar a part has no text in it. */
const WORDS_FROM = 0.09;

/** A custom property of the style sheet. */
function colour(part: BarPart): string {
  return `var(--ledger-${part.replaceAll("_", "-")})`;
}

export function swatch(part: BarPart): HTMLElement {
  const element = h("span", { class: part === UNEXPLAINED ? "swatch unexplained" : "swatch", "aria-hidden": "true" });
  if (part !== UNEXPLAINED) element.style.background = colour(part);
  return element;
}

export interface DrawnBar {
  element: HTMLElement;
  pieces: Map<BarPart, HTMLElement>;
}

/** A bar as long as this share of the room; `sentence` is it for those who do not see it. */
export function drawBar(bar: LedgerBar, length: number, sentence: string): DrawnBar {
  const pieces = new Map<BarPart, HTMLElement>();
  for (const { row, from, to } of bar.segments) {
    const isRest = row.part === UNEXPLAINED;
    const piece = h("span", { class: isRest ? "piece unexplained" : "piece" }, (to - from) * length >= WORDS_FROM && !isRest ? h("span", {}, partWords(row.part)) : null);
    piece.style.width = `${(to - from) * 100}%`;
    if (!isRest) piece.style.background = colour(row.part);
    pieces.set(row.part, piece);
  }
  const element = h("span", { class: "ledger-bar", role: "img", "aria-label": sentence }, ...pieces.values());
  element.style.width = `${Math.max(length * 100, 0.3)}%`;
  return { element, pieces };
}

/** Has a part be told by the pointer over it and by the arrow keys on `focusable`, in all of these bars at once. */
export function stepThrough(focusable: HTMLElement, bars: readonly DrawnBar[], parts: readonly BarPart[], tooltip: Tooltip, describe: (part: BarPart) => TooltipLine[]): void {
  let stepped = -1;
  const point = (index: number, x: number, y: number): void => {
    stepped = index;
    const part = parts[index];
    for (const { pieces } of bars) pieces.forEach((piece, of) => piece.classList.toggle("on", of === part));
    if (part) tooltip.show(describe(part), x, y);
    else tooltip.hide();
  };
  for (const { element, pieces } of bars) {
    const partAt = (target: EventTarget | null): number => parts.findIndex((part) => target instanceof Node && pieces.get(part)?.contains(target));
    element.addEventListener("pointermove", (e) => point(partAt(e.target), e.clientX, e.clientY));
    element.addEventListener("pointerleave", () => point(-1, 0, 0));
  }
  focusable.addEventListener("blur", () => point(-1, 0, 0));
  focusable.addEventListener("keydown", (e) => {
    const step = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
    if (step === 0 || parts.length === 0) return;
    e.preventDefault();
    const index = Math.min(Math.max(stepped + step, 0), parts.length - 1);
    const piece = bars.map((b) => b.pieces.get(parts[index]!)).find((p) => p !== undefined);
    if (!piece) return;
    const box = piece.getBoundingClientRect();
    point(index, box.left + box.width / 2, box.bottom);
  });
}
