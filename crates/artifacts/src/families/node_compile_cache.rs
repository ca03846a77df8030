//! The compile cache of Node.js (`module.enableCompileCache`, `NODE_COMPILE_CACHE`; 22.1 and later).

use super::family::{Family, FreshnessOf, Regeneration, Trace, name, never_missing, parent_name};
use crate::access::FileKind;
use std::path::Path;

/// The family.
pub const NODE_COMPILE_CACHE: Family = Family {
    name: "node_compile_cache",
    title: "compiled modules of Node.js",
    recognised_by: "files in `vVERSION-ARCHITECTURE-TAG-UID`, a directory in `$NODE_COMPILE_CACHE` or `node-compile-cache` of the temporary one",
    derives_from: "JavaScript and TypeScript modules, and the version of Node.js and V8",
    stale_when: "never decided: a file names its source by a checksum of the path, and Node.js compares a checksum of the content. The \
                 directory ends with the uid that made it, and other users do not look there",
    fallback: "each process compiles its modules again and writes the cache at its end: `NODE_DEBUG_NATIVE=COMPILE_CACHE node ...`",
    by_hand: "remove the directory of the version; or give each user one that it may write (`NODE_COMPILE_CACHE`)",
    regeneration: Regeneration::BY_THE_PROGRAM,
    shared_by: "`NODE_COMPILE_CACHE=DIRECTORY` for processes of one user: its files lie below the uid that made them",
    trace: Trace::SourceFirst,
    recognises,
    is_needed_by,
    freshness: FreshnessOf::Nothing("it names its source by a checksum of the path"),
    missing: never_missing,
};

/// The uid at the end of `v22.12.0-x64-b2c85b5e-1000` (`GetCacheVersionTag`, src/compile_cache.cc).
fn uid(directory: &str) -> Option<u32> {
    let mut parts = directory.rsplitn(4, '-');
    let (uid, tag) = (parts.next()?.parse().ok()?, parts.next()?);
    let (_architecture, version) = (parts.next()?, parts.next()?.strip_prefix('v')?);
    let is_tag = !tag.is_empty() && tag.len() <= 8 && tag.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_tag && version.starts_with(|c: char| c.is_ascii_digit())).then_some(uid)
}

fn recognises(path: &Path, kind: FileKind) -> bool {
    match kind {
        FileKind::Directory => uid(name(path)).is_some(),
        FileKind::Regular => uid(parent_name(path)).is_some(),
        _ => false,
    }
}

fn is_needed_by(path: &Path, user: u32) -> bool {
    [name(path), parent_name(path)].into_iter().find_map(uid).is_none_or(|owner| owner == user)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_needed_by_the_user_in_the_name_of_its_directory_only() {
        let file = Path::new("/tmp/node-compile-cache/v22.12.0-x64-b2c85b5e-1000/0a1b2c3d");
        assert!(recognises(file, FileKind::Regular));
        assert!(is_needed_by(file, 1000) && !is_needed_by(file, 1001));
        assert_eq!(uid("v23.0.0-nightly20240101-arm64-1a2b-0"), Some(0));
        assert_eq!((uid("v22.12.0"), uid("node-v22-x64-xyz-1"), uid("a-b-c-d")), (None, None, None));
    }
}
