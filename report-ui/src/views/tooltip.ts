// One tooltip for the whole page: lines of label and value beside the pointer.

import { h, type Child } from "./element";

export type TooltipLine = { label: string; value: Child } | { heading: Child } | { note: string };

export class Tooltip {
  // Polite, so that stepping with the keyboard is read out.
  private readonly box = h("div", { class: "tooltip", id: "tooltip", role: "status", "aria-live": "polite", hidden: true });

  constructor(parent: HTMLElement) {
    parent.append(this.box);
    addEventListener("scroll", () => this.hide(), { passive: true });
  }

  /** Shows lines near a point of the viewport and keeps them inside it. */
  show(lines: TooltipLine[], x: number, y: number): void {
    this.box.replaceChildren(
      ...lines.map((line) => {
        if ("heading" in line) return h("div", { class: "heading" }, line.heading);
        if ("note" in line) return h("div", { class: "note" }, line.note);
        return h("div", { class: "line" }, h("span", { class: "label" }, line.label), h("span", {}, line.value));
      }),
    );
    this.box.hidden = false;
    const { width, height } = this.box.getBoundingClientRect();
    const left = x + 14 + width > innerWidth ? x - 14 - width : x + 14;
    const top = y + 14 + height > innerHeight ? y - 14 - height : y + 14;
    this.box.style.left = `${Math.max(4, left)}px`;
    this.box.style.top = `${Math.max(4, top)}px`;
  }

  hide(): void {
    this.box.hidden = true;
  }
}
