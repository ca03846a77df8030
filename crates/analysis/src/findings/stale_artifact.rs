//! Finding `stale_artifact`: processes read a compiled or cached file, and then do the work again that it should have saved.
//!
//! **What is bad.** The artifact is there and can be read, and does not fit: its source was changed, or it is of another version. The
//! program reads it in vain, reads the source, does the work, and saves the result, which it is refused; so the next process does the
//! same. Or every process may save it, and each throws away what another one saved.
//!
//! **Cost.** As of [`super::unreadable_artifact`], from the open of the artifact on.
//!
//! **Predicted saving.** The cost. Reading the artifact, which has to be done all the same, is in it.
//!
//! **No finding** where the source that was read is not named like the artifact; where nobody tried to save the result (a program that was
//! told not to, as `python3 -B`): files that are read one after the other are no sign of anything. What one process saves and the others
//! then use is none either.
//!
//! **Confidence.** See [`super::fallback_finding`].

use super::fallback_finding::{FindingKind, find};
use super::materiality;
use super::unreadable_artifact::SHARE_ARTIFACT;
use crate::declaration::{Declaration, ShowsIn};
use crate::io::fallbacks::Problem;
use crate::needs::Need;

/// Name of the finding.
pub const NAME: &str = "stale_artifact";

/// The fix: a user who may save the file makes it anew.
pub const REGENERATE_ARTIFACT: &str = "regenerate_artifact";

/// The finding.
pub const FINDING: Declaration = Declaration {
    name: NAME,
    former: &[],
    title: "compiled or cached files that do not fit",
    what: "A process reads a compiled or cached file, then the source it was made from, repeats the work, and is not allowed to save the \
        result; or several processes save it one after the other.",
    why: "Every process repeats the work, as if there were no file. Copying or unpacking the source again is enough to cause it.",
    helps: "Regenerate the file as a user who may write it (regenerate_artifact: `python3 -m compileall -f DIRECTORY`), whenever the \
        source changes. `sudo slowpath \
            artifacts audit --recording DIR` says which files are stale and why. Trade-off: one more installation step.",
    by_hand: "strace -f -Z -e trace=openat -- COMMAND lists writes that fail; one beside a cache file that was opened before with its \
              source is one",
    threshold: materiality::THRESHOLD,
    needs: &[Need::Opens],
    shows_in: ShowsIn::AnyWork,
    find: |input| find(input, &KIND),
};

const KIND: FindingKind = FindingKind {
    name: NAME,
    problem: Problem::Unfit,
    verbs: ("reads", "read"),
    ending: " in vain",
    fixes: &[REGENERATE_ARTIFACT, SHARE_ARTIFACT],
    by_hand: FINDING.by_hand,
};
