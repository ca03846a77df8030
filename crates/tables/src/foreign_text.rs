//! Text of others where people read it: which characters are dangerous, and JSON without them.

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
    // What is printable ASCII is most of it, and is passed over byte by byte: no byte of another character has such a value.
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~' | b'\n');
    let mut escaped = String::with_capacity(json.len());
    let mut units = [0; 2];
    let mut rest = json;
    while let Some(at) = rest.bytes().position(|byte| !is_plain(byte)) {
        let (plain, others) = rest.split_at(at);
        escaped.push_str(plain);
        let Some(c) = others.chars().next() else { break };
        rest = &others[c.len_utf8()..];
        if is_dangerous(c) {
            for unit in c.encode_utf16(&mut units) {
                escaped.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            escaped.push(c);
        }
    }
    escaped.push_str(rest);
    escaped
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
    }
}
