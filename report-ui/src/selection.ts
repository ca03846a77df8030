// What is selected in one part of the page and filters the others.
//
// Owns telling all parts; each part decides what to show, and what it cannot filter by, it leaves as it is. Moments are ns since the
// begin of the launch. "–": the part in which something is selected stays as it is.
//
// | Selected               | Timeline            | I/O map              | Flame graph          | Time (ledger)       | Findings    |
// |------------------------|---------------------|----------------------|----------------------|---------------------|-------------|
// | span of the timeline   | –                   | process and time     | thread and time      | process and thread  | process     |
// | time of the timeline   | –                   | time                 | time                 | says that it cannot | all         |
// | read of the I/O map    | process and moment  | –                    | process and moment   | process             | process     |
// | box of the flame graph | program             | program              | –                    | program             | program     |
// | bar of the ledger      | process or thread   | process              | process or thread    | –                   | process     |
// | finding                | process, or readers | process, files       | process, or readers  | process, or readers | –           |
// | launch, or its span    | time, or the span   | process and time     | thread and time      | process and thread  | process     |
// | child                  | main thread, time   | process and time     | thread and time      | process and thread  | process     |
//
// A finding about files alone selects the processes that read them. `browser/selection.browser.ts` drives every pair.

export type Origin = "timeline" | "io-map" | "flame-graph" | "findings" | "ledger" | "side-by-side" | "siblings" | "link";

export interface SelectedProcess {
  /** Null where every process of this name is meant. */
  pid: number | null;
  name: string;
}

export interface Selection {
  /** The part that it comes from. */
  origin: Origin;
  /** One sentence; foreign text in it. */
  text: string;
  /** Null for all of the time; a moment where both are one. */
  time: { from: number; to: number } | null;
  /** Null for every process. */
  processes: readonly SelectedProcess[] | null;
  tid: number | null;
  /** Files of the I/O map, by index; null for all. */
  files: ReadonlySet<number> | null;
}

export type Listener = (selection: Selection | null) => void;

export class Selections {
  private readonly listeners: Listener[] = [];
  current: Selection | null = null;

  listen(listener: Listener): void {
    this.listeners.push(listener);
  }

  select(selection: Selection | null): void {
    if (selection === null && this.current === null) return;
    this.current = selection;
    const held = document.activeElement;
    const top = held?.getBoundingClientRect().top ?? 0;
    for (const listener of this.listeners) listener(selection);
    // What is hidden above must not move what the reader has at hand.
    if (held && held !== document.body && held.getClientRects().length > 0) scrollBy(0, held.getBoundingClientRect().top - top);
  }
}

/** Whether something that belongs to this process, by pid or name, is meant. What belongs to none always is. */
export function isOfProcess({ processes }: Selection, pid: number | null, name: string | null): boolean {
  if (!processes) return true;
  return processes.some((wanted) => {
    if (wanted.pid !== null && pid !== null) return wanted.pid === pid;
    return name === null ? pid === null : name === wanted.name;
  });
}
