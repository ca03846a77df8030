//! Caches of code and shaders in the profiles of Chromium and Firefox.

use super::family::{Family, FreshnessOf, Regeneration, Trace, everybody, is_below, never_missing};
use crate::access::FileKind;
use std::path::Path;

/// The family.
pub const BROWSER_CODE_CACHE: Family = Family {
    name: "browser_code_cache",
    title: "compiled scripts and shaders of browsers",
    recognised_by: "files below `Code Cache`, `GPUCache`, `ShaderCache`, `GrShaderCache`, `GraphiteDawnCache`, `DawnCache`, \
                    `DawnGraphiteCache`, `DawnWebGPUCache` (Chromium, Electron), `startupCache`, `shader-cache` (Firefox)",
    derives_from: "scripts of pages and of the browser, shaders, and the build of the browser and the driver",
    stale_when: "never decided: entries hold the build and hashes that only the browser compares",
    fallback: "scripts are compiled again at each visit, shaders at each start of the GPU process; a cache that cannot be written stays so",
    by_hand: "`chown -R USER PROFILE` where a browser that ran as root made it, or remove the directory",
    regeneration: Regeneration::BY_THE_PROGRAM,
    shared_by: "",
    trace: Trace::OfAnyFile,
    recognises,
    is_needed_by: everybody,
    freshness: FreshnessOf::Nothing("only the browser compares what its entries were made from"),
    missing: never_missing,
};

const NAMES: [&str; 10] = [
    "Code Cache",
    "GPUCache",
    "ShaderCache",
    "GrShaderCache",
    "GraphiteDawnCache",
    "DawnCache",
    "DawnGraphiteCache",
    "DawnWebGPUCache",
    "startupCache",
    "shader-cache",
];

fn recognises(path: &Path, kind: FileKind) -> bool {
    is_below(path, kind, &NAMES)
}
