//! Variants of a build: what each is, and the flags that make it.

use crate::order::Format;
use std::path::Path;

/// A variant, declared.
#[derive(Debug, PartialEq, Eq)]
pub struct Variant {
    /// Its name on the command line and in JSON.
    pub name: &'static str,
    /// What it is, in a few words.
    pub title: &'static str,
    /// Whether its code is ordered by a trace.
    pub ordered: bool,
    /// Flags of the compiler.
    cflags: &'static str,
    /// Flags of the link.
    ldflags: &'static str,
}

/// The build as it is.
pub const BASELINE: &str = "baseline";

const PACKED: &str = "-Wl,-z,pack-relative-relocs";

/// All of them.
pub const VARIANTS: &[Variant] = &[
    Variant { name: BASELINE, title: "as it is", ordered: false, cflags: "", ldflags: "" },
    Variant { name: "order", title: "code by first use", ordered: true, cflags: "", ldflags: "" },
    Variant { name: "relr", title: "packed relocations", ordered: false, cflags: "", ldflags: PACKED },
    Variant {
        name: "both",
        title: "code by first use, packed relocations",
        ordered: true,
        cflags: "",
        ldflags: PACKED,
    },
    Variant { name: "no-pie", title: "at a fixed address", ordered: false, cflags: "-fno-pie", ldflags: "-no-pie" },
    Variant {
        name: "lazy",
        title: "calls bound when they are made",
        ordered: false,
        cflags: "",
        ldflags: "-Wl,-z,lazy",
    },
    Variant { name: "now", title: "calls bound before main", ordered: false, cflags: "", ldflags: "-Wl,-z,now" },
    Variant {
        name: "static",
        title: "without shared libraries, at a fixed address",
        ordered: false,
        cflags: "-fno-pie",
        ldflags: "-static -no-pie",
    },
];

/// Those that are tried where none is asked for.
pub const USUAL: [&str; 4] = [BASELINE, "order", "relr", "both"];

/// The variant of this name.
pub fn variant(name: &str) -> Option<&'static Variant> {
    VARIANTS.iter().find(|one| one.name == name)
}

/// Names of the compiler's and the linker's flags, the order and the output in a build's environment.
pub const CFLAGS: &str = "SLOWPATH_CFLAGS";
/// Flags of the link.
pub const LDFLAGS: &str = "SLOWPATH_LDFLAGS";
/// The order, for variants that have one.
pub const ORDER_FILE: &str = "SLOWPATH_ORDER_FILE";
/// Where the binary is to be.
pub const OUTPUT: &str = "SLOWPATH_OUTPUT";
/// Which variant it is.
pub const VARIANT: &str = "SLOWPATH_VARIANT";

impl Variant {
    /// Flags of its compiler.
    pub fn cflags(&self) -> String {
        if self.ordered { joined(&["-ffunction-sections", self.cflags]) } else { self.cflags.to_owned() }
    }

    /// Flags of its link. All variants have the same linker where one of them is ordered, because linkers differ in more than orders.
    pub fn ldflags(&self, linker: Option<&Format>, order: &Path) -> String {
        let Some(format) = linker else { return self.ldflags.to_owned() };
        let same = format!("-fuse-ld={}", format.name);
        let order = if self.ordered { format.flag_of(&order.to_string_lossy()) } else { String::new() };
        joined(&[&same, &order, self.ldflags])
    }
}

fn joined(parts: &[&str]) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    parts.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::FORMATS;

    #[test]
    fn an_ordered_variant_names_its_order_and_all_have_the_same_linker() {
        let lld = FORMATS.iter().find(|one| one.name == "lld");
        let flags = |name: &str| variant(name).unwrap().ldflags(lld, Path::new("/o"));
        assert_eq!(flags(BASELINE), "-fuse-ld=lld");
        assert_eq!(flags("both"), "-fuse-ld=lld -Wl,--symbol-ordering-file=/o -Wl,-z,pack-relative-relocs");
        assert_eq!(variant("order").unwrap().cflags(), "-ffunction-sections");
        assert_eq!(variant(BASELINE).unwrap().ldflags(None, Path::new("/o")), "");
        assert!(USUAL.iter().all(|name| variant(name).is_some()) && variant("none").is_none());
    }
}
