//! A line of strace: who, when, and a call, its begin or its end.

use crate::moment::seconds;
use slowpath_tables::Nanos;

/// Id of the only thread where strace followed one and printed no ids.
pub const ONLY_THREAD: u32 = 1;

/// What a line must be.
pub const CALL: &str = "a call as strace -T prints it: NAME(ARGUMENTS) = RESULT <SECONDS>";
const BEGIN: &str = "the begin of a line of strace -f -ttt: [PID] SECONDS.MICROSECONDS";

/// What stands behind the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// A whole call.
    Call(&'a str),
    /// The begin of one that another thread interrupted, without the mark.
    Unfinished(&'a str),
    /// The end of one, without the mark.
    Resumed(&'a str),
    /// A thread ended.
    Exited,
    /// A signal.
    Other,
}

/// A line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    /// The thread, where strace printed it.
    pub tid: Option<u32>,
    /// When, as the time of day.
    pub ts: Nanos,
    /// What.
    pub content: Content<'a>,
}

impl<'a> Line<'a> {
    /// Takes a line apart.
    ///
    /// # Errors
    /// What was expected there.
    pub fn of(text: &'a str) -> Result<Self, &'static str> {
        let text = text.trim_start();
        let (tid, rest) = match text.strip_prefix("[pid ") {
            Some(rest) => {
                let (tid, rest) = rest.split_once(']').ok_or(BEGIN)?;
                (Some(tid.trim().parse().map_err(|_| BEGIN)?), rest)
            }
            None => {
                let (first, rest) = text.split_once(' ').ok_or(BEGIN)?;
                match first.parse::<u32>() {
                    Ok(tid) => (Some(tid), rest),
                    Err(_) => (None, text),
                }
            }
        };
        let (time, rest) = rest.trim_start().split_once(' ').ok_or(BEGIN)?;
        let ts = seconds(time).ok_or(BEGIN)?;
        Ok(Self { tid, ts, content: Content::of(rest.trim()).ok_or(CALL)? })
    }
}

impl<'a> Content<'a> {
    fn of(text: &'a str) -> Option<Self> {
        if text.starts_with("+++ ") {
            return Some(if text.contains("exited with") || text.contains("killed by") {
                Self::Exited
            } else {
                Self::Other
            });
        }
        if text.starts_with("--- ") {
            return Some(Self::Other);
        }
        if let Some(rest) = text.strip_prefix("<... ") {
            return rest.split_once(" resumed>").map(|(_, end)| Self::Resumed(end));
        }
        let (name, _) = text.split_once('(')?;
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'?') {
            return None;
        }
        match text.strip_suffix("<unfinished ...>") {
            Some(begin) => Some(Self::Unfinished(begin.trim_end())),
            None => Some(Self::Call(text)),
        }
    }
}

/// A whole call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its arguments as they are printed.
    pub arguments: Vec<&'a str>,
    /// Its result as it is printed: `3</etc/passwd>`, `-1 ENOENT (No such file or directory)`, `?`.
    pub result: &'a str,
    /// How long it took; null where the thread ended in it.
    pub duration: Option<Nanos>,
}

impl<'a> Call<'a> {
    /// Takes a call apart.
    pub fn of(text: &'a str) -> Option<Self> {
        let (name, rest) = text.split_once('(')?;
        let (arguments, rest) = arguments(rest)?;
        let rest = rest.trim_start().strip_prefix('=')?.trim();
        let timed = rest.strip_suffix('>').and_then(|rest| rest.rsplit_once('<'));
        match timed.and_then(|(result, time)| Some((result.trim(), seconds(time)?))) {
            Some((result, time)) => Some(Self { name, arguments, result, duration: Some(time) }),
            // A call that does not return has no duration.
            None if rest.starts_with('?') => Some(Self { name, arguments, result: "?", duration: None }),
            None => None,
        }
    }
}

