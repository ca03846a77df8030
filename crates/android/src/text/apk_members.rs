//! `unzip -l APK`: how much DEX is in it.

use super::lines;

/// The DEX files of an APK.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ApkMembers {
    /// Files `classes.dex`, `classes2.dex`, ...
    pub dex_files: u32,
    /// Their bytes together.
    pub dex_bytes: u64,
}

/// Reads the output, where there is at least one member in it.
pub fn apk_members(text: &str) -> Option<ApkMembers> {
    let mut found = ApkMembers::default();
    let mut members = 0;
    for line in lines(text) {
        let words: Vec<&str> = line.split_whitespace().collect();
        // Length, date, time, name. The sum at the end has `N files`.
        let [length, date, _, name, ..] = words[..] else { continue };
        let (Ok(length), true) = (length.parse::<u64>(), date.contains('-')) else { continue };
        members += 1;
        if is_dex(name) {
            found.dex_files += 1;
            found.dex_bytes = found.dex_bytes.saturating_add(length);
        }
    }
    (members > 0).then_some(found)
}

/// `classes.dex` and `classesN.dex` at the top (multidex).
fn is_dex(name: &str) -> bool {
    let number = name.strip_prefix("classes").and_then(|rest| rest.strip_suffix(".dex"));
    number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dex_files_of_an_apk_are_summed() {
        let text = "Archive:  /data/app/base.apk\n  Length      Date    Time    Name\n---------  ---------- -----   ----\n     1000  \
                    2022-11-10 13:58   AndroidManifest.xml\n  8000000  2022-11-10 13:58   classes.dex\n   400000  2022-11-10 13:58   \
                    classes2.dex\n        9  2022-11-10 13:58   assets/classes.dex\n---------                     -------\n  8401009                     4 files\n";
        assert_eq!(apk_members(text), Some(ApkMembers { dex_files: 2, dex_bytes: 8_400_000 }));
        assert_eq!(apk_members("unzip: not found\n"), None);
    }
}
