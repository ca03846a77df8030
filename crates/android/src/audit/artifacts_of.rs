//! Where ART keeps what it compiles of an APK, and what the listing shows of it.
//!
//! `DIR/oat/ISA/STEM.odex` beside the APK, or `/data/dalvik-cache/ISA/PATH@classes.dex` with `@` for `/` (runtime/oat_file_assistant.cc,
//! `DexLocationToOdexFilename`; libartbase/base/file_utils.cc, `GetDalvikCacheFilename`).

use super::printed::{FileAudit, ReadState};
use crate::evidence::Evidence;
use crate::isolation::isolated_identity;
use slowpath_artifacts::access::{Access, Change, Decision, decide, smallest_change};
use std::path::Path;

/// The two files of one APK and instruction set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactPaths {
    /// Compiled code.
    pub odex: String,
    /// What was verified.
    pub vdex: String,
}

/// Where they can be, the first place first. `location` is what dexopt says.
pub fn places(apk: &str, isa: &str, location: Option<&str>) -> Vec<ArtifactPaths> {
    let mut found = Vec::new();
    if let Some(stem) = location.and_then(|file| file.strip_suffix(".odex").or_else(|| file.strip_suffix(".vdex"))) {
        found.push(ArtifactPaths { odex: format!("{stem}.odex"), vdex: format!("{stem}.vdex") });
    } else if let Some(stem) = location.and_then(|file| file.strip_suffix(".dex")) {
        found.push(ArtifactPaths { odex: format!("{stem}.dex"), vdex: format!("{stem}.vdex") });
    }
    if let Some((directory, file)) = apk.rsplit_once('/') {
        let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
        let at = format!("{directory}/oat/{isa}/{stem}");
        found.push(ArtifactPaths { odex: format!("{at}.odex"), vdex: format!("{at}.vdex") });
        let name = apk.trim_start_matches('/').replace('/', "@");
        let at = format!("/data/dalvik-cache/{isa}/{name}@classes");
        found.push(ArtifactPaths { odex: format!("{at}.dex"), vdex: format!("{at}.vdex") });
    }
    found.dedup();
    found
}

/// The place of which the listing shows a file; else the first one.
pub(super) fn listed_place(evidence: &Evidence, places: &[ArtifactPaths]) -> Option<ArtifactPaths> {
    let is_listed = |path: &str| evidence.listing.get(Path::new(path)).is_some();
    let listed = places.iter().find(|place| is_listed(&place.odex) || is_listed(&place.vdex));
    listed.or_else(|| places.first()).cloned()
}

/// What isolated processes can do with a file. A file that is not listed is missing where its directory's other files are or the
/// device said so, and unknown else.
pub(super) fn file_audit(evidence: &Evidence, path: &str, is_known_missing: bool) -> FileAudit {
    let mut audit = FileAudit {
        path: path.to_owned(),
        state: ReadState::Unknown,
        mode: None,
        uid: None,
        gid: None,
        bytes: None,
        denied_by: None,
        change: None,
        reason: None,
    };
    let at = Path::new(path);
    let (Some(file), Some((lookup, unshown))) = (evidence.listing.get(at), evidence.listing.lookup(at)) else {
        match is_known_missing {
            true => audit.state = ReadState::Missing,
            false => audit.reason = Some("it is not in the listing".to_owned()),
        }
        return audit;
    };
    audit.mode = Some(format!("{:04o}", file.mode));
    (audit.uid, audit.gid, audit.bytes) = (file.uid, file.gid, file.size);
    let identity = isolated_identity();
    match (decide(&identity, &lookup, Access::Read), unshown) {
        (Decision::Denied(denial), _) => {
            audit.state = ReadState::Unreadable;
            let changes = smallest_change(&identity, &lookup, Access::Read);
            audit.change = changes.map(|changes| changes.iter().map(Change::command).collect::<Vec<_>>().join(" && "));
            audit.denied_by = Some((&denial).into());
        }
        (Decision::Unknown { why }, _) => audit.reason = Some(why),
        (Decision::Allowed, Some(directory)) => {
            audit.reason = Some(format!("the file may be read, but {} is not in the listing", directory.display()));
        }
        (Decision::Allowed, None) => audit.state = ReadState::Readable,
    }
    audit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn artifacts_lie_where_dexopt_says_beside_the_apk_or_in_the_cache() {
        let odex =
            |apk, location| places(apk, "arm64", location).into_iter().map(|place| place.odex).collect::<Vec<_>>();
        assert_eq!(
            odex("/data/app/~~a==/p-b==/base.apk", None),
            [
                "/data/app/~~a==/p-b==/oat/arm64/base.odex",
                "/data/dalvik-cache/arm64/data@app@~~a==@p-b==@base.apk@classes.dex"
            ]
        );
        let at = "/data/dalvik-cache/arm64/product@app@X@X.apk@classes.dex";
        assert_eq!(odex("/product/app/X/X.apk", Some(at))[..2], [at, "/product/app/X/oat/arm64/X.odex"]);
        let named = places("/data/app/b/base.apk", "arm64", Some("/data/app/b/oat/arm64/base.odex"));
        assert_eq!(named.len(), 2, "named and beside are one: {named:?}");
    }
}
