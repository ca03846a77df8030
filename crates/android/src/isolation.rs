//! Users of isolated processes: a service with `android:isolatedProcess` runs as a user of its own, which has no groups of the app.
//!
//! Numbers of system/core/libcutils/include/private/android_filesystem_config.h and of android.os.Process; that an isolated process gets
//! none of its app's groups: `computeGidsForProcess` is called only `if (!app.isolated)` (services, ProcessList.java).

use slowpath_artifacts::access::Identity;

/// `AID_USER_OFFSET`: users of one person on the device.
const USER_OFFSET: u32 = 100_000;
/// `FIRST_APP_ZYGOTE_ISOLATED_UID`: children of an app's own zygote, since Android 10.
const FIRST_OF_APP_ZYGOTE: u32 = 90_000;
/// `FIRST_ISOLATED_UID`.
const FIRST: u32 = 99_000;
/// `LAST_ISOLATED_UID`.
const LAST: u32 = 99_999;

/// For whom an audit decides: the first of them. All have the same rights to files of others, for they own none.
pub const AUDITED_UID: u32 = FIRST;

/// A kind of isolated user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// A process that was forked from the zygote of all apps.
    Isolated,
    /// A process that was forked from its app's own zygote, which has loaded what it needs.
    OfAppZygote,
}

/// The kind of this user; `None` of an app's own and of the system's.
pub fn isolation(uid: u32) -> Option<Isolation> {
    match uid % USER_OFFSET {
        FIRST_OF_APP_ZYGOTE..FIRST => Some(Isolation::OfAppZygote),
        FIRST..=LAST => Some(Isolation::Isolated),
        _ => None,
    }
}

/// An isolated process to the kernel.
pub fn isolated_identity() -> Identity {
    Identity::new(AUDITED_UID, AUDITED_UID, Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ranges_are_those_of_every_person_on_the_device() {
        for uid in [99_000, 99_999, 1_099_123] {
            assert_eq!(isolation(uid), Some(Isolation::Isolated), "{uid}");
        }
        for uid in [90_000, 98_999, 1_090_001] {
            assert_eq!(isolation(uid), Some(Isolation::OfAppZygote), "{uid}");
        }
        for uid in [0, 1000, 2000, 10_123, 89_999, 100_000, 1_010_123] {
            assert_eq!(isolation(uid), None, "{uid}");
        }
    }
}
