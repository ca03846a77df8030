// The data contract of the page: types generated from the schemas of what the Rust side prints, and what the page adds to them.
//
// A type that both documents have is the report's. Reading and checking the JSON is left to `derive/read-report.ts`, every computed
// value to the other files of `derive/`.

import type { HtmlComparison } from "./generated/comparison-page";
import type { Quantity, Report } from "./generated/report";

export type * from "./generated/report";

export const SCHEMA: Report["schema"] = "slowpath-report/2";
export const COMPARISON_SCHEMA: HtmlComparison["schema"] = "slowpath-comparison-page/1";

/** A number of pages, or a page's index in its file; a page has as many bytes as the document with it says (`page_bytes`). */
export type Pages = number;
/** Milliseconds; only in launch samples, named by the suffix `_ms`. */
export type Millis = number;

/** A cell of an evidence row; a quantity keeps its unit, a bare number is read by its key's suffix; others are shown as JSON. */
export type Cell = string | number | boolean | null | Quantity | Cell[] | { [key: string]: Cell };
