// What is selected, at the foot of the window, with the button that ends it.

import type { Origin, Selections } from "../selection";
import { h } from "./element";

const ORIGINS: Record<Origin, string> = { timeline: "in the timeline", "io-map": "in the I/O map", "flame-graph": "in the flame graph", findings: "in the findings", ledger: "in the time", "side-by-side": "in the launches side by side", siblings: "in the children side by side", link: "by the link" };

export function selectionBar(selections: Selections): HTMLElement {
  const text = h("bdi", { dir: "ltr" });
  const from = h("span", { class: "quiet" });
  const bar = h("div", { class: "selection-bar", role: "region", "aria-label": "Selection", hidden: true }, h("span", {}, h("strong", {}, "Selected: "), text), from, h("a", { href: "#timeline" }, "Timeline"), h("button", { type: "button", class: "reset", onclick: () => selections.select(null) }, "Clear"));
  selections.listen((selection) => {
    bar.hidden = selection === null;
    if (!selection) return;
    text.replaceChildren(h("span", {}, selection.text));
    from.textContent = `${ORIGINS[selection.origin]}; other parts show what belongs to it`;
  });
  return bar;
}
