//! The cache of bootsnap: compiled Ruby, parsed YAML and JSON, and paths of features.

use super::family::{Family, FreshnessOf, Regeneration, Trace, everybody, name, never_missing, parent_name};
use crate::access::FileKind;
use std::path::Path;

/// The family.
pub const RUBY_BOOTSNAP: Family = Family {
    name: "ruby_bootsnap",
    title: "compiled Ruby of bootsnap",
    recognised_by: "`load-path-cache` and files below `compile-cache-*` in `bootsnap`, mostly `tmp/cache/bootsnap` of an application",
    derives_from: "Ruby, YAML and JSON files of the application and its gems, and the build of Ruby",
    stale_when: "never decided: a file is named by a hash of the path of its source, which does not lead back to it",
    fallback: "each process compiles its sources again and searches the load path; a cache that cannot be written stays so",
    by_hand: "`bootsnap precompile --gemfile app/ lib/` as the user that runs the application; `chown -R USER tmp/cache`",
    regeneration: Regeneration::BY_THE_PROGRAM,
    shared_by: "`BOOTSNAP_CACHE_DIR=DIRECTORY`, filled with `bootsnap precompile`, and `BOOTSNAP_READONLY=1` for who only reads",
    trace: Trace::OfAnyFile,
    recognises,
    is_needed_by: everybody,
    freshness: FreshnessOf::Nothing("its name does not lead back to its source"),
    missing: never_missing,
};

/// Whether a directory on the way is named `compile-cache-KIND` and stands in `bootsnap`.
fn is_compiled(path: &Path) -> bool {
    path.ancestors().skip(1).any(|above| name(above).starts_with("compile-cache-") && parent_name(above) == "bootsnap")
}

fn recognises(path: &Path, kind: FileKind) -> bool {
    match kind {
        FileKind::Directory => name(path) == "bootsnap" && parent_name(path) == "cache",
        FileKind::Regular => is_compiled(path) || name(path) == "load-path-cache" && parent_name(path) == "bootsnap",
        _ => false,
    }
}
