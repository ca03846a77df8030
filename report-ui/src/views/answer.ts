// The head of the report: command, answer, key figures, doubts.

import type { Answer } from "../derive/answer";
import type { Words } from "../derive/words";
import type { Report } from "../types";
import { h } from "./element";

export function answerView(report: Report, answer: Answer): HTMLElement {
  return h(
    "header",
    { class: "answer", id: "answer" },
    h("p", { class: "quiet kicker" }, "Slowpath report, ", report.generated),
    h("h1", {}, h("bdi", { dir: "ltr", title: report.title }, report.title)),
    h("p", { class: "why" }, ...wordsOf(answer.why)),
    h("p", { class: "tried" }, ...wordsOf(answer.tried)),
    answer.figures.length > 0 &&
      h(
        "dl",
        { class: "figures" },
        ...answer.figures.map((f) => h("div", {}, h("dt", {}, f.label), h("dd", {}, f.value), h("dd", { class: "quiet" }, f.detail))),
      ),
    answer.cautions.length > 0 && h("ul", { class: "cautions", "aria-label": "Doubts" }, ...answer.cautions.map((c) => h("li", {}, c))),
  );
}

/** Sentences with their points marked. */
export function wordsOf(list: Words): (string | HTMLElement)[] {
  return list.map((w) => (typeof w === "string" ? w : h("strong", {}, w.strong)));
}
