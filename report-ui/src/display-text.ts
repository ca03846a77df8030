// Makes text of unknown origin safe to look at.
//
// Owns what a reader may be shown of a name that a target chose: control characters, direction
// overrides and invisible characters become visible escapes, so that a name can neither reorder the
// line around it nor hide a part of itself. Markup is not handled here: the page only ever sets
// `textContent`, and its policy forbids inline script.

// C0, DEL and C1 controls; soft hyphen; Arabic letter mark; zero-width and direction characters;
// line and paragraph separators; bidirectional embeddings, overrides and isolates; byte order mark;
// tag characters; surrogates without a partner.
const UNSAFE =
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/gu;

/** The text with every invisible or reordering character written as `\u{…}`. */
export function displayText(text: string): string {
  return text.replace(UNSAFE, (c) => `\\u{${(c.codePointAt(0) ?? 0).toString(16)}}`);
}

/** At most `length` characters, with the middle left out: both ends of a path tell files apart. */
export function shortenMiddle(text: string, length: number): string {
  if (text.length <= length) return text;
  const tail = Math.ceil((length - 1) * 0.65);
  return `${text.slice(0, length - 1 - tail)}…${text.slice(text.length - tail)}`;
}

/** The last component of a path, or the whole of it where there is none. */
export function baseName(path: string): string {
  const at = path.lastIndexOf("/");
  return at >= 0 && at + 1 < path.length ? path.slice(at + 1) : path;
}

const PLAIN_WORD = /^[A-Za-z0-9_@%+=:,./-]+$/;

/** A command that a POSIX shell splits into the same words again; unsafe characters stay visible. */
export function shellCommand(words: readonly string[]): string {
  return words
    .map((w) => {
      if (PLAIN_WORD.test(w)) return w;
      if (displayText(w) !== w) {
        // ANSI-C quoting: the escape stays visible here and is the same character to the shell.
        const escaped = w.replace(/[\\']/g, "\\$&").replace(UNSAFE, (c) => {
          const code = c.codePointAt(0) ?? 0;
          return code > 0xffff ? `\\U${code.toString(16).padStart(8, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
        });
        return `$'${escaped}'`;
      }
      return `'${w.replace(/'/g, "'\\''")}'`;
    })
    .join(" ");
}