/// The arguments up to the parenthesis that closes them, and what follows.
fn arguments(text: &str) -> Option<(Vec<&str>, &str)> {
    let (mut found, mut from, mut depth) = (Vec::new(), 0, 0usize);
    let (mut in_string, mut escaped, mut in_path) = (false, false, false);
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        let previous = std::mem::replace(&mut before, c);
        if in_string {
            (escaped, in_string) = (c == '\\' && !escaped, escaped || c != '"');
            continue;
        }
        if in_path {
            // strace writes '>' in a path as \76.
            in_path = c != '>';
            continue;
        }
        match c {
            '"' => in_string = true,
            // `3</a, b>`, and not `1 << 3`.
            '<' if previous.is_ascii_digit() || previous == 'D' => in_path = true,
            '(' | '[' | '{' => depth += 1,
            ')' if depth == 0 => {
                let last = text[from..at].trim();
                if !last.is_empty() || !found.is_empty() {
                    found.push(last);
                }
                return Some((found, &text[at + 1..]));
            }
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                found.push(text[from..at].trim());
                from = at + 1;
            }
            _ => {}
        }
    }
    None
}

/// The text of a string as strace prints it; the dots behind one that is cut are left out. Null for what is no string.
pub fn string(argument: &str) -> Option<String> {
    let text = argument.strip_prefix('"')?;
    let text = text.strip_suffix("...").unwrap_or(text).strip_suffix('"')?;
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next()? {
            b'n' => bytes.push(b'\n'),
            b't' => bytes.push(b'\t'),
            b'r' => bytes.push(b'\r'),
            b'f' => bytes.push(0x0c),
            b'v' => bytes.push(0x0b),
            digit @ b'0'..=b'7' => {
                let mut value = u32::from(digit - b'0');
                for _ in 0..2 {
                    let Some(digit) = rest.next_if(|byte| (b'0'..=b'7').contains(byte)) else { break };
                    value = value * 8 + u32::from(digit - b'0');
                }
                bytes.push(value as u8);
            }
            b'x' => {
                let mut value = 0;
                for _ in 0..2 {
                    value = value * 16 + char::from(rest.next()?).to_digit(16)?;
                }
                bytes.push(value as u8);
            }
            other => bytes.push(other),
        }
    }
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_times_are_read_in_each_form_that_strace_prints() {
        for (text, tid) in
            [("7  1.5 a() = 0 <0.1>", Some(7)), ("[pid  7] 1.5 a() = 0 <0.1>", Some(7)), ("1.5 a() = 0 <0.1>", None)]
        {
            let line = Line::of(text).unwrap();
            assert_eq!((line.tid, line.ts.0, line.content), (tid, 1_500_000_000, Content::Call("a() = 0 <0.1>")));
        }
        let content = |text| Line::of(text).unwrap().content;
        assert_eq!(content("7 1.5 read(3,  <unfinished ...>"), Content::Unfinished("read(3,"));
        assert_eq!(content("7 1.5 <... read resumed>\"a\", 1) = 1 <0.1>"), Content::Resumed("\"a\", 1) = 1 <0.1>"));
        assert_eq!(content("7 1.5 +++ exited with 0 +++"), Content::Exited);
        assert_eq!(content("7 1.5 --- SIGCHLD {si_signo=SIGCHLD} ---"), Content::Other);
        assert_eq!(Line::of("12:00:01 read(3) = 0"), Err(BEGIN));
        assert_eq!(Line::of("7 1.5 what is this"), Err(CALL));
    }

    #[test]
    fn commas_and_parentheses_in_strings_structures_and_paths_end_nothing() {
        let call =
            Call::of("open(\"a, (\\\"b\", {st_mode=S_IFREG|0644, x=[1, 2]}, 3</tmp/c, d)>) = 3</tmp/e>  <0.000012>");
        let call = call.unwrap();
        assert_eq!(call.arguments, ["\"a, (\\\"b\"", "{st_mode=S_IFREG|0644, x=[1, 2]}", "3</tmp/c, d)>"]);
        assert_eq!((call.result, call.duration), ("3</tmp/e>", Some(Nanos(12_000))));
        assert_eq!(Call::of("exit_group(0) = ?").unwrap().duration, None);
        assert_eq!(Call::of("getpid() = 7 <0.1>").unwrap().arguments, [] as [&str; 0]);
        assert_eq!(Call::of("read(3) = 0"), None);
        assert_eq!(Call::of("read(3"), None);
    }

    #[test]
    fn strings_are_read_as_they_were() {
        assert_eq!(string(r#""a\n\"\303\244\x41\0"..."#).as_deref(), Some("a\n\"äA\0"));
        assert_eq!(string("0x7ffe"), None);
        assert_eq!(string(r#""\x4"#), None);
    }
}
