//! A change of a file as people read it.

use similar::TextDiff;

/// Bytes of a file that are compared; what is larger (a preload plan) is reported by its size.
const MOST: usize = 256 << 10;

/// The unified diff from `before` (nothing where there is no file) to `after`. What is not UTF-8 is shown with replacement characters.
pub fn unified(path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> String {
    let largest = before.map_or(0, <[u8]>::len).max(after.map_or(0, <[u8]>::len));
    let name = |side: Option<&[u8]>| if side.is_some() { path.to_owned() } else { "/dev/null".to_owned() };
    let text = |side: Option<&[u8]>| String::from_utf8_lossy(side.unwrap_or_default()).into_owned();
    let (from, to) = (name(before), name(after));
    if largest > MOST {
        let size = |side: Option<&[u8]>| side.map_or("no file".to_owned(), |bytes| format!("{} bytes", bytes.len()));
        return format!("--- {from}\n+++ {to}\n@@ {} to {}, too long to be shown @@\n", size(before), size(after));
    }
    let (old, new) = (text(before), text(after));
    TextDiff::from_lines(&old, &new).unified_diff().context_radius(3).header(&from, &to).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_a_new_file_and_a_removed_one_are_shown() {
        assert_eq!(unified("/e", Some(b"a\nb\n"), Some(b"a\nc\n")), "--- /e\n+++ /e\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
        assert_eq!(unified("/e", None, Some(b"a\n")), "--- /dev/null\n+++ /e\n@@ -0,0 +1 @@\n+a\n");
        assert!(unified("/e", Some(b"a"), None).contains("+++ /dev/null\n@@ -1 +0,0 @@\n-a"));
    }

    #[test]
    fn what_is_too_long_is_shown_by_its_size() {
        let long = vec![b'x'; MOST + 1];
        assert!(unified("/p", None, Some(&long)).contains("no file to 262145 bytes"));
    }
}
