// The timeline: what every thread did when, with the controls of the picture and the words for what is pointed at.
//
// Owns the section and its state: which lines, which time, what is selected. Leaves pixels to `timeline-painter`, pointer and keys to
// `timeline-input`, and the same as tables to `timeline-tables`.

import { firstAtOrAfter } from "../derive/file-reads";
import { placeText, readPlace, type SelectedPlace } from "../derive/place-in-page";
import { sharesOf, timesBetween } from "../derive/span-shares";
import { exactSpan, spanAt, wakeOf, type Timeline } from "../derive/timeline";
import { BUSIEST, shownRows, threadLabel, type Choice } from "../derive/timeline-rows";
import { stateKinds } from "../derive/timeline-states";
import { count, duration, moment, percent } from "../format";
import { isOfProcess, type Selection, type Selections } from "../selection";
import type { IoMap } from "../types";
import { append, h, isolated, section, type Child } from "./element";
import { askerVariable } from "./palette";
import { listenTo } from "./timeline-input";
import { AXIS, MOST_ARROWS, MOST_JOINTS, paintTimeline, ROW, type ReadTicks, type Row, type TimelineColours } from "./timeline-painter";
import { timelineTables } from "./timeline-tables";
import type { Tooltip, TooltipLine } from "./tooltip";

/** Height of the picture with more rows than fit, in CSS pixels. */
const MOST_HEIGHT = 560;
/** 1 µs: below what a wait takes. */
const MIN_TIME = 1_000;

export interface TimelineView {
  element: HTMLElement;
  /** Paints; to be called once the element is in the page. */
  start: () => void;
}

/** What pointer and keys may do with the picture. */
export interface Handle {
  frame: HTMLElement;
  scroller: HTMLElement;
  left: () => number;
  view: () => { from: number; to: number };
  whole: () => { from: number; to: number };
  setView: (from: number, to: number) => void;
  rowAt: (y: number) => number;
  rows: () => readonly Row[];
  current: () => { line: number; span: number } | null;
  choose: (line: number, span: number) => void;
  chooseTime: (from: number, to: number) => void;
  clear: () => void;
  describe: (row: number, at: number, perPixel: number, x: number, y: number) => void;
  hide: () => void;
}

