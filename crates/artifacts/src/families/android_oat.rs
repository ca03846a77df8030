//! What Android compiles of an app: odex, vdex and art files (source.android.com/docs/core/runtime/configure).

use super::family::{Family, FreshnessOf, Regeneration, Trace, everybody, lies_in, never_missing};
use crate::access::FileKind;
use std::path::Path;

/// The family.
pub const ANDROID_OAT: Family = Family {
    name: "android_oat",
    title: "compiled code of Android apps",
    recognised_by: "`*.odex`, `*.vdex`, `*.oat` and `*.art` below `oat` or `dalvik-cache`",
    derives_from: "the DEX files in the APK, and the boot image",
    stale_when: "never decided: ART compares checksums of the DEX files in the APK and of the boot image",
    fallback: "each process takes the DEX code out of the APK, verifies and interprets it (`run-from-apk` in `dumpsys package dexopt`). \
               Isolated processes (uid 90000 and above) read only what others may read, and installd takes that right (0640) from what was \
               compiled with a profile",
    by_hand: "`cmd package compile -m speed -f PACKAGE`, or `-r shared`, at the price of a slower main process and more energy",
    regeneration: Regeneration::BY_THE_PROGRAM,
    shared_by: "`-r shared` of `cmd package compile`: compiled without the profile, and readable for every user",
    trace: Trace::OfAnyFile,
    recognises,
    is_needed_by: everybody,
    freshness: FreshnessOf::Nothing("only ART compares it with the APK"),
    missing: never_missing,
};

fn recognises(path: &Path, kind: FileKind) -> bool {
    let is_compiled =
        || path.extension().is_some_and(|end| ["odex", "vdex", "oat", "art"].iter().any(|one| end == *one));
    kind == FileKind::Regular
        && is_compiled()
        && path.parent().is_some_and(|parent| lies_in(parent, &["oat", "dalvik-cache"]))
}
