// The flame graphs of two sets of recordings laid over each other: widths of one side, colours by change.

import type { DifferentialFlames, DifferentialGraph, DifferentialTree } from "../generated/comparison-page";
import { change, chanceOf, colourOf, differences, functionDifferences, largestChange, onlyThere, sideTree, STEP_FROM, STEPS, stepOf, type Differences, type FunctionDifference, type Of, type Side } from "../derive/differential";
import { indexTree, ROOT, type Direction } from "../derive/flame-tree";
import { inUnit, percent } from "../format";
import type { FlameWeight } from "../types";
import { h, isolated, type Child } from "./element";
import type { FlameChoice, FlamePicture, FlameSubject } from "./flame-subject";
import { sortableTable, type Column } from "./sortable-table";
import type { TooltipLine } from "./tooltip";

const WEIGHTS: Record<FlameWeight, { label: string; what: string }> = {
  cpu_samples: { label: "CPU time", what: "Time that samples of running threads stand for." },
  off_cpu: { label: "Off-CPU time", what: "Time in which threads did not run, waits for work included." },
  fault_time: { label: "Fault time", what: "Time in page faults whose duration is known." },
  allocated: { label: "Bytes allocated", what: "Bytes by which mmap, mremap and brk let address spaces grow, but for reservations; what is freed is not subtracted." },
};

/** The custom property of a step; beyond none on either side. */
export function stepVariable(step: number): string {
  return step === 0 ? "--diff-same" : `--diff-${step < 0 ? "less" : "more"}-${Math.min(Math.abs(step), STEPS)}`;
}
const CHANCE = "--diff-chance";