export function timelineView(timeline: Timeline, map: IoMap | null, selections: Selections, tooltip: Tooltip): TimelineView {
  const { page } = timeline;
  const start = performance.now();
  const shares = sharesOf(timeline);
  performance.measure("slowpath:timeline-sums", { start });
  const kinds = stateKinds(page.states);
  const reads = readTicks(timeline, map);
  const ready = page.milestones.find((m) => m.kind === "ready");
  const whole = { from: Math.min(timeline.from, 0), to: Math.max(timeline.to, timeline.from + MIN_TIME) };
  const isLaunch = ready !== undefined && ready.at_ns > 0;
  // What began before a launch, or follows it, would squeeze it.
  const home = isLaunch ? { from: 0, to: ready.at_ns * 1.5 < whole.to ? ready.at_ns * 1.1 : whole.to } : whole;
  let view = { ...home };
  let choice: Choice = page.threads.length > BUSIEST ? "busiest" : "all";
  let search = "";
  let own: { line: number; span: number } | null = null;
  let foreign: Selection | null = null;
  let rows: Row[] = [];
  let pending = 0;
  let arrows = 0;
  let joints = 0;

  const canvas = h("canvas", { "aria-hidden": "true" });
  const spacer = h("div");
  const scroller = h("div", { class: "timeline-scroller" }, canvas, spacer);
  const box = h("div", { class: "selection", hidden: true });
  const frame = h("div", { class: "plot timeline", tabindex: 0, role: "application", "aria-label": "Timeline of threads", "aria-describedby": "timeline-keys" }, scroller, box);
  const status = h("p", { class: "quiet", role: "status" });
  const chosenText = h("p", { class: "timeline-chosen", role: "status", "aria-live": "polite" });
  const searchInput = h("input", { type: "search", placeholder: "name or number", autocomplete: "off", spellcheck: "false" });
  const reset = h("button", { type: "button", class: "reset", onclick: () => setView(home.from, home.to) }, "Reset zoom");
  const choices: [Choice, string][] = [...(choice === "busiest" ? [["busiest", `the ${BUSIEST} busiest`] as [Choice, string]] : []), ["all", `all ${count(page.threads.length)}`], ...(timeline.path ? [["path", "those on the critical path"] as [Choice, string]] : [])];
  const choiceSelect = h("select", {}, ...choices.map(([value, text]) => h("option", { value }, text)));
  const pathBox = h("input", { type: "checkbox", checked: true, disabled: !timeline.path });
  const arrowBox = h("input", { type: "checkbox", checked: true });
  const tables = timelineTables(timeline, kinds, (line, span) => show(line, span));

  const left = (): number => (frame.clientWidth < 620 ? 104 : 190);

  function paint(): void {
    const width = scroller.clientWidth;
    const context = canvas.getContext("2d");
    if (width === 0 || !context) return;
    const began = performance.now();
    const ratio = Math.min(window.devicePixelRatio || 1, 3);
    const height = AXIS + Math.min(MOST_HEIGHT, Math.max(1, rows.length) * ROW + 4);
    scroller.style.height = canvas.style.height = `${height}px`;
    // With its border.
    frame.style.height = `${height + 2}px`;
    spacer.style.height = `${Math.max(0, AXIS + rows.length * ROW + 4 - height)}px`;
    const [w, hgt] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== w || canvas.height !== hgt) [canvas.width, canvas.height] = [w, hgt];
    const marked = foreign?.time ?? (own ? null : selections.current?.origin === "timeline" ? selections.current.time : null);
    ({ arrows, joints } = paintTimeline(context, { shares, kinds, rows, reads, view, scroll: scroller.scrollTop, left: left(), width, height, ratio, colours: colours(), selected: own, marked, showsPath: pathBox.checked, showsArrows: arrowBox.checked }));
    performance.measure("slowpath:timeline", { start: began, detail: { rows: rows.length } });
  }

  let palette: TimelineColours | null = null;
  const colours = (): TimelineColours => (palette ??= readColours());

  function readColours(): TimelineColours {
    const style = getComputedStyle(document.documentElement);
    const get = (name: string): string => style.getPropertyValue(name).trim();
    return {
      states: kinds.map((k) => get(k.variable) || get("--state-several")),
      askers: (map?.askers ?? []).map((a) => get(askerVariable(a))),
      ground: get("--plot"),
      band: get("--band"),
      text: get("--text"),
      quiet: get("--quiet"),
      line: get("--line"),
      page: get("--ground"),
      accent: get("--path"),
      font: getComputedStyle(document.body).fontFamily,
    };
  }

  function repaintSoon(): void {
    if (pending === 0) {
      pending = requestAnimationFrame(() => {
        pending = 0;
        paint();
        say();
      });
    }
  }

  function say(): void {
    const parts = [`${moment(view.from)} to ${moment(view.to)}.`];
    const threads = rows.filter((r) => r.kind === "thread").length;
    parts.push(search !== "" && threads === 0 ? "No thread has this in its name or number." : `${count(threads)} of ${count(page.threads.length)} threads.`);
    if (arrowBox.checked && arrows > MOST_ARROWS) parts.push(`${count(arrows)} wake-ups: zoom in until they are ${count(MOST_ARROWS)} or fewer to see their arrows.`);
    if (joints > MOST_JOINTS) parts.push("The critical path changes threads too often for its pieces to be joined here: zoom in.");
    status.textContent = parts.join(" ");
    reset.disabled = view.from === home.from && view.to === home.to;
  }

  function arrange(): void {
    const of = foreign;
    // The processes that it concerns, and of them perhaps one thread.
    const only = of && (of.processes || of.tid !== null) ? (p: number, tid: number) => isOfProcess(of, page.processes[p]!.pid, page.processes[p]!.name) && (of.tid === null || of.tid === tid) : null;
    rows = shownRows(timeline, choice, search, only).rows;
    repaintSoon();
  }

  function setView(from: number, to: number): void {
    const size = Math.min(Math.max(to - from, MIN_TIME), whole.to - whole.from);
    const begin = Math.min(Math.max(from, whole.from), whole.to - size);
    view = { from: begin, to: begin + size };
    tooltip.hide();
    repaintSoon();
    keepPlace();
  }

  let keeping = 0;
  function keepPlace(): void {
    clearTimeout(keeping);
    keeping = window.setTimeout(() => {
      const line = own && timeline.lines[own.line]!;
      const thread = line?.thread;
      const isHome = view.from === home.from && view.to === home.to;
      const span = own && thread ? { pid: page.processes[thread.process]!.pid, tid: thread.tid, at: timeline.starts[own.span]! } : null;
      const selected = own ? null : selectedPlace();
      // Another part's address is left alone until there is something to say.
      if (isHome && !span && !selected && search === "" && !location.hash.startsWith("#timeline/")) return;
      history.replaceState(null, "", `#${placeText({ view: isHome ? null : view, span, selected, search })}`);
    }, 150);
  }

  /** As much of what is selected as an address holds. */
  function selectedPlace(): SelectedPlace | null {
    const { current } = selections;
    const one = current?.processes?.length === 1 ? current.processes[0]! : null;
    const pid = one?.pid ?? null;
    const place: SelectedPlace = { time: current?.time ?? null, pid, tid: pid === null ? null : current!.tid, name: pid === null && one ? one.name : null };
    return place.time || pid !== null || place.name ? place : null;
  }

  function selectPlace({ time, pid, tid, name }: SelectedPlace): void {
    if (time && pid === null && name === null) return chooseTime(time.from, time.to);
    const known = name ?? page.processes.find((p) => p.pid === pid)?.name ?? "";
    const who = pid === null ? `processes of ${known}` : `${tid === null ? "" : `thread ${tid} of `}${known} (pid ${pid})`;
    const when = time ? `, ${moment(time.from)} to ${moment(time.to)}` : "";
    selections.select({ origin: "link", text: who + when, time, processes: [{ pid, name: known }], tid, files: null });
  }

  function goToPlace(): boolean {
    const place = readPlace(location.hash);
    if (!place) return false;
    search = searchInput.value = place.search;
    if (place.view) setView(place.view.from, place.view.to);
    const at = place.span;
    const line = at ? timeline.lines.findIndex((l) => l.thread !== null && l.thread.tid === at.tid && page.processes[l.thread.process]!.pid === at.pid && spanAt(timeline, l, at.at) !== null) : -1;
    if (at && line >= 0) show(line, spanAt(timeline, timeline.lines[line]!, at.at)!, place.view === null);
    else if (place.selected) selectPlace(place.selected);
    arrange();
    element.scrollIntoView();
    return true;
  }

  /** Selects a span and brings it into sight. */
  function show(line: number, span: number, zooms = true): void {
    reveal(line, span, zooms);
    choose(line, span);
  }

  function reveal(line: number, span: number, zooms: boolean): void {
    if (!rows.some((r) => r.kind !== "process" && r.index === line)) {
      search = searchInput.value = "";
      foreign = null;
      choice = "all";
      choiceSelect.value = "all";
      rows = shownRows(timeline, choice, search, null).rows;
      paint();
    }
    const [from, to] = [timeline.starts[span]!, timeline.starts[span + 1]!];
    if (zooms) {
      const size = Math.max((to - from) * 6, MIN_TIME * 20);
      setView((from + to) / 2 - size / 2, (from + to) / 2 + size / 2);
    }
    const row = rows.findIndex((r) => r.kind !== "process" && r.index === line);
    const [top, room] = [row * ROW, scroller.clientHeight - AXIS];
    if (top < scroller.scrollTop + ROW || top > scroller.scrollTop + room - 2 * ROW) scroller.scrollTop = Math.max(0, top - room / 2);
  }

  function choose(line: number, span: number): void {
    const { thread } = timeline.lines[line]!;
    const process = thread && page.processes[thread.process]!;
    const [from, to] = [timeline.starts[span]!, timeline.starts[span + 1]!];
    const words = kinds[timeline.states[span]!]!.words;
    const who = thread && process ? `${threadLabel(thread.name, thread.tid)} of ${process.name} (pid ${process.pid})` : (timeline.lines[line]!.device?.name ?? "");
    selections.select({ origin: "timeline", text: `${words}, ${duration(to - from)} at ${moment(from)}, ${who}`, time: { from, to }, processes: process ? [{ pid: process.pid, name: process.name }] : null, tid: thread?.tid ?? null, files: null });
    mark(line, span);
  }

  /** Draws a span as the selected one and says what it was. */
  function mark(line: number, span: number): void {
    own = { line, span };
    foreign = null;
    chosenText.replaceChildren();
    append(chosenText, sentences(line, span).flatMap((s, i) => (i > 0 ? [" ", s] : [s])));
    repaintSoon();
    keepPlace();
  }

  function chooseTime(begin: number, end: number): void {
    const [from, to] = [Math.round(begin), Math.max(Math.round(end), Math.round(begin) + 1)];
    own = null;
    foreign = null;
    chosenText.textContent = "";
    selections.select({ origin: "timeline", text: `${moment(from)} to ${moment(to)}`, time: { from, to }, processes: null, tid: null, files: null });
    repaintSoon();
    keepPlace();
  }

  function clear(): void {
    own = null;
    chosenText.textContent = "";
    selections.select(null);
    keepPlace();
    repaintSoon();
  }

  function owner(line: number): Child[] {
    const { thread, device } = timeline.lines[line]!;
    if (!thread) return [isolated(device!.name)];
    const process = page.processes[thread.process]!;
    return [isolated(threadLabel(thread.name, thread.tid)), " of ", isolated(process.name), ` (pid ${process.pid})`];
  }

  /** What a span was, who ended it, and whether the launch waited for it. */
  function sentences(line: number, span: number): Child[] {
    const [from, to] = [timeline.starts[span]!, timeline.starts[span + 1]!];
    const kind = kinds[timeline.states[span]!]!;
    const wake = timeline.lines[line]!.thread ? wakeOf(timeline, line, span) : null;
    const parts: Child[] = [h("span", {}, h("strong", {}, kind.words), `: ${kind.did}, ${duration(to - from)} from ${moment(from)} on, `, ...owner(line), ".")];
    if (wake !== null) {
      const [waker, at] = [timeline.wakes.waker[wake]!, timeline.wakes.at[wake]!];
      const target = spanAt(timeline, timeline.lines[waker]!, at);
      parts.push(h("span", {}, "Ended by ", target === null ? h("span", {}, ...owner(waker)) : h("button", { type: "button", class: "link", onclick: () => show(waker, target, false) }, ...owner(waker)), ` at ${moment(at)}.`));
    }
    const onPath = timePath(line, from, to);
    if (onPath > 0) parts.push(`On the critical path for ${duration(onPath)}.`);
    return parts;
  }

  function timePath(line: number, from: number, to: number): number {
    const { path } = timeline;
    let sum = 0;
    if (path) for (let i = Math.max(0, firstAtOrAfter(path.from, from) - 1); i < path.from.length && path.from[i]! < to; i++) if (path.thread[i] === line) sum += Math.max(0, Math.min(to, path.to[i]!) - Math.max(from, path.from[i]!));
    return sum;
  }

  function describe(r: number, at: number, perPixel: number, x: number, y: number): void {
    const row = rows[r];
    if (!row) return tooltip.hide();
    const lines: TooltipLine[] = [{ heading: isolated(row.label) }];
    if (row.kind === "process") {
      const near = page.milestones.filter((m) => m.process === row.index && Math.abs(m.at_ns - at) <= 6 * perPixel).slice(0, 4);
      for (const m of near) lines.push({ label: MILESTONES[m.kind], value: m.text === "" ? moment(m.at_ns) : [moment(m.at_ns), ", ", isolated(m.text)] });
      const ticks = reads[row.index]!;
      const number = firstAtOrAfter(ticks.t, at + 2 * perPixel) - firstAtOrAfter(ticks.t, at - 2 * perPixel);
      if (number > 0) lines.push({ label: "reads", value: `${count(number)} insertions into the page cache` });
      return tooltip.show(lines, x, y);
    }
    const line = timeline.lines[row.index]!;
    const span = spanAt(timeline, line, at);
    if (span === null) return tooltip.hide();
    const [from, to] = [timeline.starts[span]!, timeline.starts[span + 1]!];
    if (to - from >= perPixel) {
      const kind = kinds[timeline.states[span]!]!;
      lines.push({ label: kind.words, value: duration(to - from) }, { label: "from", value: moment(from) }, { note: kind.did });
      const wake = line.thread ? wakeOf(timeline, row.index, span) : null;
      if (wake !== null) lines.push({ label: "ended by", value: owner(timeline.wakes.waker[wake]!) });
    } else {
      const time = timesBetween(shares, line, at - perPixel / 2, at + perPixel / 2);
      const all = time.reduce((a, b) => a + b, 0);
      const order = [...time.keys()].filter((s) => time[s]! > 0).sort((a, b) => time[b]! - time[a]!);
      lines.push(...order.slice(0, 6).map((s): TooltipLine => ({ label: kinds[s]!.words, value: percent(time[s]! / all) })), { note: `Several spans in ${duration(perPixel)}: zoom in to see each.` });
    }
    if (timePath(row.index, Math.max(from, at - perPixel), Math.min(to, at + perPixel)) > 0) lines.push({ note: "on the critical path to ready" });
    tooltip.show(lines, x, y);
  }

  selections.listen((selection) => {
    if (selection?.origin === "timeline") return;
    const span = selection && spanOf(selection);
    own = null;
    foreign = span ? null : selection;
    chosenText.textContent = "";
    arrange();
    if (span) {
      reveal(span.line, span.span, true);
      mark(span.line, span.span);
    } else if (selection?.time) bringIntoView(selection.time);
    keepPlace();
  });

  /** The span that another part has selected; null where it is not one. */
  function spanOf({ time, processes, tid }: Selection): { line: number; span: number } | null {
    const pid = processes?.length === 1 ? processes[0]!.pid : null;
    return time && tid !== null && pid !== null ? exactSpan(timeline, pid, tid, time) : null;
  }

  function bringIntoView(time: { from: number; to: number }): void {
    const [size, length] = [view.to - view.from, time.to - time.from];
    const isTooSmall = length > 0 && length * 50 < size;
    if (length > size || isTooSmall) setView(time.from - length * 0.2, time.to + length * 0.2);
    else if (time.to < view.from || time.from > view.to) setView(time.from - size / 2, time.from + size / 2);
  }

  searchInput.addEventListener("input", () => {
    search = searchInput.value;
    scroller.scrollTop = 0;
    arrange();
    keepPlace();
  });
  choiceSelect.addEventListener("change", () => {
    choice = choiceSelect.value as Choice;
    scroller.scrollTop = 0;
    arrange();
  });
  for (const input of [pathBox, arrowBox]) input.addEventListener("change", repaintSoon);
  scroller.addEventListener("scroll", repaintSoon, { passive: true });
  listenTo({ frame, scroller, left, view: () => view, whole: () => whole, setView, rowAt: (y) => Math.floor((y - AXIS + scroller.scrollTop) / ROW), rows: () => rows, current: () => own, choose, chooseTime, clear, describe, hide: () => tooltip.hide() }, box, () => setView(home.from, home.to), (line, span) => show(line, span, false), timeline);

  const used = new Set(page.threads.flatMap((t) => Object.keys(t.times)));
  const key = (k: { words: string; variable: string; did: string }): HTMLElement => {
    const swatch = h("span", { class: "swatch", "aria-hidden": "true" });
    swatch.style.background = `var(${k.variable})`;
    return h("span", { title: k.did }, swatch, " ", k.words);
  };
  const order = kinds.map((k, i) => ({ ...k, name: page.states[i]! })).sort((a, b) => a.rank - b.rank);
  const keys = order.filter((k) => used.has(k.name) || (k.name === "several" && page.finest_ns > 0));
  const deviceKeys = page.devices.length > 0 ? order.filter((k) => ["reading", "writing", "reading_and_writing"].includes(k.name)) : [];
  const element = section(
    "timeline",
    "Timeline",
    h("p", { class: "quiet" }, `What each thread did when, since the begin of the launch${ready ? ` (ready after ${duration(ready.at_ns)})` : ""}. Where several states share a pixel, each has its part of the height. ${timeline.path ? "The line through the threads is the critical path: what the end of the launch waited for, moment by moment. " : ""}Arrows are wake-ups: from the thread that ended a wait to the one that waited.`),
    notes(timeline),
    h("div", { class: "controls" }, h("label", {}, "Threads ", choiceSelect), h("label", {}, "Search ", searchInput), h("label", {}, pathBox, " Critical path"), h("label", {}, arrowBox, " Wake-ups"), reset),
    h("div", { class: "flame-colours" }, ...keys.map(key)),
    h("div", { class: "flame-colours" }, deviceKeys.length > 0 && [h("span", { class: "quiet" }, "Devices:"), ...deviceKeys.map(key)], h("span", { class: "quiet" }, "Row of a process:"), h("span", {}, "▾ made"), h("span", {}, "▸ exec"), h("span", {}, "● first wait"), h("span", {}, "▮ ended"), reads.some((r) => r.t.length > 0) && h("span", {}, "small bars: reads, in the colours of the I/O map")),
    status,
    frame,
    chosenText,
    h("p", { class: "quiet", id: "timeline-keys" }, "Click a span to select it: the I/O map, the flame graph, the ledger and the findings then show what belongs to it. Turn the wheel over the clicked picture to zoom (Ctrl zooms without the click; Shift scrolls the threads). A drag moves the picture, with Shift it selects a time, which the I/O map and the flame graph then show alone. Keys: + and − zoom, left and right move, up and down go to another thread, n and p to the next and previous span, w to the thread that ended the wait, c along the critical path (Shift: back), z zooms to the selected span, r selects the time in view, 0 shows all, Escape clears the selection."),
    tables,
  );
  return {
    element,
    start: () => {
      arrange();
      paint();
      say();
      goToPlace();
      addEventListener("hashchange", goToPlace);
      let width = frame.clientWidth;
      new ResizeObserver(() => {
        if (frame.clientWidth === width) return;
        width = frame.clientWidth;
        paint();
      }).observe(frame);
      const again = (): void => {
        palette = null;
        paint();
      };
      for (const query of ["(prefers-color-scheme: dark)", "print"]) matchMedia(query).addEventListener("change", again);
      for (const event of ["beforeprint", "afterprint"]) addEventListener(event, again);
    },
  };
}

