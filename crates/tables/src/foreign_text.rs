//! Text of others where people read it: which characters are dangerous, and JSON without them.

use std::convert::Infallible;
use std::io::{self, Write};

/// Characters that a terminal obeys or that make a text look like another one: controls (C0, DEL and C1, such as U+009B, which
/// begins a command as ESC [ does), and what Unicode calls format characters.
pub fn is_dangerous(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' // soft hyphen
            | '\u{61c}' | '\u{200b}'..='\u{200f}' // zero width, directional marks
            | '\u{2028}'..='\u{202e}' // separators, directional embeddings and overrides
            | '\u{2060}'..='\u{206f}' // word joiner, directional isolates, deprecated format characters
            | '\u{180e}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' // zero width, interlinear annotation
            | '\u{e0000}'..='\u{e007f}') // tags
}

/// JSON that means the same and can be shown: dangerous characters stand in it only inside strings, where an escape means the same
/// (RFC 8259, section 7). The newlines between its parts stay.
pub fn escape_json(json: &str) -> String {
    let mut escaped = String::with_capacity(json.len());
    let Ok(()) = escaped_pieces(json, |piece| {
        escaped.push_str(piece);
        Ok::<(), Infallible>(())
    });
    escaped
}

/// Writes JSON on as [`escape_json`] makes it. What is written to it consists of whole characters, as what `serde_json` writes does; else
/// it is an error.
#[derive(Debug)]
pub struct EscapedJson<W>(pub W);

impl<W: Write> Write for EscapedJson<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let json = std::str::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        escaped_pieces(json, |piece| self.0.write_all(piece.as_bytes()))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Hands out the pieces of the escaped text.
fn escaped_pieces<E>(json: &str, mut take: impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
    let mut units = [0; 2];
    let mut rest = json;
    while let Some(at) = first_other(rest.as_bytes()) {
        let (plain, others) = rest.split_at(at);
        take(plain)?;
        let Some(c) = others.chars().next() else { break };
        let (first, behind) = others.split_at(c.len_utf8());
        rest = behind;
        if is_dangerous(c) {
            for unit in c.encode_utf16(&mut units) {
                take(&format!("\\u{unit:04x}"))?;
            }
        } else {
            take(first)?;
        }
    }
    take(rest)
}

/// Where the first byte is that is no printable ASCII, which is most of JSON; no byte of another character has such a value. By blocks, which
/// the compiler looks at as a whole.
fn first_other(bytes: &[u8]) -> Option<usize> {
    const BLOCK: usize = 64;
    let is_other = |byte: &u8| !matches!(byte, b' '..=b'~' | b'\n');
    let has_other = |block: &[u8]| block.iter().fold(false, |any, byte| any | is_other(byte));
    let from = bytes.chunks(BLOCK).position(has_other)? * BLOCK;
    Some(from + bytes[from..].iter().position(is_other)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_with_hostile_text_means_the_same_and_holds_nothing_dangerous() {
        let text =
            "c1 \u{9b}31m del \u{7f} rtl \u{202e} zero \u{200b}\u{feff} tag \u{e0041} \u{1b}[2J \" \\ Ä 日本 \u{1f600}";
        // As serde_json writes it.
        let json = format!(
            "{{\n  \"a\": \"{}\"\n}}",
            text.replace('\\', "\\\\").replace('"', "\\\"").replace('\u{1b}', "\\u001b")
        );
        let escaped = escape_json(&json);
        assert!(!escaped.chars().any(|c| is_dangerous(c) && c != '\n'), "{escaped}");
        assert!(
            escaped.contains("\\u009b") && escaped.contains("\\u202e") && escaped.contains("\\udb40\\udc41"),
            "{escaped}"
        );
        assert!(escaped.contains("Ä 日本 \u{1f600}") && escaped.lines().count() == 3, "{escaped}");
        let mut written = Vec::new();
        serde_json::to_writer_pretty(EscapedJson(&mut written), &serde_json::json!({ "a": text })).unwrap();
        assert_eq!(String::from_utf8(written).unwrap(), escaped, "what is written is escaped in the same way");
    }
}
