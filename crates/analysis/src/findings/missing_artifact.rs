//! Finding `missing_artifact`: processes look for a compiled or cached file that was never made, and each does its work.
//!
//! **What is bad.** The file is not there. The program does the work and saves the result for the next one, which it is refused: the
//! directory belongs to somebody else, or is read-only. Or every process saves it and none finds it.
//!
//! **Cost.** As of [`super::unreadable_artifact`], from the open that found nothing on.
//!
//! **Predicted saving.** The cost. What reading the file would cost is not taken off.
//!
//! **No finding** for ordinary searches (libraries, optional configuration): nobody makes what was looked for. Of a program that is refused
//! to make the directory, and then does not try to save, that call is the end. Recordings of earlier versions hold opens alone: there it
//! shows only where the directory lies below the source's and nobody opens anything in it (`__pycache__`), for at least three files whose
//! sources say how long one takes. Of a family whose sources are read one by one (a cache of fonts) it is enough that
//! their directory is listed and they are read, and that no file of the same name was opened elsewhere. A program that asks whether the file is there (stat(2), ENOENT) and never opens it is not seen.
//!
//! **Confidence.** See [`super::fallback_finding`].

use super::fallback_finding::{FindingKind, find};
use super::materiality;
use super::stale_artifact::REGENERATE_ARTIFACT;
use super::unreadable_artifact::SHARE_ARTIFACT;
use crate::declaration::{Declaration, ShowsIn};
use crate::io::fallbacks::Problem;
use crate::needs::Need;

/// Name of the finding.
pub const NAME: &str = "missing_artifact";

/// The finding.
pub const FINDING: Declaration = Declaration {
    name: NAME,
    former: &[],
    title: "compiled or cached files that were never made",
    what: "A process looks for a compiled or cached file that is not there (ENOENT), does the work, and is not allowed to save the \
        result or create its directory; or several processes make the same file one after the other.",
    why: "Every process repeats the work. It happens only where the program's user may not write to its installation.",
    helps: "Make the file once as a user who may (regenerate_artifact: `python3 -m compileall DIRECTORY`, at installation). Trade-off: \
        disk space, and one more installation step.",
    by_hand: "strace -f -Z -e trace=file -- COMMAND lists calls that fail: ENOENT of a file, and later EACCES or EROFS where it should \
              be made, is one",
    threshold: materiality::THRESHOLD,
    needs: &[Need::Opens],
    shows_in: ShowsIn::AnyWork,
    find: |input| find(input, &KIND),
};

const KIND: FindingKind = FindingKind {
    name: NAME,
    problem: Problem::Absent,
    verbs: ("has no", "have no"),
    ending: "",
    fixes: &[REGENERATE_ARTIFACT, SHARE_ARTIFACT],
    by_hand: FINDING.by_hand,
};