const MILESTONES = { released: "begin of the launch", made: "made", exec: "exec", first_wait: "first wait", ready: "ready", ended: "ended" } as const;

function notes({ page, path }: Timeline): HTMLElement | null {
  const all: string[] = [];
  if (!page.has_waits) all.push("When threads do not run was not recorded (--off-cpu): outside of page faults and memory calls it is not known whether they ran.");
  if (page.finest_ns > 0) all.push(`Spans shorter than ${duration(page.finest_ns)} that follow each other are drawn together; the table below has their times by state.`);
  if (page.other_threads > 0) all.push(`${count(page.other_threads)} less busy threads are left out.`);
  if (page.incomplete_threads > 0) all.push(`${count(page.incomplete_threads)} threads of which begin or end was not recorded are left out.`);
  if (page.wakes.left_out > 0) all.push(`${count(page.wakes.left_out)} wake-ups that ended shorter waits are left out.`);
  if (path && page.path!.left_out > 0) all.push(`${count(page.path!.left_out)} shorter steps of the critical path are left out.`);
  return all.length === 0 ? null : h("ul", { class: "quiet" }, ...all.map((n) => h("li", {}, n)));
}

/** Reads of the I/O map by the process that was running; the map knows pids, and which process had one is a matter of time. */
function readTicks({ page }: Timeline, map: IoMap | null): ReadTicks[] {
  const of = new Map<number, number[]>();
  page.processes.forEach((p, i) => of.set(p.pid, [...(of.get(p.pid) ?? []), i]));
  const found = page.processes.map((): { t: number[]; asker: number[] } => ({ t: [], asker: [] }));
  map?.reads.t_ns.forEach((t, i) => {
    const all = of.get(map.processes[map.reads.process[i]!]!.pid) ?? [];
    const process = all.filter((p) => page.processes[p]!.began_ns <= t).pop() ?? all[0];
    if (process === undefined) return;
    found[process]!.t.push(t);
    found[process]!.asker.push(map.reads.asker[i]!);
  });
  return found.map(({ t, asker }) => ({ t: Float64Array.from(t), asker: Uint8Array.from(asker) }));
}
