// Numbers to text, always with their unit.
//
// Owns rounding and the choice of unit. Three significant digits unless a value is a whole number;
// binary multiples for bytes (1 MiB = 1,048,576 bytes); a true minus sign.

import type { Bytes, Nanos, Quantity, Unit } from "./types";

const MINUS = "\u2212";
const NO_BREAK = "\u00a0";

/** Digits for three significant figures, with thousands separated by a comma. */
export function significant(value: number, digits = 3): string {
  if (!Number.isFinite(value)) return "unknown";
  // Exact values carry no false decimals: 4 KiB, not 4.00 KiB.
  if (Number.isInteger(value)) return count(value);
  const magnitude = Math.floor(Math.log10(Math.abs(value)));
  const decimals = Math.min(Math.max(digits - 1 - magnitude, 0), 6);
  const text = Math.abs(value).toFixed(decimals);
  const [whole = "0", fraction] = text.split(".");
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  const trimmed = fraction && Math.abs(value) < 1 ? fraction.replace(/0+$/, "") : fraction;
  const sign = value < 0 && Number(text) !== 0 ? MINUS : "";
  return sign + (trimmed ? `${grouped}.${trimmed}` : grouped);
}

/** A whole number with thousands separated. */
export function count(value: number): string {
  if (!Number.isFinite(value)) return "unknown";
  const whole = Math.round(value);
  return (whole < 0 ? MINUS : "") + String(Math.abs(whole)).replace(/\B(?=(\d{3})+$)/g, ",");
}

interface Scale {
  divisor: number;
  name: string;
}

const TIME: Scale[] = [
  { divisor: 1e9, name: "s" },
  { divisor: 1e6, name: "ms" },
  { divisor: 1e3, name: "µs" },
  { divisor: 1, name: "ns" },
];
const SIZE: Scale[] = [
  { divisor: 2 ** 30, name: "GiB" },
  { divisor: 2 ** 20, name: "MiB" },
  { divisor: 2 ** 10, name: "KiB" },
  { divisor: 1, name: "B" },
];
const NANOS_PER: Partial<Record<Unit, number>> = { ns: 1, us: 1e3, ms: 1e6, s: 1e9 };

function scaleFor(scales: Scale[], magnitude: number, from: number): Scale {
  return scales.find((s) => magnitude >= s.divisor * from) ?? scales[scales.length - 1]!;
}

/** Milliseconds stay milliseconds up to 10 s, because launches are compared in them. */
function timeScale(magnitude: Nanos): Scale {
  if (magnitude === 0) return TIME[1]!;
  return magnitude >= 1e10 ? TIME[0]! : scaleFor(TIME.slice(1), magnitude, 1);
}

export function duration(ns: Nanos): string {
  const scale = timeScale(Math.abs(ns));
  return `${significant(ns / scale.divisor)}${NO_BREAK}${scale.name}`;
}

/** A time on the axis: fixed to the precision of `step`, so that neighbouring labels differ. */
export function timeOnAxis(ns: Nanos, step: Nanos): string {
  const scale = timeScale(Math.max(step, Math.abs(ns)));
  const decimals = Math.max(0, Math.ceil(-Math.log10(step / scale.divisor) - 1e-9));
  return `${(ns / scale.divisor).toFixed(Math.min(decimals, 6))}${NO_BREAK}${scale.name}`;
}

/** A moment to the microsecond, without zeros that say nothing. */
export function moment(ns: Nanos): string {
  return ns === 0 ? duration(0) : timeOnAxis(ns, 1_000).replace(/\.0+(?=\u00a0)|(\.\d*?)0+(?=\u00a0)/, "$1");
}

export function bytes(n: Bytes): string {
  const scale = scaleFor(SIZE, Math.abs(n), 1);
  return `${scale.divisor === 1 ? count(n) : significant(n / scale.divisor)}${NO_BREAK}${scale.name}`;
}

export function sizeOnAxis(n: Bytes, step: Bytes): string {
  const scale = scaleFor(SIZE, Math.max(step, Math.abs(n)), 1);
  const decimals = Math.max(0, Math.ceil(-Math.log10(step / scale.divisor) - 1e-9));
  return `${(n / scale.divisor).toFixed(Math.min(decimals, 4))}${NO_BREAK}${scale.name}`;
}

export function percent(share: number): string {
  const p = share * 100;
  const text = p !== 0 && Math.abs(p) < 9.95 ? significant(p, 2) : count(p);
  return `${text}${NO_BREAK}%`;
}

/** The text of one number in a quantity's unit, without its interval. */
export function inUnit(value: number, unit: Unit): string {
  if (!Number.isFinite(value)) return "unknown";
  // Launches are compared in ms: +0.6 ms beside −14 to 15 ms, not +600 µs.
  if (unit === "ms" && (value === 0 || (Math.abs(value) >= 0.01 && Math.abs(value) < 10_000))) return `${significant(value)}${NO_BREAK}ms`;
  const nanos = NANOS_PER[unit];
  if (nanos !== undefined) return duration(value * nanos);
  switch (unit) {
    case "bytes":
      return bytes(value);
    case "percent":
      return percent(value / 100);
    case "ratio":
      return `${significant(value)}×`;
    case "pages":
      return `${count(value)}${NO_BREAK}${Math.round(value) === 1 ? "page" : "pages"}`;
    default:
      return count(value);
  }
}

/** `12.3 ms`, with a plus sign where the sign matters. */
export function quantityValue(q: Quantity, signed = false): string {
  return (signed && q.value > 0 ? "+" : "") + inUnit(q.value, q.unit);
}

/** `11.0 to 13.9 ms`, or null where no interval was given. */
export function quantityInterval(q: Quantity): string | null {
  if (q.low === null || q.high === null) return null;
  const low = inUnit(q.low, q.unit);
  const high = inUnit(q.high, q.unit);
  const [lowNumber, lowUnit] = low.split(NO_BREAK);
  const highUnit = high.split(NO_BREAK)[1];
  return lowUnit === highUnit && lowUnit !== undefined ? `${lowNumber} to ${high}` : `${low} to ${high}`;
}

/** A quantity with its sign turned: a change of -300 ms is a saving of 300 ms. */
export function negated(q: Quantity): Quantity {
  return {
    value: -q.value,
    low: q.high === null ? null : -q.high,
    high: q.low === null ? null : -q.low,
    unit: q.unit,
  };
}

/** The value in ms, or null where the unit is not a time. */
export function inMillis(value: number, unit: Unit): number | null {
  const nanos = NANOS_PER[unit];
  return nanos === undefined ? null : (value * nanos) / 1e6;
}
