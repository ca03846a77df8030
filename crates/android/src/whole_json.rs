//! JSON that is written anew while it grows (evidence, launches): whole or not at all, so that a reader never sees half of it, and nothing
//! unfinished stays. How a file is replaced is `slowpath_session::whole_file`'s.

use serde::Serialize;
use slowpath_session::whole_file::WholeFile;
use std::io;
use std::path::Path;

/// It names what is on somebody's device.
const MODE: u32 = 0o600;

/// Replaces what is at a path by this value, with a newline behind it and nothing in it that a terminal acts on.
///
/// # Errors
/// It cannot be written; what was there stays then.
pub(crate) fn replace(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string_pretty(value).map_err(io::Error::other)?;
    let text = slowpath_tables::escape_json(&text);
    WholeFile::begin(path, MODE)?.write(|out| {
        out.write_all(text.as_bytes())?;
        out.write_all(b"\n")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn it_is_replaced_as_a_whole_and_nothing_is_written_or_left_beside_it() {
        let place = tempfile::tempdir().unwrap();
        let (path, other) = (place.path().join("launches.json"), place.path().join("other"));
        fs::write(&other, "other").unwrap();
        symlink(&other, place.path().join("launches.json.new")).unwrap();
        for value in ["a", "b\u{202e}"] {
            replace(&path, &[value]).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "[\n  \"b\\u202e\"\n]\n");
        assert_eq!(fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o7777, MODE);
        assert_eq!(
            (fs::read_to_string(&other).unwrap().as_str(), fs::read_dir(place.path()).unwrap().count()),
            ("other", 3)
        );
    }
}
