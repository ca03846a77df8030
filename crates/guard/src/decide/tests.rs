//! Every outcome from what leads to it, and what must hold whatever was found.

use super::*;
use crate::tries::Ended;
use proptest::prelude::*;

fn checked(uid: u32, found: Outcome) -> Checked {
    let (denied_by, change) = (None, (found == Outcome::Unreadable).then(|| format!("chmod for {uid}")));
    Checked { artifact: 0, path: 0, user: Some(0), uid: Some(uid), found, denied_by, change, reason: None, ms: 0.1 }
}

fn all(found: &[Outcome]) -> Vec<Checked> {
    found.iter().zip(1..).map(|(found, uid)| checked(uid, *found)).collect()
}

fn now(end: End, after: &[Outcome]) -> Attempt {
    Attempt::Now { end, ms: 5.0, after: all(after) }
}

fn outcomes(found: &[Outcome], attempt: &Attempt) -> Vec<Outcome> {
    count(all(found), attempt).into_iter().map(|one| one.outcome).collect()
}

use Outcome::{Missing, NotNeeded, RepairFailed, Repaired, Stale, Unknown, Unreadable, Usable};

const EXIT_0: End = End::Exited(Some(0));

#[test]
fn without_a_repair_what_was_found_is_counted() {
    let found = [NotNeeded, Usable, Missing, Unreadable, Stale, Unknown];
    for attempt in [Attempt::None, Attempt::Running, Attempt::Refused("why".to_owned())] {
        assert_eq!(outcomes(&found, &attempt), found, "{attempt:?}");
    }
    let refused = count(all(&[Usable, Missing]), &Attempt::Refused("why".to_owned()));
    assert_eq!((refused[0].repair, refused[1].repair), (None, Some(RepairState::Refused)));
    assert_eq!(refused[1].repair_reason.as_deref(), Some("why"));
}

#[test]
fn a_repair_counts_when_every_user_can_use_the_artifact_whatever_the_command_said() {
    assert_eq!(outcomes(&[Unreadable, Usable], &now(EXIT_0, &[Usable, Usable])), [Repaired, Usable]);
    assert_eq!(outcomes(&[Missing, NotNeeded], &now(EXIT_0, &[Usable, NotNeeded])), [Repaired, NotNeeded]);
    let counted = count(all(&[Missing]), &now(End::Exited(Some(3)), &[Usable]));
    assert_eq!((counted[0].outcome, counted[0].repair), (Repaired, Some(RepairState::Failed)));
    assert_eq!((counted[0].repair_status, counted[0].found), (Some(3), Missing));
}

#[test]
fn a_repair_that_leaves_one_user_out_failed_for_all_whom_it_was_for_and_names_who_denies() {
    let counted = count(all(&[Missing, Missing, Usable]), &now(EXIT_0, &[Usable, Unreadable, Usable]));
    let with_counts: Vec<Outcome> = counted.iter().map(|one| one.outcome).collect();
    assert_eq!(with_counts, [RepairFailed, RepairFailed, Usable]);
    assert!(counted[..2].iter().all(|one| one.checked.change.as_deref() == Some("chmod for 2")));
    assert_eq!(counted[0].checked.reason.as_deref(), Some("usable here, but unreadable for uid 2"));
    // What it broke, it failed at.
    assert_eq!(outcomes(&[Missing, Usable], &now(EXIT_0, &[Usable, Unreadable])), [RepairFailed, RepairFailed]);
}

#[test]
fn what_cannot_be_decided_after_a_repair_is_unknown() {
    assert_eq!(outcomes(&[Unreadable], &now(EXIT_0, &[Unknown])), [Unknown]);
    assert_eq!(outcomes(&[Unreadable, Unreadable], &now(EXIT_0, &[Unknown, Usable])), [Unknown, Unknown]);
}

#[test]
fn a_try_at_the_same_version_counts_as_failed_while_the_artifact_is_not_usable() {
    let ended = Some(Ended { time: "T1".to_owned(), status: Some(1), is_usable: false });
    let tried = |ended| {
        Attempt::Before(Try { version: "1".to_owned(), artifact: "a".to_owned(), began: "T0".to_owned(), ended })
    };
    let counted = count(all(&[Stale, Usable]), &tried(ended));
    assert_eq!((counted[0].outcome, counted[0].repair), (RepairFailed, Some(RepairState::TriedBefore)));
    assert_eq!((counted[0].repair_status, counted[1].outcome, counted[1].repair), (Some(1), Usable, None));
    let killed = count(all(&[Stale]), &tried(None));
    assert_eq!((killed[0].outcome, killed[0].repair), (RepairFailed, Some(RepairState::Interrupted)));
    assert!(killed[0].repair_reason.as_ref().unwrap().contains("T0"));
}

fn any_found() -> impl Strategy<Value = Outcome> {
    prop::sample::select(vec![NotNeeded, Usable, Missing, Unreadable, Stale, Unknown])
}

proptest! {
    #[test]
    fn an_artifact_is_repaired_only_where_everybody_can_use_it(
        lines in prop::collection::vec((any_found(), any_found()), 1..6),
        status in 0..3i32,
    ) {
        let (before, after): (Vec<Outcome>, Vec<Outcome>) = lines.into_iter().unzip();
        let counted = outcomes(&before, &now(End::Exited(Some(status)), &after));
        let are_fine = after.iter().all(|found| found.is_fine());
        prop_assert!(are_fine || !counted.contains(&Repaired));
        for (at, outcome) in counted.iter().enumerate() {
            // Nothing is counted as fine that is not, and nothing as wrong that nobody found wrong.
            prop_assert!(after[at].is_fine() || !outcome.is_fine(), "{outcome:?}");
            prop_assert!(*outcome != RepairFailed || after.iter().any(|found| found.calls_for_repair()));
            prop_assert!(!outcome.calls_for_repair());
        }
    }
}
