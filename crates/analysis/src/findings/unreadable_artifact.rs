//! Finding `unreadable_artifact`: processes may not read a compiled or cached file, and do the work again that it holds.
//!
//! **What is bad.** The artifact is there, and the user of the process is denied (EACCES, EPERM). The program says nothing and falls back:
//! it reads the source and compiles, computes, builds; often it is refused to save the result too. So does the next process.
//!
//! **Cost.** CPU time of the work that follows the denied opens and looks (access(2), stat(2)), over all processes, in ms ([`super::fallback_cost`] has the rules). An
//! upper estimate, unless siblings could open the same files. Artifacts of one family are one finding, whose subject names the most
//! costly of them.
//!
//! **Predicted saving.** The cost.
//!
//! **No finding** where the file was opened with success later in the same process, or a copy of the same name elsewhere; where nothing
//! shows that its work was done again: nothing saved, no source of a like name (of a file that was looked at alone, that does not count), no sibling that was faster, and the family of the file says
//! no more ([`slowpath_artifacts::families::Trace`]); below the threshold of findings about memory ([`super::materiality`]). A file that is
//! not there is no denied one.
//!
//! **Confidence.** See [`super::fallback_finding`].

use super::fallback_finding::{FindingKind, find};
use super::materiality;
use crate::declaration::{Declaration, ShowsIn};
use crate::io::fallbacks::Problem;
use crate::needs::Need;

/// Name of the finding.
pub const NAME: &str = "unreadable_artifact";

/// The fix: the user may read the file.
pub const GRANT_READ: &str = "grant_read";
/// The fix: a copy in a place that every user reads.
pub const SHARE_ARTIFACT: &str = "share_artifact";
/// The fix: the process runs as a user who may read it.
pub const DROP_ISOLATION: &str = "drop_isolation";

/// The finding.
pub const FINDING: Declaration = Declaration {
    name: NAME,
    former: &[],
    title: "compiled or cached files that may not be read",
    what: "The open of a compiled or cached file, or a look at it (access(2), stat(2)), is denied (EACCES, EPERM), and the process \
        repeats the work whose result the file holds: it reads the source instead, compiles or computes, and may not be allowed to save \
        the result.",
    why: "Every process of that user repeats it silently. Root may read everything, so a developer with sudo never sees it.",
    helps: "Let the user read the file and enter its directories (grant_read); `sudo slowpath artifacts audit --recording DIR` names the rule that \
            denies and the smallest change. Trade-off: others with the same right can read the file too. Else a copy for all \
            (share_artifact), or, \
            last, a user who may (drop_isolation).",
    by_hand: "strace -f -Z -e trace=file -- COMMAND, as that user, lists the calls that fail; EACCES on a cache file, with its source \
              opened next, is one",
    threshold: materiality::THRESHOLD,
    needs: &[Need::Opens],
    shows_in: ShowsIn::AnyWork,
    find: |input| find(input, &KIND),
};

const KIND: FindingKind = FindingKind {
    name: NAME,
    problem: Problem::Denied,
    verbs: ("cannot read", "cannot read"),
    ending: "",
    fixes: &[GRANT_READ, SHARE_ARTIFACT, DROP_ISOLATION],
    by_hand: FINDING.by_hand,
};
