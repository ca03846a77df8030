// What of launches and children side by side can be selected in the timeline of the page, which is that of one launch.

import { launchNames } from "../derive/side-by-side";
import { longestOnPath, type PathOwner } from "../derive/path-spans";
import { partWords, type BarPart } from "../derive/ledger-bars";
import type { Timeline } from "../derive/timeline";
import { threadLabel } from "../derive/timeline-rows";
import { duration, moment } from "../format";
import type { Selections } from "../selection";
import type { SideBySide, SiblingStart } from "../types";

type Select = () => void;

export interface LaunchSelector {
  /** All of the launch, by its index; null for one whose timeline is not on the page. */
  launch: (index: number) => Select | null;
  /** The longest span of a category on the critical path of the shown launch, of these threads or of all. */
  span: (part: BarPart, owner: PathOwner | null) => Select | null;
}

export function launchSelector({ launches }: SideBySide, timeline: Timeline, selections: Selections): LaunchSelector {
  const { page } = timeline;
  const longest = longestOnPath(timeline);
  const names = launchNames(launches);
  return {
    launch: (index) => {
      const { is_shown, time_ns } = launches[index]!;
      const from = page.path?.from_ns ?? 0;
      return is_shown ? () => selections.select({ origin: "side-by-side", text: `launch ${names[index]!}, ${duration(time_ns)}`, time: { from, to: from + time_ns }, processes: null, tid: null, files: null }) : null;
    },
    span: (part, owner) => {
      const found = longest(part, owner);
      const thread = found && page.threads[found.line];
      if (!found || !thread) return null;
      const { from, to } = found;
      const { name, pid } = page.processes[thread.process]!;
      const text = `longest on the critical path: ${partWords(part)}, ${duration(to - from)} at ${moment(from)}, ${threadLabel(thread.name, thread.tid)} of ${name} (pid ${pid})`;
      return () => selections.select({ origin: "side-by-side", text, time: { from, to }, processes: [{ pid, name }], tid: thread.tid, files: null });
    },
  };
}

/** Selects the start of a child: what its main thread did from its fork on. */
export function selectChild(selections: Selections, kind: string, { pid, forked_ns, time_ns }: SiblingStart): void {
  const time = { from: forked_ns, to: forked_ns + time_ns };
  selections.select({ origin: "siblings", text: `start of ${kind} (pid ${pid}), ${duration(time_ns)} at ${moment(forked_ns)}`, time, processes: [{ pid, name: kind }], tid: pid, files: null });
}
