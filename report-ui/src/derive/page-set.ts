// The needed pages of one file, for fast questions about runs of pages.
//
// Owns counting needed pages in any run, by binary search in merged runs: memory follows the number
// of runs, not the size of the file, which a sparse file can make as large as it likes. Leaves the
// meaning of "needed" to the recording: a page that a launch without readahead asked for.

import type { Pages } from "../types";

export class PageSet {
  /** Merged runs, ascending: starts, ends (exclusive), and members before each run. */
  private readonly starts: Float64Array;
  private readonly ends: Float64Array;
  private readonly before: Float64Array;

  constructor(runs: readonly (readonly [Pages, Pages])[]) {
    const sorted = isSorted(runs) ? runs : [...runs].sort((a, b) => a[0] - b[0]);
    const starts = new Float64Array(runs.length);
    const ends = new Float64Array(runs.length);
    let n = 0;
    for (const run of sorted) {
      const first = run[0];
      const end = first + run[1];
      if (!(end > first)) continue;
      if (n > 0 && first <= ends[n - 1]!) ends[n - 1] = Math.max(ends[n - 1]!, end);
      else {
        starts[n] = first;
        ends[n++] = end;
      }
    }
    this.starts = starts.subarray(0, n);
    this.ends = ends.subarray(0, n);
    this.before = new Float64Array(n);
    for (let i = 1; i < n; i++) this.before[i] = this.before[i - 1]! + ends[i - 1]! - starts[i - 1]!;
  }

  /** Members among the pages [from, to). */
  countIn(from: Pages, to: Pages): number {
    return to > from ? this.countBelow(to) - this.countBelow(from) : 0;
  }

  has(page: Pages): boolean {
    return this.countIn(page, page + 1) === 1;
  }

  private countBelow(page: Pages): number {
    let low = 0;
    let high = this.starts.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.starts[middle]! < page) low = middle + 1;
      else high = middle;
    }
    if (low === 0) return 0;
    const run = low - 1;
    return this.before[run]! + Math.min(page, this.ends[run]!) - this.starts[run]!;
  }
}

/** The recorder writes runs in order; sorting tens of thousands again would be felt. */
function isSorted(runs: readonly (readonly [Pages, Pages])[]): boolean {
  for (let i = 1; i < runs.length; i++) if (runs[i]![0] < runs[i - 1]![0]) return false;
  return true;
}
