// What the states of the timeline are called, in which order they are stacked, and which colour they have.

import { CATEGORIES, ORDER } from "./ledger-bars";
import type { Category } from "../types";

export interface StateKind {
  words: string;
  did: string;
  /** Of the style sheet. */
  variable: string;
  /** From the bottom of a pixel that has several. */
  rank: number;
}

const OWN: ReadonlyMap<string, Omit<StateKind, "rank">> = new Map([
  ["running", { words: "running", did: "ran outside of page faults and recorded memory calls: user and kernel time, what a hypervisor took, and what is unexplained", variable: "--ledger-user" }],
  ["not_recorded", { words: "not recorded", did: "ran or waited: it was not recorded when threads do not run (--off-cpu)", variable: "--state-not-recorded" }],
  ["several", { words: "several, short", did: "was in several states, each too short to be kept on its own", variable: "--state-several" }],
  ["idle", { words: "idle", did: "had no request", variable: "--state-idle" }],
  ["reading", { words: "reading", did: "had reads in flight", variable: "--asker-read" }],
  ["writing", { words: "writing", did: "had writes in flight", variable: "--state-writing" }],
  ["reading_and_writing", { words: "reading and writing", did: "had reads and writes in flight", variable: "--state-reading-and-writing" }],
]);

/** By index, as spans name them. */
export function stateKinds(names: readonly string[]): StateKind[] {
  const order = [...OWN.keys(), ...ORDER] as string[];
  return names.map((name) => {
    const own = OWN.get(name);
    const category = CATEGORIES.get(name as Category);
    const rank = order.indexOf(name);
    if (own) return { ...own, rank };
    return { words: category?.words ?? name, did: category?.did ?? "", variable: `--ledger-${name.replaceAll("_", "-")}`, rank: rank < 0 ? order.length : rank };
  });
}
