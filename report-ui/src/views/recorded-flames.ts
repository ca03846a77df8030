// The flame graphs of one recording, or of what is selected of it: colours by file, amounts by share.

import { functionsOf, heaviestFiles, indexTree, type Direction, type FlameFunction, type FlameIndex } from "../derive/flame-tree";
import { inUnit, percent } from "../format";
import type { Selection } from "../selection";
import type { FlameGraph, FlameGraphs, FlameWeight } from "../types";
import { h, isolated, type Child } from "./element";
import { FILE_COLOURS, placeVariable } from "./flame-painter";
import { flameParts } from "./flame-part";
import type { FlameChoice, FlamePicture, FlameSubject } from "./flame-subject";
import { sortableTable } from "./sortable-table";

const WEIGHTS: Record<FlameWeight, { label: string; what: string }> = {
  cpu_samples: { label: "CPU samples", what: "Samples of running threads." },
  off_cpu: { label: "Off-CPU time", what: "Time in which threads did not run, waits for work included." },
  fault_time: { label: "Fault time", what: "Time in page faults whose duration is known." },
  allocated: { label: "Bytes allocated", what: "Bytes by which mmap, mremap and brk let address spaces grow; what is freed is not subtracted." },
};

export function recordedFlames(graphs: FlameGraphs): FlameSubject {
  const partOf = flameParts(graphs);
  const indices = new Map<string, FlameIndex>();
  const graphOf = (choice: FlameChoice): FlameGraph => graphs.graphs.find((g) => g.weight === choice.weight)!;
  const indexOf = (g: FlameGraph, d: Direction): FlameIndex => {
    const key = `${g.weight} ${d}`;
    let known = indices.get(key);
    if (!known) indices.set(key, (known = indexTree(g[d] ?? g.callees ?? { depth: [0], frame: [0], weight: [0], smallest: 0 })));
    return known;
  };
  const partIndex = (g: FlameGraph, d: Direction, selected: Selection | null): FlameIndex => {
    const part = partOf(g, selected);
    return part ? indexTree(part.trees[d]) : indexOf(g, d);
  };
  const share = (weight: number, of: number): string => (of > 0 ? percent(weight / of) : "");
  const nameOf = (frame: number): string => graphs.frames.name[frame]!;
  const fileOf = (frame: number): string => graphs.places[graphs.frames.place[frame]!]!.name;

  function colourKeys(index: FlameIndex, files: readonly number[]): FlamePicture["colourKeys"] {
    const key = (variable: string, text: Child): FlamePicture["colourKeys"][number] => ({ variable, text });
    const used = new Set(index.tree.frame.map((f) => graphs.frames.place[f]!));
    const kinds = new Set([...used].map((p) => graphs.places[p]!.kind));
    const others = [...used].some((p) => graphs.places[p]!.kind === "file" && !files.includes(p));
    return [
      ...files.map((p, rank) => key(placeVariable("file", rank), isolated(graphs.places[p]!.name))),
      ...(others ? [key(placeVariable("file", -1), "other files")] : []),
      ...(kinds.has("kernel") || kinds.has("vdso") ? [key(placeVariable("kernel", -1), "kernel, vdso")] : []),
      ...(kinds.has("generated") ? [key(placeVariable("generated", -1), "generated code")] : []),
      key(placeVariable("process", -1), "processes"),
      ...(kinds.has("folded") || kinds.has("unknown") ? [key(placeVariable("folded", -1), "not shown or not known")] : []),
    ];
  }

  return {
    title: "Flame graph",
    names: graphs,
    choices: graphs.graphs.map((g) => ({ weight: g.weight, label: WEIGHTS[g.weight].label, unit: g.unit, unavailable: g.callees === null ? (g.unavailable ?? { what: "", reason: "not there", remedy: "" }) : null })),
    hint: "below it is what it called, heaviest first",
    controls: () => [],
    picture: (choice, direction, selected) => {
      const graph = graphOf(choice);
      const part = partOf(graph, selected);
      const index = partIndex(graph, direction, selected);
      const [total, whole] = part ? [part.total, part.whole] : [graph.total, "all"];
      const files = heaviestFiles(indexOf(graph, "callees"), graphs, FILE_COLOURS);
      const amount = (weight: number): string => inUnit(weight, graph.unit);
      const ofPlace = graphs.places.map((p, i) => placeVariable(p.kind, files.indexOf(i)));
      return {
        index,
        total,
        whole,
        part: part && part.words,
        what: `${WEIGHTS[graph.weight].what} ${amount(graph.total)} in all; what is below ${amount(index.tree.smallest)} is together in (other).`,
        colour: (node) => ofPlace[graphs.frames.place[index.tree.frame[node]!]!]!,
        colourKeys: colourKeys(index, files),
        lines: (node) => [
          { label: choice.label, value: `${amount(index.tree.weight[node]!)}, ${share(index.tree.weight[node]!, total)} of ${whole}` },
          ...(direction === "callees" ? [{ label: "of its own", value: `${amount(index.own[node]!)}, ${share(index.own[node]!, total)}` }] : []),
        ],
      };
    },
    table: (choice, selected) => {
      const graph = graphOf(choice);
      const part = partOf(graph, selected);
      const all = functionsOf(partIndex(graph, "callees", selected)).filter((f) => graphs.places[graphs.frames.place[f.frame]!]!.kind !== "process");
      const number = (weight: number): Child => [inUnit(weight, graph.unit), h("span", { class: "quiet" }, ` ${share(weight, part ? part.total : graph.total)}`)];
      return sortableTable<FlameFunction>(
        [
          { key: "function", label: "Function", sortBy: (f) => nameOf(f.frame), cell: (f) => isolated(nameOf(f.frame), "flame-name") },
          { key: "file", label: "File", sortBy: (f) => fileOf(f.frame), cell: (f) => isolated(fileOf(f.frame)) },
          { key: "own", label: "Of its own", hint: "Without what it called", numeric: true, sortBy: (f) => f.own, cell: (f) => number(f.own) },
          { key: "all", label: "With what it called", hint: "Each row once, however often it calls itself", numeric: true, sortBy: (f) => f.all, cell: (f) => number(f.all) },
        ],
        all,
        { caption: `The same by function: ${choice.label}${part && part.whole !== "all" ? ", only what is selected" : ""}`, limit: 12, sortedBy: { key: "own", descending: true } },
      );
    },
  };
}
