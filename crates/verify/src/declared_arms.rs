//! Arms of a diagnosis that are no fix by themselves, each declared once: name, title, what it is for and what its figures show.
//!
//! Owns the words; who launches an arm takes its name from here, so that `slowpath explain` knows every name that a verdict can
//! have. Fixes explain themselves (crate `fix`), and arms of `launch` and of `context bisect` have the user's names.

use crate::comparison::{Arm, Role};

/// An arm, declared.
#[derive(Debug)]
pub struct DeclaredArm {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a few words.
    pub title: &'static str,
    /// What it is for.
    pub role: Role,
    /// How it is launched, and what its figures show.
    pub what: &'static str,
}

impl DeclaredArm {
    /// The arm.
    pub fn arm(&self) -> Arm {
        Arm { name: self.name.to_owned(), title: self.title.to_owned(), role: self.role, sham: None }
    }
}

/// The baseline of cold launches.
pub const COLD: DeclaredArm = DeclaredArm {
    name: "cold",
    title: "nothing in memory",
    role: Role::Baseline,
    what: "The launch as it is, in a lab where no page of its files is in the page cache, which is checked page by page. Cold \
           arms are compared with it.",
};

/// What a cold launch can reach at best.
pub const WARM: DeclaredArm = DeclaredArm {
    name: "warm",
    title: "everything in memory",
    role: Role::Warm,
    what: "The same launch in the same lab after another one, with what recorded launches read in memory; it counts if it reads at most \
           256 KiB. Its difference from cold is the most that reading ahead can save.",
};

/// The baseline of warm launches.
pub const UNTREATED: DeclaredArm = DeclaredArm {
    name: "untreated",
    title: "as it is",
    role: Role::Baseline,
    what: "The warm launch as it is. Its environment is padded to the size of the largest among the arms, because the size alone \
           moves the stack and can make a program some percent faster or slower.",
};

/// The sham of fixes that set variables.
pub const SHAM_ENVIRONMENT: DeclaredArm = DeclaredArm {
    name: "sham_environment",
    title: "an environment of the same size that has no effect",
    role: Role::Sham,
    what: "GLIBC_TUNABLES with a setting at its default. A fix that sets variables has to beat this arm too: what both gain comes \
           from having the variable, not from its value.",
};

/// The sham of fixes that change permissions of files.
pub const SHAM_FILES: DeclaredArm = DeclaredArm {
    name: "sham_files",
    title: "the same files in the same mounts, denied as before",
    role: Role::Sham,
    what: "The files of all such fixes in private mounts as a fix has them, with the permissions that they have outside. What both gain \
           comes from the mounts and the copies, not from the permissions.",
};

/// The sham of regenerated artifacts.
pub const SHAM_REGENERATED: DeclaredArm = DeclaredArm {
    name: "sham_regenerated",
    title: "the same directories in the same mounts, with nothing made in them",
    role: Role::Sham,
    what: "The directories of all such fixes in private mounts as a fix has them, as they are outside, and no program gives privileges. What \
           both gain comes from the mounts, not from the artifacts.",
};

/// The sham of the wrapper of a preload plan.
pub const SHAM_EMPTY: DeclaredArm = DeclaredArm {
    name: "sham_empty",
    title: "the same wrapper with an empty plan",
    role: Role::Sham,
    what: "`slowpath preload run` with a plan of no ranges: what the wrapper costs or gains without reading ahead.",
};

/// The sham of reading.
pub const SHAM_UNRELATED: DeclaredArm = DeclaredArm {
    name: "sham_unrelated",
    title: "the same volume of reads from an unrelated file",
    role: Role::Sham,
    what: "A plan of as many bytes as the fix reads, from a file that the launch does not need: what reading as such costs or \
           gains, by waking the device for example.",
};

/// What vmtouch and others do.
pub const WHOLE_FILES: DeclaredArm = DeclaredArm {
    name: "whole_files",
    title: "advice on every needed file as a whole, as vmtouch does",
    role: Role::Rival,
    what: "What simpler tools do: every file of which the launch needs a page is read from its beginning to its end. It is judged \
           against cold as the plan is; whether it differs from the plan is not tested. It reads more (column read), which costs \
           most where files are large and little of them is needed.",
};

