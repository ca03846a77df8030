// Base64 of the data block -> bytes, and numbers of any length.

/** The bytes of base64; throws on anything else. */
export function bytesOf(text: string): Uint8Array {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** The first `count` numbers of a LEB128 column; null where there are fewer or more. */
export function numbersOf(text: string, count: number): Float64Array | null {
  const bytes = bytesOf(text);
  const numbers = new Float64Array(count);
  let at = 0;
  let number = 0;
  let scale = 1;
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]!;
    number += (byte & 0x7f) * scale;
    if (byte >= 0x80) {
      scale *= 128;
      continue;
    }
    if (at >= count) return null;
    numbers[at++] = number;
    number = 0;
    scale = 1;
  }
  return at === count && scale === 1 ? numbers : null;
}
