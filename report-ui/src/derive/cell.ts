// Cells of evidence tables and subjects: values whose unit stands in their key or their type.

import { bytes, count, duration, inUnit, percent, quantityInterval, quantityValue, significant } from "../format";
import type { Cell, Quantity } from "../types";

export function isQuantity(cell: Cell): cell is Quantity {
  return typeof cell === "object" && cell !== null && !Array.isArray(cell) && typeof cell["value"] === "number" && typeof cell["unit"] === "string" && "low" in cell && "high" in cell;
}

// A map, because a key of unknown origin may end in the name of an object's own method.
const NANOS_PER_SUFFIX = new Map([["ns", 1], ["us", 1e3], ["ms", 1e6], ["s", 1e9]]);

/** The text of a cell; a bare number is read by the unit at the end of its key. */
export function cellText(key: string, cell: Cell): string {
  if (cell === null) return "none";
  if (isQuantity(cell)) {
    const interval = quantityInterval(cell);
    return interval === null ? quantityValue(cell) : `${quantityValue(cell)} (${interval})`;
  }
  if (typeof cell === "boolean") return cell ? "yes" : "no";
  if (Array.isArray(cell)) return cell.map((c) => cellText(key, c)).join(", ");
  if (typeof cell === "object") return JSON.stringify(cell);
  if (typeof cell !== "number") return cell;
  const suffix = suffixOf(key);
  const nanos = NANOS_PER_SUFFIX.get(suffix);
  if (nanos !== undefined) return duration(cell * nanos);
  if (suffix === "bytes" || suffix === "size") return bytes(cell);
  if (suffix === "pages") return inUnit(cell, "pages");
  if (suffix === "ratio") return inUnit(cell, "ratio");
  if (suffix === "share") return percent(cell);
  if (suffix === "percent") return percent(cell / 100);
  if (suffix === "pid" || suffix === "tid" || suffix === "seed") return String(cell);
  return Number.isInteger(cell) ? count(cell) : significant(cell);
}

/** The key as a heading: the unit is in the cells, so its suffix goes. */
export function keyText(key: string): string {
  const suffix = suffixOf(key);
  const unit = NANOS_PER_SUFFIX.has(suffix) || suffix === "percent";
  const base = unit && suffix !== key ? key.slice(0, key.length - suffix.length - 1) : key;
  return base.replace(/_/g, " ");
}

export function cellOrder(cell: Cell): number | string | null {
  if (cell === null) return null;
  if (isQuantity(cell)) return cell.value;
  if (typeof cell === "object") return JSON.stringify(cell);
  return typeof cell === "boolean" ? Number(cell) : cell;
}

function suffixOf(key: string): string {
  return key.slice(key.lastIndexOf("_") + 1);
}
