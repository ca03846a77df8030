//! An audit of a listing: who can read what is decided as far as the listing shows it; whether an artifact is stale is not.

use super::artifact::{Artifact, State, commands, text};
use super::{Audit, sort};
use crate::access::{Access, Decision, Identity, decide, smallest_change};
use crate::families;
use crate::gather::Listing;
use slowpath_tables::missing::declared;
use std::path::Path;

/// Audits all artifacts of a listing.
pub fn audit_listing(listing: &Listing, identity: &Identity) -> Audit {
    let mut audit = Audit::default();
    for (path, file) in listing.files() {
        audit.entries += 1;
        if let Some(family) = families::of(path, file.kind)
            && file.kind == crate::access::FileKind::Regular
            && (family.is_needed_by)(path, identity.uid)
            && let Some(artifact) = judged(listing, path, family.name, identity)
        {
            audit.artifacts.push(artifact);
        }
    }
    if listing.skipped > 0 {
        audit.unavailable.push(declared::LISTED_LINES.of(
            &[&listing.skipped],
            "they are none of `ls -l`",
            "list with `ls -lanRZ DIR`, without colours and aliases",
        ));
    }
    sort(&mut audit);
    audit
}

fn judged(listing: &Listing, path: &Path, family: &str, identity: &Identity) -> Option<Artifact> {
    let (lookup, unshown) = listing.lookup(path)?;
    let (mut denied_by, mut change, mut reason) = (None, None, None);
    let state = match decide(identity, &lookup, Access::Read) {
        Decision::Denied(denial) => {
            change = smallest_change(identity, &lookup, Access::Read).map(|changes| commands(&changes));
            denied_by = Some((&denial).into());
            State::Unreadable
        }
        Decision::Unknown { why } => {
            reason = Some(why);
            State::Unknown
        }
        Decision::Allowed => {
            let rest = match unshown {
                Some(directory) => format!("{} is not in the listing", directory.display()),
                None if listing.is_labelled() => "the policy of SELinux is not in it".to_owned(),
                None => "whether it is stale, a listing does not show".to_owned(),
            };
            reason = Some(format!("what the listing shows allows it, but {rest}"));
            State::Unknown
        }
    };
    let (path, family, uid) = (text(path), family.to_owned(), identity.uid);
    Some(Artifact { path, family, state, uid, denied_by, change, reason, cost: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An app that was compiled with a profile, as Android 7 and later leave it.
    const LISTING: &[u8] = b"/data/app/a/oat/arm64:\n\
-rw-r----- 1 system u0_a123 u:object_r:dalvikcache_data_file:s0 9 2020-03-01 10:00 base.odex\n\
-rw-r--r-- 1 system u0_a123 u:object_r:dalvikcache_data_file:s0 9 2020-03-01 10:00 base.vdex\n\
-rw------- 1 system u0_a123 u:object_r:dalvikcache_data_file:s0 9 2020-03-01 10:00 notes.txt\n";

    #[test]
    fn what_an_isolated_process_cannot_read_of_an_app_is_unreadable_and_the_rest_unknown() {
        let audit = audit_listing(&Listing::parse(LISTING), &Identity::new(99_001, 99_001, Vec::new()));
        let states: Vec<(&str, State)> =
            audit.artifacts.iter().map(|artifact| (artifact.path.as_str(), artifact.state)).collect();
        let path = |name: &str| format!("/data/app/a/oat/arm64/{name}");
        assert_eq!(
            states,
            [(path("base.odex").as_str(), State::Unreadable), (path("base.vdex").as_str(), State::Unknown)]
        );
        assert_eq!(audit.artifacts[0].change.as_deref(), Some("chmod o+r /data/app/a/oat/arm64/base.odex"));
        assert!(audit.artifacts[1].reason.as_ref().unwrap().contains("/ is not in the listing"));
    }

    #[test]
    fn the_app_itself_can_read_what_isolated_processes_cannot() {
        let audit = audit_listing(&Listing::parse(LISTING), &Identity::new(10_123, 10_123, Vec::new()));
        assert!(audit.artifacts.iter().all(|artifact| artifact.state == State::Unknown), "{audit:?}");
    }
}
