// Sentences of the report as data: text with the points marked, and the text of an interval.

import { quantityInterval } from "../format";
import type { Quantity } from "../types";

/** Text, some of it marked as the point of its sentence. */
export type Words = (string | { strong: string })[];

export const strong = (text: string): { strong: string } => ({ strong: text });

/** The interval in words, also where there is none. */
export function interval(q: Quantity): string {
  const text = quantityInterval(q);
  return text === null ? "no interval" : `95 % interval ${text}`;
}
