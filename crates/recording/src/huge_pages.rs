//! How a machine gives transparent huge pages: a fact of it that goes with every recording.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_tables::Bytes;
use std::path::Path;

/// Where the kernel says how it gives huge pages (admin-guide/mm/transhuge.rst).
const SETTINGS: &str = "/sys/kernel/mm/transparent_hugepage";

/// How a machine gives transparent huge pages (`/sys/kernel/mm/transparent_hugepage`, admin-guide/mm/transhuge.rst).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HugePages {
    /// To whom: `always`, `madvise` (who asks for them) or `never`. That of this size where it has a setting of its own.
    pub enabled: String,
    /// What the kernel does for a fault where none is free (`defrag`).
    pub defrag: String,
    /// Their size (`hpage_pmd_size`).
    pub size: Bytes,
}

impl HugePages {
    /// How this machine gives huge pages; `None` where the kernel has none.
    pub fn of_this_machine() -> Option<Self> {
        settings_in(Path::new(SETTINGS))
    }
}

/// Since Linux 6.8 every size has a mode of its own, which by default says that it inherits the one of all.
fn settings_in(place: &Path) -> Option<HugePages> {
    let read = |name: &str| std::fs::read_to_string(place.join(name)).ok();
    let mode = |name: &str| mode_in(&read(name)?);
    let size: u64 = read("hpage_pmd_size")?.trim().parse().ok()?;
    let own = mode(&format!("hugepages-{}kB/enabled", size >> 10)).filter(|mode| mode != "inherit");
    let enabled = match own {
        Some(own) => own,
        None => mode("enabled")?,
    };
    Some(HugePages { enabled, defrag: mode("defrag").unwrap_or_default(), size: Bytes(size) })
}

/// The word in brackets: `always [madvise] never`.
fn mode_in(text: &str) -> Option<String> {
    Some(text.split_once('[')?.1.split_once(']')?.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_in_force_stands_in_brackets() {
        assert_eq!(mode_in("always [madvise] never\n").as_deref(), Some("madvise"));
        assert_eq!(mode_in("[always] madvise never\n").as_deref(), Some("always"));
        assert_eq!((mode_in(""), mode_in("[always")), (None, None));
    }

    #[test]
    fn a_size_can_have_a_mode_of_its_own() {
        let place = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).unwrap();
        assert_eq!(settings_in(place.path()), None);
        write("hpage_pmd_size", "2097152\n");
        assert_eq!(settings_in(place.path()), None);
        write("enabled", "always [madvise] never\n");
        let settings = |enabled: &str, defrag: &str| {
            Some(HugePages { enabled: enabled.to_owned(), defrag: defrag.to_owned(), size: Bytes(2 << 20) })
        };
        assert_eq!(settings_in(place.path()), settings("madvise", ""));
        write("defrag", "always defer [madvise] never\n");
        std::fs::create_dir(place.path().join("hugepages-2048kB")).unwrap();
        write("hugepages-2048kB/enabled", "always [inherit] madvise never\n");
        assert_eq!(settings_in(place.path()), settings("madvise", "madvise"));
        write("hugepages-2048kB/enabled", "always inherit madvise [never]\n");
        assert_eq!(settings_in(place.path()), settings("never", "madvise"));
    }
}
