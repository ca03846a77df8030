//! Mesa's cache of compiled shaders (docs.mesa3d.org/envvars.html, `MESA_SHADER_CACHE_DIR`).

use super::family::{Family, FreshnessOf, Regeneration, Trace, everybody, is_below, never_missing};
use crate::access::FileKind;
use std::path::Path;

/// The family.
pub const MESA_SHADER_CACHE: Family = Family {
    name: "mesa_shader_cache",
    title: "shaders compiled by Mesa",
    recognised_by: "files below `mesa_shader_cache`, `mesa_shader_cache_db` or `mesa_shader_cache_sf`, mostly in `~/.cache`",
    derives_from: "the shaders of programs, and the build of the driver",
    stale_when: "never decided: the key of an entry is a hash of the driver's build and of the shader, which only the driver knows",
    fallback: "each process compiles its shaders again, mostly in pauses of the first frames: `MESA_SHADER_CACHE_SHOW_STATS=true`",
    by_hand: "`chown -R USER ~/.cache/mesa_shader_cache*` where a program that ran as root made it, or remove it",
    regeneration: Regeneration::BY_THE_PROGRAM,
    shared_by: "`MESA_SHADER_CACHE_DIR=DIRECTORY` for users who trust each other: each writes to it",
    trace: Trace::OfAnyFile,
    recognises,
    is_needed_by: everybody,
    freshness: FreshnessOf::Nothing("only the driver knows the keys of its entries"),
    missing: never_missing,
};

const NAMES: [&str; 3] = ["mesa_shader_cache", "mesa_shader_cache_db", "mesa_shader_cache_sf"];

fn recognises(path: &Path, kind: FileKind) -> bool {
    is_below(path, kind, &NAMES)
}
