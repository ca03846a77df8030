// What is selected in one part of the page and filters the others.
//
// Owns telling all parts; each part decides what to show. Moments are ns since the begin of the launch.

export interface Selection {
  /** The part that it comes from. */
  origin: "timeline" | "io-map" | "flame-graph" | "findings" | "ledger";
  /** One sentence; foreign text in it. */
  text: string;
  /** Null for all of the time. */
  time: { from: number; to: number } | null;
  /** Null for every process; a pid, and its name where more than one process is meant. */
  process: { pid: number | null; name: string } | null;
  tid: number | null;
  /** A file of the I/O map, by index. */
  file: number | null;
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
export function isOfProcess(selection: Selection, pid: number | null, name: string | null): boolean {
  const wanted = selection.process;
  if (!wanted) return true;
  if (wanted.pid !== null && pid !== null) return wanted.pid === pid;
  return name === null ? pid === null : name === wanted.name;
}
