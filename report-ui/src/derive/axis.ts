// Axis arithmetic: round tick positions and linear scales. Owns no drawing.

export interface Ticks {
  step: number;
  at: number[];
}

/** About `wanted` ticks at multiples of 1, 2 or 5 times a power of ten. */
export function decimalTicks(from: number, to: number, wanted: number): Ticks {
  return ticksOf(from, to, wanted, [1, 2, 5, 10], 10);
}

/** The same at powers of two, for sizes in binary units. */
export function binaryTicks(from: number, to: number, wanted: number): Ticks {
  return ticksOf(from, to, wanted, [1, 2], 2);
}

function ticksOf(from: number, to: number, wanted: number, multiples: number[], base: number): Ticks {
  const span = to - from;
  if (!(span > 0) || !(wanted > 0)) return { step: 1, at: [] };
  const raw = span / wanted;
  const power = base ** Math.floor(Math.log(raw) / Math.log(base) + 1e-9);
  const step = power * (multiples.find((m) => m * power >= raw * (1 - 1e-9)) ?? base);
  const at: number[] = [];
  // The zero makes 0 of -0, which would be shown with a sign.
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to + step * 1e-9; i++) at.push(i * step + 0);
  return { step, at };
}

export interface LinearScale {
  (value: number): number;
  invert(position: number): number;
}

export function linearScale(domain: [number, number], range: [number, number]): LinearScale {
  const [d0, d1] = domain;
  const [r0, r1] = range;
  const slope = d1 === d0 ? 0 : (r1 - r0) / (d1 - d0);
  const scale = ((value: number) => r0 + (value - d0) * slope) as LinearScale;
  scale.invert = (position) => (slope === 0 ? d0 : d0 + (position - r0) / slope);
  return scale;
}
