//! The fields of a kernel event as text: `prev_comm=bash prev_pid=7 prev_state=S ==> next_comm=...`.
//!
//! Names of tasks are chosen by programs and may hold blanks and `=`: a name ends where the field that the kernel prints behind it
//! begins.

/// The value of the number, word or hash `key`, up to a blank; the first field of that name.
pub fn word<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let value = after(text, key)?;
    Some(value.split([' ', '\t']).next().unwrap_or(value).trim_end_matches(','))
}

/// The value of `key`, which may hold blanks: up to the field `next`.
pub fn name<'a>(text: &'a str, key: &str, next: &str) -> Option<&'a str> {
    let value = after(text, key)?;
    let mut from = 0;
    while let Some(at) = value[from..].find(next) {
        let at = from + at;
        let is_field = value[..at].ends_with(' ') && value[at + next.len()..].starts_with('=');
        if is_field {
            return Some(value[..at].trim_end());
        }
        from = at + next.len();
    }
    None
}

/// A number in decimal.
pub fn number<T: std::str::FromStr>(text: &str, key: &str) -> Option<T> {
    word(text, key)?.parse().ok()
}

/// A number in hexadecimal, with `0x` or without.
pub fn hexadecimal(text: &str, key: &str) -> Option<u64> {
    let value = word(text, key)?;
    u64::from_str_radix(value.strip_prefix("0x").unwrap_or(value), 16).ok()
}

fn after<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let mut from = 0;
    while let Some(at) = text[from..].find(key) {
        let at = from + at;
        let end = at + key.len();
        let begins = at == 0 || text[..at].ends_with([' ', '\t', ',']);
        if begins && text[end..].starts_with('=') {
            return Some(&text[end + 1..]);
        }
        from = end;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_look_like_other_fields_and_ends_at_the_next_one() {
        let text =
            "prev_comm=a pid=9 b prev_pid=7 prev_prio=120 prev_state=S ==> next_comm=x y next_pid=8 next_prio=120";
        assert_eq!(name(text, "prev_comm", "prev_pid"), Some("a pid=9 b"));
        assert_eq!(name(text, "next_comm", "next_pid"), Some("x y"));
        assert_eq!(number(text, "prev_pid"), Some(7));
        assert_eq!(word(text, "prev_state"), Some("S"));
        assert_eq!(number::<u32>(text, "comm"), None);
        assert_eq!(hexadecimal("dev 254:1 ino 1a pfn=0x1f ofs=4096", "pfn"), Some(31));
    }
}
