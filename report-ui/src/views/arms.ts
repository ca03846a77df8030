// The launch arms: a row per arm, all on one time axis, figures beside the picture.
//
// The picture is one SVG in a cell that spans all rows, so that a block can be followed through the
// arms; its rows are read from the table's layout.

import { armLabel, blockSummary, type ArmRow, type ArmsPicture, type Interval } from "../derive/arms";
import { decimalTicks, linearScale, type LinearScale } from "../derive/axis";
import { count, duration, inUnit, percent, quantityInterval, quantityValue, significant } from "../format";
import type { ArmSummary, Quantity, Verdict } from "../types";
import { h, isolated, section, svg, type Child } from "./element";
import type { Tooltip } from "./tooltip";

const ROLE_TEXT = { baseline: "baseline", fix: "fix", sham: "sham control", rival: "rival", warm: "warm control" };
const METRIC_TEXT: Record<string, string> = { wall: "time to ready", cpu: "CPU time", minor_faults: "faults", peak_rss: "peak memory" };
export const DECISION_TEXT = { proved: "proved", withdrawn: "withdrawn", not_shown: "not shown", not_tried: "not tried" };
const OUTCOME_TEXT = { helps: "helps", hurts: "hurts", no_difference: "no difference", inconclusive: "inconclusive", not_testable: "not testable" };

export function armsView(picture: ArmsPicture | null, tooltip: Tooltip): HTMLElement {
  if (!picture || picture.rows.length === 0) {
    return section("arms", "Launches", h("p", { class: "empty" }, "No launches were compared. ", h("code", {}, "slowpath diagnose -- COMMAND"), " runs cold, warm and treated launches in counterbalanced blocks and shows them here."));
  }
  const cell = h("td", { class: "picture", rowspan: picture.rows.length + 1 });
  const rows = picture.rows.map((row, i) => tableRow(row, i === 0 ? cell : null, picture.warm));
  const table = h(
    "table",
    { class: "arms" },
    h("thead", {}, h("tr", {}, ...["Arm", `${picture.what}, one dot a launch`, "Median", picture.warm ? "Ready, faults" : "Read", "Measured change", "Predicted", "Verdict"].map((t, i) => h("th", { scope: "col", class: i > 1 && i < 6 ? "num" : null }, t)))),
    h("tbody", {}, ...rows, h("tr", { class: "axis-row" }, h("td"), h("td", { colspan: 5 }))),
  );
  drawOnLayout(table, cell, rows, picture, tooltip);
  return section(
    "arms",
    "Launches",
    h(
      "p",
      { class: "quiet" },
      `${count(picture.blocks)} blocks, each with one launch of every arm that had not ended. Changes are against the baseline, negative is ${picture.warm ? "less" : "faster"}. Bars are 95 % intervals of the median; a hollow diamond is where the prediction lies. Point at a launch, or use ← and → in the picture, to follow its block.`,
    ),
    h("div", { class: "table-frame", tabindex: 0, role: "region", "aria-label": "Launch arms" }, table),
    discards(picture),
    samples(picture),
  );
}

function tableRow(row: ArmRow, picture: HTMLTableCellElement | null, warm: boolean): HTMLTableRowElement {
  const { arm, verdict } = row;
  const lost = [arm.discarded > 0 && `${count(arm.discarded)} discarded`, arm.failed > 0 && `${count(arm.failed)} failed`].filter(Boolean).join(", ");
  return h(
    "tr",
    { class: `role-${arm.role}` },
    h("th", { scope: "row" }, armHead(arm), h("div", { class: "quiet" }, h("span", { class: "key", "aria-hidden": "true" }), ROLE_TEXT[arm.role] ?? arm.role, ", ", h("span", { class: "unbroken" }, `n = ${row.dots.length}`)), lost ? h("div", { class: "lost" }, lost) : null),
    picture,
    h("td", { class: "num" }, row.shown ? stacked(row.shown, false) : h("span", { class: "quiet" }, "none")),
    h("td", { class: "num" }, warm ? beside(arm) : arm.bytes_read ? inUnit(arm.bytes_read.value, arm.bytes_read.unit) : h("span", { class: "quiet" }, "unknown")),
    h("td", { class: "num change" }, verdict?.measured ? stacked(verdict.measured, true) : h("span", { class: "quiet" }, arm.role === "baseline" ? "reference" : "not compared"), verdict?.against_sham ? againstSham(verdict.against_sham) : null, row.gapRemoved ? h("div", { class: "quiet" }, `${percent(row.gapRemoved.value)} of the gap `, h("span", { class: "unbroken" }, gapInterval(row.gapRemoved))) : null),
    h("td", { class: "num" }, verdict?.predicted ? stacked(verdict.predicted, true) : h("span", { class: "quiet" }, arm.role === "fix" || arm.role === "rival" ? "none" : "")),
    h("td", {}, verdict ? verdictCell(verdict) : h("span", { class: "quiet" }, arm.role === "fix" || arm.role === "rival" ? "not judged" : "")),
  );
}

