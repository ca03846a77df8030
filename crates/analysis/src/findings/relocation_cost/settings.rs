//! Settings of a build that end relocations of an object, chosen by what its tables hold.

use slowpath_tables::FileRelocations;

/// Fewer relocations than this of a kind are not worth a setting: two pages of addresses.
const LEAST: u64 = 1000;

/// Fewer lookups than this are not: each takes some 100 ns.
const LEAST_LOOKUPS: u64 = 200;

/// A setting and what it does to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The flag.
    pub setting: &'static str,
    /// What it ends.
    pub ends: String,
    /// Relocations that it concerns.
    pub entries: u64,
    /// What it costs.
    pub price: &'static str,
}

/// Those that help an object, those that end most first.
pub(crate) fn settings(of: &FileRelocations) -> Vec<Setting> {
    let mut found = Vec::new();
    let based = of.relative.saturating_add(of.packed);
    if of.program && !of.fixed && based >= LEAST {
        found.push(Setting {
            setting: "-no-pie",
            ends: "all relocations that add the base address: the program is mapped at its link address".to_owned(),
            entries: based,
            price: "the addresses of the program are not randomised",
        });
    }
    if of.relative >= LEAST {
        found.push(Setting {
            setting: "-Wl,-z,pack-relative-relocs",
            ends: format!(
                "reading {} KiB of table: an address takes a bit or a few; the pages with addresses are written as before",
                of.relative.saturating_mul(24) >> 10
            ),
            entries: of.relative,
            price: "needs glibc 2.36 or later",
        });
    }
    if !of.program && !of.symbolic_binding && of.own >= LEAST_LOOKUPS {
        found.push(Setting {
            setting: "-fvisibility=hidden, or -Wl,-Bsymbolic-functions",
            ends: "lookups of symbols that the library itself defines".to_owned(),
            entries: of.own,
            price: "no other object can replace them (LD_PRELOAD, the executable)",
        });
    }
    if of.bind_now && of.calls >= LEAST_LOOKUPS {
        found.push(Setting {
            setting: "-Wl,-z,lazy",
            ends: "lookups before main of functions that a start does not call".to_owned(),
            entries: of.calls,
            price: "the GOT stays writable, and the first call of each function looks it up",
        });
    }
    let lookups = of.symbolic.saturating_add(of.calls);
    if !of.gnu_hash && lookups >= LEAST_LOOKUPS {
        found.push(Setting {
            setting: "-Wl,--hash-style=gnu",
            ends: "reading names in this object for symbols that it does not define".to_owned(),
            entries: lookups,
            price: "none on Linux",
        });
    }
    if of.program && lookups >= LEAST_LOOKUPS && of.libraries > 0 {
        found.push(Setting {
            setting: "-static",
            ends: "all lookups, and with -no-pie all relocations".to_owned(),
            entries: lookups,
            price: "libraries are updated by relinking; no dlopen, and no name services beyond files",
        });
    }
    found.sort_by_key(|setting| std::cmp::Reverse(setting.entries));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_tables::Bytes;

    fn library() -> FileRelocations {
        FileRelocations {
            dev: 1,
            ino: 1,
            program: false,
            fixed: false,
            relative: 0,
            packed: 0,
            symbolic: 0,
            calls: 0,
            own: 0,
            table_bytes: Bytes(0),
            libraries: 1,
            bind_now: false,
            symbolic_binding: false,
            gnu_hash: true,
        }
    }

    fn names(of: &FileRelocations) -> Vec<&'static str> {
        settings(of).into_iter().map(|one| one.setting).collect()
    }

    #[test]
    fn settings_follow_from_what_the_tables_hold() {
        assert_eq!(settings(&library()), []);
        let program = FileRelocations { program: true, relative: 50_000, ..library() };
        assert_eq!(names(&program), ["-no-pie", "-Wl,-z,pack-relative-relocs"]);
        assert_eq!(names(&FileRelocations { relative: 50_000, ..library() }), ["-Wl,-z,pack-relative-relocs"]);
        let packed = FileRelocations { program: true, packed: 50_000, ..library() };
        assert_eq!(names(&packed), ["-no-pie"]);
        assert_eq!(settings(&FileRelocations { fixed: true, ..packed }), []);
    }

    #[test]
    fn lookups_have_settings_of_their_own_and_what_is_set_already_has_none() {
        let own = FileRelocations { symbolic: 900, own: 800, ..library() };
        assert_eq!(names(&own), ["-fvisibility=hidden, or -Wl,-Bsymbolic-functions"]);
        assert_eq!(settings(&FileRelocations { symbolic_binding: true, ..own.clone() }), []);
        let bound = FileRelocations { calls: 700, bind_now: true, ..library() };
        assert_eq!(names(&bound), ["-Wl,-z,lazy"]);
        assert_eq!(settings(&FileRelocations { bind_now: false, ..bound }), []);
        let old = FileRelocations { symbolic: 300, gnu_hash: false, ..library() };
        assert_eq!(names(&old), ["-Wl,--hash-style=gnu"]);
        assert_eq!(names(&FileRelocations { symbolic: 300, program: true, ..library() }), ["-static"]);
    }
}