/** `per` is what figures are those of. */
export function differentialFlames(flames: DifferentialFlames, per: "recording" | "second"): FlameSubject {
  let widths: Side = "after";
  let chosen: Of = "own";
  const known = new Map<DifferentialTree, Differences>();
  const graphOf = (choice: FlameChoice): DifferentialGraph => flames.graphs.find((g) => g.weight === choice.weight)!;
  const differencesOf = (graph: DifferentialGraph, tree: DifferentialTree): Differences => {
    let d = known.get(tree);
    if (!d) known.set(tree, (d = differences(graph, tree)));
    return d;
  };
  const nameOf = (frame: number): string => flames.frames.name[frame]!;
  const placeOf = (frame: number): DifferentialFlames["places"][number] => flames.places[flames.frames.place[frame]!]!;
  const unitOf = (graph: DifferentialGraph) => (value: number): string => inUnit(value, graph.unit) + (per === "second" ? "/s" : "");

  function picture(choice: FlameChoice, direction: Direction): FlamePicture {
    const graph = graphOf(choice);
    const tree = graph[direction]!;
    const d = differencesOf(graph, tree);
    const side = sideTree(tree, d[widths]);
    const index = indexTree(side.tree);
    const of = colourOf(direction, chosen);
    const largest = largestChange(d, of);
    const chance = chanceOf(tree, of);
    const amount = unitOf(graph);
    const changed = (before: number, after: number): string => changeText(before, after, amount);
    const colour = (node: number): string => {
      const both = side.nodes[node]!;
      const step = stepOf(change(d, both, of), largest);
      return step !== 0 && chance?.[both] ? CHANCE : stepVariable(step);
    };
    const other: Side = widths === "after" ? "before" : "after";
    const only = onlyThere(tree, d[other], d[widths]);
    const gone = only > 0 ? ` ${amount(only)} of what was ${widths === "after" ? "before are gone" : "not there before are new"}, and have no width here: choose the widths of ${other}.` : "";
    return {
      index,
      total: d[widths][ROOT]!,
      whole: "all",
      part: null,
      what: `${WEIGHTS[graph.weight].what} ${amount(d.before[ROOT]!)} before, ${amount(d.after[ROOT]!)} after: ${changed(d.before[ROOT]!, d.after[ROOT]!)}.${gone} What has less than ${percent(tree.smallest_share)} of all is together in (other).`,
      colour,
      colourKeys: colourKeys(largest, chance !== null, amount),
      lines: (node) => lines(d, side.nodes[node]!, choice, direction, chance, of, changed),
    };
  }

  function lines(d: Differences, node: number, choice: FlameChoice, direction: Direction, chance: Uint8Array | null, of: Of, changed: (before: number, after: number) => string): TooltipLine[] {
    const amount = unitOf(graphOf(choice));
    const [before, after, ownBefore, ownAfter] = [d.before[node]!, d.after[node]!, d.ownBefore[node]!, d.ownAfter[node]!];
    return [
      { label: `${choice.label} before`, value: amount(before) },
      { label: "after", value: amount(after) },
      { label: "change", value: changed(before, after) },
      ...(direction === "callees" ? [{ label: "of its own", value: `${amount(ownBefore)} before, ${amount(ownAfter)} after: ${changed(ownBefore, ownAfter)}` }] : []),
      ...(chance?.[node] ? [{ note: `The 95 % interval of ${of === "own" ? "the change of its own" : "the change"} holds zero.` }] : []),
    ];
  }

  function table(choice: FlameChoice): HTMLElement {
    const graph = graphOf(choice);
    const tree = graph.callees!;
    const amount = unitOf(graph);
    const rows = functionDifferences(tree, differencesOf(graph, tree)).filter((f) => !["process", "whole"].includes(placeOf(f.frame).kind));
    const figure = (key: keyof FunctionDifference, label: string, hint: string, extra = false): Column<FunctionDifference> => ({ key, label, hint, extra, numeric: true, sortBy: (f) => f[key], cell: (f) => amount(f[key]) });
    const changed = (key: string, label: string, of: (f: FunctionDifference) => [number, number], extra = false): Column<FunctionDifference> => ({ key, label, extra, numeric: true, sortBy: (f) => of(f)[1] - of(f)[0], cell: (f) => changeText(...of(f), amount) });
    return sortableTable<FunctionDifference>(
      [
        { key: "function", label: "Function", sortBy: (f) => nameOf(f.frame), cell: (f) => isolated(nameOf(f.frame), "flame-name") },
        { key: "file", label: "File", sortBy: (f) => placeOf(f.frame).name, cell: (f) => isolated(placeOf(f.frame).name) },
        figure("ownBefore", "Own before", "Without what it called"),
        figure("ownAfter", "Own after", "Without what it called"),
        changed("own", "Change of its own", (f) => [f.ownBefore, f.ownAfter]),
        figure("allBefore", "With what it called, before", "Each row once, however often it calls itself", true),
        figure("allAfter", "With what it called, after", "Each row once, however often it calls itself", true),
        changed("all", "Change with what it called", (f) => [f.allBefore, f.allAfter], true),
      ],
      rows,
      { caption: `The same by function, the largest changes of their own first: ${choice.label}`, limit: 12 },
    );
  }

  function select<T extends string>(label: string, values: readonly (readonly [T, string])[], taken: (value: T) => void): HTMLElement {
    const element = h("select", {}, ...values.map(([value, text]) => h("option", { value }, text)));
    element.addEventListener("change", () => taken(element.value as T));
    return h("label", {}, `${label} `, element);
  }

  return {
    title: "Differential flame graph",
    names: flames,
    choices: flames.graphs.map((g) => ({ weight: g.weight, label: WEIGHTS[g.weight].label, unit: g.unit, unavailable: g.callees && g.callers ? null : (g.unavailable ?? { what: "", reason: "not there", remedy: "" }) })),
    hint: "below it is what it called, in the same order for both widths. Its colour tells the change, after minus before, as in Brendan Gregg's differential flame graphs: red for more, blue for less, strongest for the largest change of any box; of an inverted graph always with all that the box holds. Figures are those of one " + per + ": nothing else makes the sides equal",
    picture,
    table,
    controls: (redraw) => [
      select<Side>("Widths", [["after", "as after"], ["before", "as before: shows what is gone"]], (value) => ((widths = value), redraw())),
      select<Of>("Colour", [["own", "change of its own"], ["all", "change with what it called"]], (value) => ((chosen = value), redraw())),
    ],
  };
}

/** The difference, and what it is of what was before. */
function changeText(before: number, after: number, amount: (value: number) => string): string {
  const difference = after - before;
  const value = (difference > 0 ? "+" : "") + amount(difference);
  if (before === 0) return after === 0 ? "none" : `${value} (new)`;
  return after === 0 ? `${value} (gone)` : `${value} (${difference > 0 ? "+" : ""}${percent(difference / before)})`;
}

function colourKeys(largest: number, hasChance: boolean, amount: (value: number) => string): { variable: string; text: Child }[] {
  const steps = Array.from({ length: STEPS }, (_, i) => i + 1);
  const from = (step: number): string => amount(STEP_FROM[step - 1]! * largest);
  if (largest <= 0) return [{ variable: stepVariable(0), text: "no change" }];
  return [
    ...[...steps].reverse().map((s) => ({ variable: stepVariable(-s), text: s === STEPS ? `less by ${from(s)} or more` : `by ${from(s)}` })),
    { variable: stepVariable(0), text: "as good as no change" },
    ...steps.map((s) => ({ variable: stepVariable(s), text: s === STEPS ? `more by ${from(s)} or more` : `by ${from(s)}` })),
    ...(hasChance ? [{ variable: CHANCE, text: "may be chance: the 95 % interval holds zero" }] : []),
  ];
}