/** What stands beside the CPU time: time to ready, faults, and the price in memory. */
function beside(arm: ArmSummary): Child {
  const shown: [string, Quantity | null | undefined][] = [["ready", arm.median], ["faults", arm.minor_faults], ["peak", arm.peak_rss]];
  return shown.filter(([, q]) => q).map(([name, q]) => h("div", { title: q ? (quantityInterval(q) ?? "no interval") : null }, h("span", { class: "quiet" }, `${name} `), q ? quantityValue(q) : ""));
}

function armHead(arm: ArmSummary): Child {
  const { name, what } = armLabel(arm);
  return [isolated(name), what ? h("div", { class: "quiet what" }, what) : null];
}

function gapInterval(i: Interval): string {
  return i.low === null || i.high === null ? "" : `(${significant(i.low * 100, 2)} to ${percent(i.high)})`;
}

function stacked(q: Quantity, signed: boolean): Child {
  return [quantityValue(q, signed), h("div", { class: "quiet" }, quantityInterval(q) ?? "no interval")];
}

/** The same change with the sham in place of the baseline: what is left of it is the fix's own. */
function againstSham(q: Quantity): Child {
  return h("div", { class: "quiet", title: "change against the sham: the same wrapper without the fix" }, `against the sham ${quantityValue(q, true)} `, h("span", { class: "unbroken" }, `(${quantityInterval(q) ?? "no interval"})`));
}

function verdictCell(v: Verdict): Child {
  const details = [`${count(v.pairs)} pairs`];
  if (v.discarded > 0) details.push(`${count(v.discarded)} discarded`);
  if (v.minimum_detectable_effect) details.push(`smallest visible effect ${inUnit(Math.abs(v.minimum_detectable_effect.value), v.minimum_detectable_effect.unit)}`);
  const others = (v.beside ?? []).flatMap((b) => (b.change ? [`${METRIC_TEXT[b.metric] ?? b.metric} ${quantityValue(b.change, true)} (${quantityInterval(b.change) ?? "no interval"})`] : []));
  return [h("span", { class: `outcome outcome-${v.outcome}` }, v.decision ? DECISION_TEXT[v.decision] : (OUTCOME_TEXT[v.outcome] ?? v.outcome)), v.reason ? h("span", { class: "quiet" }, `: ${v.reason}`) : null, h("div", { class: "quiet", title: "pairs of launches compared, and the smallest effect that they could show" }, details.join(", ")), ...others.map((text) => h("div", { class: "quiet" }, text))];
}

function discards(picture: ArmsPicture): Child {
  const rows = picture.rows.filter((r) => r.arm.discard_reasons.length > 0);
  if (rows.length === 0) return null;
  return h("details", {}, h("summary", {}, picture.discarded === 1 ? "Why 1 launch was discarded" : `Why ${count(picture.discarded)} launches were discarded`), h("ul", {}, ...rows.flatMap((r) => r.arm.discard_reasons.map((reason) => h("li", {}, isolated(armLabel(r.arm).name), `: ${reason}`)))));
}

/** The raw launch times, for readers who cannot or would rather not use the picture. */
function samples(picture: ArmsPicture): Child {
  const blocks = Array.from({ length: picture.blocks }, (_, b) => b);
  const head = h("tr", {}, h("th", { scope: "col", class: "num" }, "Block"), ...picture.rows.map((r) => h("th", { scope: "col", class: "num" }, isolated(armLabel(r.arm).name))));
  const body = blocks.map((b) => h("tr", {}, h("td", { class: "num" }, count(b + 1)), ...blockSummary(picture, b).map((c) => h("td", { class: "num" }, c.ms === null ? h("span", { class: "quiet" }, c.ended ? "ended" : "none") : duration(c.ms * 1e6)))));
  return h("details", {}, h("summary", {}, "All launch times"), h("div", { class: "table-frame", tabindex: 0, role: "region", "aria-label": "All launch times" }, h("table", {}, h("thead", {}, head), h("tbody", {}, ...body))));
}

