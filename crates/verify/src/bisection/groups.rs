//! Which candidates are tried by themselves and which as one.

use super::candidate::{Candidate, Expected};
use super::choice::Group;

/// Up to so many are tried one by one rather than in parts: each part must be compared with the whole contexts anew.
const ONE_BY_ONE: usize = 8;
/// Members of a part of a larger group.
const PART: usize = 4;

/// The groups to begin with: each of those that are known to matter, and all others as one. Where even that takes more than is
/// `affordable`, those that are expected least join the others.
pub(super) fn first(candidates: &[Candidate], affordable: impl Fn(usize) -> bool) -> Vec<Group> {
    let mut alone: Vec<usize> =
        (0..candidates.len()).filter(|one| candidates[*one].expected < Expected::Little).collect();
    let mut others: Group = (0..candidates.len()).filter(|one| !alone.contains(one)).collect();
    alone.sort_by_key(|one| candidates[*one].expected);
    while alone.len() > 1 && !affordable(alone.len() + usize::from(!others.is_empty())) {
        others.extend(alone.pop());
    }
    let mut groups: Vec<Group> = alone.into_iter().map(|one| Group::from([one])).collect();
    if !others.is_empty() {
        groups.push(others);
    }
    match groups.as_slice() {
        // All of them at once are the whole contexts, which says nothing new.
        [all] if all.len() > 1 => parts(all),
        _ => groups,
    }
}

/// What a group is divided into.
pub(super) fn parts(group: &Group) -> Vec<Group> {
    let members: Vec<usize> = group.iter().copied().collect();
    let size = if members.len() <= ONE_BY_ONE { 1 } else { PART };
    members.chunks(size).map(|part| part.iter().copied().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(expected: &[Expected]) -> Vec<Candidate> {
        expected.iter().map(|expected| Candidate { expected: *expected, counters: Vec::new() }).collect()
    }

    #[test]
    fn what_is_known_to_matter_is_tried_by_itself_and_the_rest_as_one() {
        use Expected::{Heavy, Little, Moderate};
        let groups = first(&candidates(&[Little, Heavy, Moderate, Little, Little]), |_| true);
        assert_eq!(groups, [Group::from([1]), Group::from([2]), Group::from([0, 3, 4])]);
        assert_eq!(first(&candidates(&[Little; 3]), |_| true), [0, 1, 2].map(|one| Group::from([one])));
        assert_eq!(first(&candidates(&[Little]), |_| true), [Group::from([0])]);
        assert!(first(&[], |_| true).is_empty());
    }

    #[test]
    fn where_time_is_short_what_is_expected_least_is_tried_as_one() {
        use Expected::{Heavy, Little, Moderate};
        let groups = first(&candidates(&[Moderate, Heavy, Heavy, Little]), |groups| groups <= 3);
        assert_eq!(groups, [Group::from([1]), Group::from([2]), Group::from([0, 3])]);
        assert_eq!(first(&candidates(&[Heavy; 3]), |_| false), [Group::from([0]), Group::from([1, 2])]);
    }

    #[test]
    fn a_large_group_is_divided_in_parts_and_a_small_one_in_its_members() {
        assert_eq!(parts(&(0..8).collect()).len(), 8);
        let large = parts(&(0..10).collect());
        assert_eq!(large, [(0..4).collect(), (4..8).collect(), Group::from([8, 9])]);
    }
}
