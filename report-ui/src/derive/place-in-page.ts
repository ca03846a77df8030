// What is selected and in view <-> the fragment of the page's address, so that a link leads back to it.
//
// Owns the text form, which strangers may write: only numbers and a search text come out of it, and nothing else is believed.

export interface PlaceInPage {
  /** Ns since the begin of the launch. */
  view: { from: number; to: number } | null;
  /** A thread, and a moment in one of its spans. */
  span: { pid: number; tid: number; at: number } | null;
  /** What else is selected. */
  selected: SelectedPlace | null;
  search: string;
}

/** A time, and a process by its number or its name; of a process perhaps one thread. */
export interface SelectedPlace {
  time: { from: number; to: number } | null;
  pid: number | null;
  tid: number | null;
  name: string | null;
}

const PREFIX = "timeline/";
const LONGEST_SEARCH = 200;

/** Half of a pair of surrogates is no text, and an error. */
function encoded(text: string): string {
  return encodeURIComponent(text.slice(0, LONGEST_SEARCH).replace(/[\ud800-\udfff]/gu, ""));
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text).slice(0, LONGEST_SEARCH);
  } catch {
    return "";
  }
}

export function placeText({ view, span, selected, search }: PlaceInPage): string {
  const parts: string[] = [];
  if (view) parts.push(`view=${Math.round(view.from)}..${Math.round(view.to)}`);
  if (span) parts.push(`span=${span.pid}.${span.tid}@${Math.round(span.at)}`);
  if (selected?.time) parts.push(`time=${Math.round(selected.time.from)}..${Math.round(selected.time.to)}`);
  if (selected && selected.pid !== null) parts.push(`of=${selected.pid}${selected.tid === null ? "" : `.${selected.tid}`}`);
  else if (selected?.name) parts.push(`program=${encoded(selected.name)}`);
  const found = encoded(search);
  if (found !== "") parts.push(`find=${found}`);
  return parts.length === 0 ? "timeline" : PREFIX + parts.join("&");
}

/** Null for a fragment that is none of the timeline's. */
export function readPlace(fragment: string): PlaceInPage | null {
  const text = fragment.replace(/^#/, "");
  if (!text.startsWith(PREFIX)) return null;
  const place: PlaceInPage = { view: null, span: null, selected: null, search: "" };
  const selected: SelectedPlace = { time: null, pid: null, tid: null, name: null };
  for (const part of text.slice(PREFIX.length).split("&")) {
    const view = /^view=(-?\d{1,16})\.\.(-?\d{1,16})$/.exec(part);
    if (view && Number(view[1]) < Number(view[2])) place.view = { from: Number(view[1]), to: Number(view[2]) };
    const span = /^span=(\d{1,10})\.(\d{1,10})@(-?\d{1,16})$/.exec(part);
    if (span) place.span = { pid: Number(span[1]), tid: Number(span[2]), at: Number(span[3]) };
    const time = /^time=(-?\d{1,16})\.\.(-?\d{1,16})$/.exec(part);
    if (time && Number(time[1]) <= Number(time[2])) selected.time = { from: Number(time[1]), to: Number(time[2]) };
    const of = /^of=(\d{1,10})(?:\.(\d{1,10}))?$/.exec(part);
    if (of) [selected.pid, selected.tid] = [Number(of[1]), of[2] === undefined ? null : Number(of[2])];
    if (part.startsWith("program=")) selected.name = decoded(part.slice(8)) || null;
    if (part.startsWith("find=")) place.search = decoded(part.slice(5));
  }
  if (selected.time || selected.pid !== null || selected.name !== null) place.selected = selected;
  return place;
}

/** What is chosen among launches side by side: a group, and a launch that is open; by number, null for none. */
export interface LaunchesPlace {
  group: number | null;
  launch: number | null;
}

export function launchesPlaceText({ group, launch }: LaunchesPlace): string {
  const parts = [...(group === null ? [] : [`of=${group}`]), ...(launch === null ? [] : [`launch=${launch}`])];
  return parts.length === 0 ? "side-by-side" : `side-by-side/${parts.join("&")}`;
}

/** Null for a fragment that is none of the launches'. */
export function readLaunchesPlace(fragment: string): LaunchesPlace | null {
  const found = /^#?side-by-side\/(.*)$/.exec(fragment);
  if (!found) return null;
  const number = (name: string): number | null => {
    const part = found[1]!.split("&").find((p) => p.startsWith(`${name}=`))?.slice(name.length + 1) ?? "";
    return /^\d{1,4}$/.test(part) ? Number(part) : null;
  };
  return { group: number("of"), launch: number("launch") };
}
