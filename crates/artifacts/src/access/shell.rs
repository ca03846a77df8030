//! A path as one word of a POSIX shell.

use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The path as one word that a shell reads as that path. Bytes that are no printable ASCII are written as `$'\NNN'`, which bash, zsh and
/// POSIX.1-2024 read; all else is quoted for any shell.
pub fn quoted(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+=:,@%".contains(byte);
    // A word that begins with a dash would be an option, which an absolute path does not.
    if !bytes.is_empty() && bytes.iter().all(is_plain) {
        return String::from_utf8_lossy(bytes).into_owned();
    }
    if bytes.iter().all(|byte| (b' '..=b'~').contains(byte)) {
        return format!("'{}'", String::from_utf8_lossy(bytes).replace('\'', "'\\''"));
    }
    let mut word = "$'".to_owned();
    for byte in bytes {
        match byte {
            b'\'' | b'\\' => {
                word.push('\\');
                word.push(char::from(*byte));
            }
            b' '..=b'~' => word.push(char::from(*byte)),
            _ => {
                // Writing to a string does not fail. Three octal digits: a hexadecimal escape could swallow what follows.
                let _ = write!(word, "\\{byte:03o}");
            }
        }
    }
    word + "'"
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::ffi::OsStr;
    use std::process::Command;

    #[test]
    fn plain_paths_stay_as_they_are_and_others_are_quoted() {
        assert_eq!(quoted(Path::new("/usr/lib/x-1.2+b")), "/usr/lib/x-1.2+b");
        assert_eq!(quoted(Path::new("/a b/it's")), "'/a b/it'\\''s'");
        assert_eq!(quoted(Path::new("/a\nb")), "$'/a\\012b'");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn bash_reads_the_word_as_the_path(bytes in prop::collection::vec(1u8..=255, 1..24)) {
            let path = Path::new(OsStr::from_bytes(&bytes));
            let script = format!("printf %s {}", quoted(path));
            let output = Command::new("bash").args(["-c", "--", &script]).env("LC_ALL", "C").output().unwrap();
            // What printf would take for an option begins with a dash, and no absolute path does.
            prop_assume!(bytes[0] != b'-');
            prop_assert_eq!(output.stdout, bytes);
        }
    }
}