/// The sham of another readahead.
pub const SHAM_READAHEAD: DeclaredArm = DeclaredArm {
    name: "sham_readahead",
    title: "the readahead of the device set again to what it is",
    role: Role::Sham,
    what: "The cold launch after what a fix of the readahead does to the lab's device, with the size that it has: what both gain comes from \
           the change, not from the size.",
};

const fn variant(name: &'static str, title: &'static str, what: &'static str) -> DeclaredArm {
    DeclaredArm { name, title, role: Role::Fix, what }
}

/// Ranges in the order of the files.
pub const ORDER_FILE: DeclaredArm = variant(
    "order_file",
    "ranges file by file",
    "A preload plan whose ranges are sorted by file and offset instead of by first use.",
);

/// Ranges in no order.
pub const ORDER_RANDOM: DeclaredArm =
    variant("order_random", "ranges at random", "A preload plan with shuffled ranges: shows the gain of the order.");

/// No merging.
pub const GAP_0: DeclaredArm = variant(
    "gap_0",
    "no merging over gaps",
    "A preload plan with only the pages that are needed: more requests, no byte too much.",
);

/// Merging over small gaps.
pub const GAP_8: DeclaredArm = variant(
    "gap_8",
    "merging over 8 pages",
    "A preload plan that merges ranges with up to 8 pages between them: fewer requests, more bytes.",
);

/// Merging over large gaps.
pub const GAP_32: DeclaredArm = variant(
    "gap_32",
    "merging over 32 pages",
    "A preload plan that merges ranges with up to 32 pages between them: fewer requests, more bytes.",
);

/// Small ranges.
pub const CAP_64K: DeclaredArm =
    variant("cap_64k", "ranges up to 64 KiB", "A preload plan that asks for at most 64 KiB at once.");

/// Large ranges.
pub const CAP_1M: DeclaredArm =
    variant("cap_1m", "ranges up to 1 MiB", "A preload plan that asks for up to 1 MiB at once.");

/// Two threads.
pub const THREADS_2: DeclaredArm =
    variant("threads_2", "two threads", "A preload plan that two threads replay, each taking the next range.");

/// Four threads.
pub const THREADS_4: DeclaredArm =
    variant("threads_4", "four threads", "A preload plan that four threads replay, each taking the next range.");

/// More bytes asked for and not there yet.
pub const IN_FLIGHT_4M: DeclaredArm = variant(
    "in_flight_4m",
    "at most 4 MiB on their way",
    "A preload plan that keeps up to 4 MiB asked for and not read yet.",
);

/// No limit of that.
pub const ALL_AT_ONCE: DeclaredArm = variant(
    "all_at_once",
    "all asked for at once",
    "A preload plan without a limit on what is asked for and not read yet: what the launch needs and the plan lacks waits behind \
     all of it in the device's queue.",
);

/// Files opened ahead.
pub const METADATA: DeclaredArm = variant(
    "metadata",
    "files opened ahead by a thread",
    "A preload plan beside which a thread opens all files first, so that inodes and directories are read while data is.",
);

/// All.
pub const ALL: [&DeclaredArm; 22] = [
    &COLD,
    &WARM,
    &UNTREATED,
    &SHAM_ENVIRONMENT,
    &SHAM_FILES,
    &SHAM_REGENERATED,
    &SHAM_EMPTY,
    &SHAM_UNRELATED,
    &WHOLE_FILES,
    &SHAM_READAHEAD,
    &ORDER_FILE,
    &ORDER_RANDOM,
    &GAP_0,
    &GAP_8,
    &GAP_32,
    &CAP_64K,
    &CAP_1M,
    &THREADS_2,
    &THREADS_4,
    &IN_FLIGHT_4M,
    &ALL_AT_ONCE,
    &METADATA,
];

/// The declaration of the arm of this name.
pub fn named(name: &str) -> Option<&'static DeclaredArm> {
    ALL.into_iter().find(|arm| arm.name == name)
}
