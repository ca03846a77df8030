// What is selected, at the foot of the window, with the button that ends it.

import type { Selections } from "../selection";
import { h } from "./element";

const ORIGINS = { timeline: "timeline", "io-map": "I/O map", "flame-graph": "flame graph", findings: "findings", ledger: "time" } as const;

export function selectionBar(selections: Selections): HTMLElement {
  const text = h("bdi", { dir: "ltr" });
  const from = h("span", { class: "quiet" });
  const bar = h("div", { class: "selection-bar", role: "region", "aria-label": "Selection", hidden: true }, h("span", {}, h("strong", {}, "Selected: "), text), from, h("a", { href: "#timeline" }, "Timeline"), h("button", { type: "button", class: "reset", onclick: () => selections.select(null) }, "Clear"));
  selections.listen((selection) => {
    bar.hidden = selection === null;
    if (!selection) return;
    text.replaceChildren(h("span", {}, selection.text));
    from.textContent = `in the ${ORIGINS[selection.origin]}; other parts show what belongs to it`;
  });
  return bar;
}