function drawOnLayout(table: HTMLElement, cell: HTMLElement, rows: HTMLElement[], picture: ArmsPicture, tooltip: Tooltip): void {
  let drawnFor = "";
  const chart = svg("svg", { class: "arms-picture", tabindex: 0, role: "img", "aria-label": `${picture.what} of every launch, a row per arm` });
  cell.append(chart);
  let selected: number | null = null;
  const redraw = (): void => {
    const width = cell.clientWidth;
    const bands = rows.map((r) => ({ top: r.offsetTop - rows[0]!.offsetTop, height: r.offsetHeight }));
    const key = JSON.stringify([width, bands]);
    if (width === 0 || key === drawnFor) return;
    drawnFor = key;
    draw(chart, picture, { width, height: cell.clientHeight }, bands, select, leave);
  };
  const select = (block: number, x: number, y: number): void => {
    selected = block;
    for (const node of chart.querySelectorAll("[data-block]")) node.classList.toggle("on", node.getAttribute("data-block") === String(block));
    tooltip.show([{ heading: `Block ${block + 1} of ${picture.blocks}` }, ...blockSummary(picture, block).map((c) => ({ label: c.title, value: c.ms === null ? (c.ended ? "the arm had ended" : "no launch counted") : duration(c.ms * 1e6) }))], x, y);
  };
  const leave = (): void => {
    selected = null;
    for (const node of chart.querySelectorAll(".on")) node.classList.remove("on");
    tooltip.hide();
  };
  chart.addEventListener("keydown", (event) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (event.key === "Escape") leave();
    if (step === 0 || picture.blocks === 0) return;
    event.preventDefault();
    const next = selected === null ? (step > 0 ? 0 : picture.blocks - 1) : (selected + step + picture.blocks) % picture.blocks;
    const box = chart.getBoundingClientRect();
    select(next, box.right - 20, box.top + 10);
  });
  chart.addEventListener("blur", leave);
  new ResizeObserver(redraw).observe(table);
}

type Band = { top: number; height: number };

function draw(chart: SVGSVGElement, picture: ArmsPicture, size: { width: number; height: number }, bands: Band[], select: (block: number, x: number, y: number) => void, leave: () => void): void {
  const { width } = size;
  const bottom = bands.reduce((b, r) => Math.max(b, r.top + r.height), 0);
  chart.replaceChildren();
  // Printing lays the table out anew without asking: then the picture stretches with its cell.
  chart.setAttribute("viewBox", `0 0 ${size.width} ${size.height}`);
  chart.setAttribute("preserveAspectRatio", "none");
  const x = linearScale(picture.domain, [12, width - 12]);
  const axis = svg("g", { class: "axis" });
  const { at, step } = decimalTicks(picture.domain[0], picture.domain[1], Math.max(2, width / 90));
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  at.forEach((t, i) => {
    const text = t.toFixed(decimals);
    axis.append(svg("line", { x1: x(t), x2: x(t), y1: 0, y2: bottom }), svg("text", { x: x(t), y: bottom + 15, "text-anchor": "middle" }, i === at.length - 1 ? `${text} ms` : text));
  });
  chart.append(axis);
  const cold = picture.baseline?.median;
  if (cold) chart.append(svg("line", { class: "reference", x1: x(cold.value), x2: x(cold.value), y1: 0, y2: bottom }));
  const paths = svg("g", { class: "blocks" });
  const dots = svg("g", { class: "dots" });
  const lines = new Map<number, string[]>();
  picture.rows.forEach((row, i) => {
    const band = bands[i]!;
    const inner = { top: band.top + 9, height: Math.max(10, band.height - 18) };
    const yOf = (block: number): number => inner.top + (picture.blocks <= 1 ? 0.5 : block / (picture.blocks - 1)) * inner.height;
    const group = svg("g", { class: `role-${row.arm.role}` });
    drawSummary(group, row, x, inner);
    for (const dot of row.dots) {
      const [cx, cy] = [x(dot.ms), yOf(dot.block)];
      const node = svg("circle", { cx, cy, r: 3.2, "data-block": dot.block });
      node.addEventListener("pointerenter", (e) => select(dot.block, e.clientX, e.clientY));
      node.addEventListener("pointerleave", leave);
      group.append(node);
      const points = lines.get(dot.block) ?? [];
      points.push(`${cx},${cy}`);
      lines.set(dot.block, points);
    }
    dots.append(group);
  });
  for (const [block, points] of lines) paths.append(svg("polyline", { points: points.join(" "), "data-block": block }));
  chart.append(paths, dots);
}

function drawSummary(group: SVGGElement, row: ArmRow, x: LinearScale, inner: Band): void {
  const middle = inner.top + inner.height / 2;
  if (row.predictedAt) {
    const px = x(row.predictedAt.value);
    if (row.predictedAt.low !== null && row.predictedAt.high !== null) group.append(svg("line", { class: "predicted", x1: x(row.predictedAt.low), x2: x(row.predictedAt.high), y1: middle, y2: middle }));
    group.append(svg("path", { class: "predicted", d: `M${px} ${middle - 6}l5 6l-5 6l-5 -6z` }, svg("title", {}, `predicted ${duration(row.predictedAt.value * 1e6)}`)));
  }
  if (!row.median) return;
  const { low, high, value } = row.median;
  if (low !== null && high !== null) group.append(svg("rect", { class: "interval", x: x(low), y: inner.top - 3, width: Math.max(1, x(high) - x(low)), height: inner.height + 6 }));
  group.append(svg("line", { class: "median", x1: x(value), x2: x(value), y1: inner.top - 5, y2: inner.top + inner.height + 5 }));
}

