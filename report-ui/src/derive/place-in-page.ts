// What is selected and in view <-> the fragment of the page's address, so that a link leads back to it.
//
// Owns the text form, which strangers may write: only numbers and a search text come out of it, and nothing else is believed.

export interface PlaceInPage {
  /** Ns since the begin of the launch. */
  view: { from: number; to: number } | null;
  /** A thread, and a moment in one of its spans. */
  span: { pid: number; tid: number; at: number } | null;
  search: string;
}

const PREFIX = "timeline/";
const LONGEST_SEARCH = 200;

export function placeText({ view, span, search }: PlaceInPage): string {
  const parts: string[] = [];
  if (view) parts.push(`view=${Math.round(view.from)}..${Math.round(view.to)}`);
  if (span) parts.push(`span=${span.pid}.${span.tid}@${Math.round(span.at)}`);
  // Half of a pair of surrogates is no text, and an error.
  const found = search.slice(0, LONGEST_SEARCH).replace(/[\ud800-\udfff]/gu, "");
  if (found !== "") parts.push(`find=${encodeURIComponent(found)}`);
  return parts.length === 0 ? "timeline" : PREFIX + parts.join("&");
}

/** Null for a fragment that is none of the timeline's. */
export function readPlace(fragment: string): PlaceInPage | null {
  const text = fragment.replace(/^#/, "");
  if (!text.startsWith(PREFIX)) return null;
  const place: PlaceInPage = { view: null, span: null, search: "" };
  for (const part of text.slice(PREFIX.length).split("&")) {
    const view = /^view=(-?\d{1,16})\.\.(-?\d{1,16})$/.exec(part);
    if (view && Number(view[1]) < Number(view[2])) place.view = { from: Number(view[1]), to: Number(view[2]) };
    const span = /^span=(\d{1,10})\.(\d{1,10})@(-?\d{1,16})$/.exec(part);
    if (span) place.span = { pid: Number(span[1]), tid: Number(span[2]), at: Number(span[3]) };
    if (part.startsWith("find=")) {
      try {
        place.search = decodeURIComponent(part.slice(5)).slice(0, LONGEST_SEARCH);
      } catch {
        // No text: nothing is searched for.
      }
    }
  }
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
