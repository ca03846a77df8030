// Colours of the page that the canvas needs, read from the style sheet.
//
// The askers' colours are those of Okabe and Ito, which people with the common kinds of colour
// blindness tell apart; needed and wasted differ by texture, never by colour alone.

const ASKER_VARIABLES = new Map([
  ["fault", "--asker-fault"],
  ["read", "--asker-read"],
  ["readahead", "--asker-readahead"],
  ["advice", "--asker-advice"],
  ["exec", "--asker-exec"],
  ["metadata", "--asker-metadata"],
]);
const UNKNOWN_ASKER = "--asker-other";

export interface Palette {
  plot: string;
  plotAlternate: string;
  band: string;
  bandAlternate: string;
  text: string;
  quiet: string;
  line: string;
  needed: string;
  /** By index into the map's askers. */
  askers: string[];
  font: string;
}

export function askerVariable(name: string): string {
  return ASKER_VARIABLES.get(name) ?? UNKNOWN_ASKER;
}

export function readPalette(askers: readonly string[]): Palette {
  const style = getComputedStyle(document.documentElement);
  const get = (name: string): string => style.getPropertyValue(name).trim();
  return {
    plot: get("--plot"),
    plotAlternate: get("--plot-alternate"),
    band: get("--band"),
    bandAlternate: get("--band-alternate"),
    text: get("--text"),
    quiet: get("--quiet"),
    line: get("--line"),
    needed: get("--needed"),
    askers: askers.map((a) => get(askerVariable(a))),
    font: getComputedStyle(document.body).fontFamily,
  };
}

/** `#rrggbb` as one pixel of an ImageData seen as 32-bit words (little-endian: alpha, blue, green, red). */
export function pixelOf(hex: string): number {
  const rgb = Number.parseInt(hex.slice(1), 16);
  return ((255 << 24) | ((rgb & 0xff) << 16) | (rgb & 0xff00) | (rgb >> 16)) >>> 0;
}
