//! What a bisection chooses for a launch: the two sides as they were given, or reproduced with some candidates slow and the others fast.

use std::collections::BTreeSet;

/// Which of the two sides to run the command, or which value of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The one that is taken for faster.
    Fast,
    /// The other.
    Slow,
}

/// Candidates by their place in the list of candidates.
pub type Group = BTreeSet<usize>;

/// The side that a launch is, or the value that each candidate has in it. What fixes do to a launch is another matter
/// (`slowpath_fix::Treatment`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Choice {
    /// As the user would run it: behind the wrapper that was given.
    Given(Side),
    /// Reproduced: these candidates have their slow value, all others their fast one.
    Slow(Group),
}

impl Choice {
    /// Every candidate fast.
    pub fn fast() -> Self {
        Self::Slow(Group::new())
    }

    /// Every candidate of `count` slow.
    pub fn slow(count: usize) -> Self {
        Self::Slow((0..count).collect())
    }

    /// Every candidate slow but for `group`.
    pub fn without(group: &Group, count: usize) -> Self {
        Self::Slow((0..count).filter(|one| !group.contains(one)).collect())
    }

    /// In words, of a context as a whole.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Given(Side::Fast) => "the fast side",
            Self::Given(Side::Slow) => "the slow side",
            Self::Slow(group) if group.is_empty() => "the reproduced fast context",
            Self::Slow(_) => "the reproduced slow context",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_candidate_alone_is_both_ways_whole() {
        let one = Group::from([0]);
        assert_eq!(Choice::Slow(one.clone()), Choice::slow(1));
        assert_eq!(Choice::without(&one, 1), Choice::fast());
    }
}
