//! The terms that stand on the screens and in the page, each explained once.
//!
//! Owns terms that are no finding, fix, factor, arm, verdict, row or metric: those declare themselves. `slowpath explain` and
//! `docs/reference/terms.md` are made from here. Terms that the kernel's documentation or a man page explains are left to it.

/// A term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// As it stands on screens.
    pub name: &'static str,
    /// In a few words.
    pub title: &'static str,
    /// What it means.
    pub what: &'static str,
}

/// The name of the term that explains the keys of `losses`.
pub const LOST_EVENTS: &str = "lost events";

/// All of them.
pub const ALL: [Term; 17] = [
    Term {
        name: "arm",
        title: "one variant of a launch in an experiment",
        what: "The untreated launch, the launch with a fix, a sham, or the launch with everything in memory. It is \
               launched once in every block until no open fix is compared with it.",
    },
    Term {
        name: "block",
        title: "one launch of every arm that has not ended, right after each other",
        what: "The order of the arms changes from block to block and is balanced over the experiment, so that load that comes \
               and goes meets all arms alike. Arms are compared within blocks: each block gives one difference.",
    },
    Term {
        name: "sham",
        title: "an arm with a fix's wrapper and without its effect",
        what: "The same wrapper with an empty plan, the same volume of reads from an unrelated file, an environment of the same \
               size, or the same private mounts without the change. A fix counts as proved only if it beats its sham too.",
    },
    Term {
        name: "ready",
        title: "the end of a launch's time",
        what: "The moment that --ready names: the command's exit (the default), a line of its output, a port that answers, or a \
               page of a browser. Time to ready runs from the release of exec to that moment.",
    },
    Term {
        name: "cold",
        title: "a launch with none of its files in memory",
        what: "The command's files lie in an image of their own, which is mounted anew for every launch in a private mount \
               namespace. A launch that was not cold, checked page by page, is discarded and counted.",
    },
    Term {
        name: "warm",
        title: "a launch with all of its files in memory",
        what: "The same launch right after another one, with what recorded launches read in memory: at most 256 KiB are read from \
               storage.",
    },
    Term {
        name: "lab",
        title: "where cold launches run",
        what: "A copy of the files that the command reads, in an ext4 image on a loop device, seen by that launch only. No cache \
               of the machine is dropped, and nothing is left behind. `slowpath lab run` shows one such launch.",
    },
    Term {
        name: "preload plan",
        title: "file ranges to read early, in the order of first use",
        what: "A file made from recorded launches. `slowpath preload run PLAN -- CMD` asks the kernel to read the ranges beside \
               the start of the command.",
    },
    Term {
        name: "cold-warm difference",
        title: "what reading from storage costs a launch",
        what: "The median cold launch less the median warm one. \"Removes 80 % of the cold-warm difference\" means that the fix covers 80 % of the \
               distance from cold to warm.",
    },
    Term {
        name: "predicted",
        title: "the change that was computed before the first launch with the fix",
        what: "It is stored before the trial and printed beside the measured value. Its range goes from the least to the most \
               that the recordings of warm launches allow, or that six cold and six warm pilot launches do. A finding's cost \
               counts less than the prediction of a preload plan: that also counts what a launch runs only because it reads. The \
               launches that judge a fix are never those that it was made from.",
    },
    Term {
        name: "95 % interval",
        title: "the confidence interval of a median or of a paired difference",
        what: "Differences are Hodges-Lehmann estimates of the pairs of a block, with the interval of the signed rank. The arms \
               of one diagnosis, cold and warm, share one error rate: all their intervals hold together with 95 %.",
    },
    Term {
        name: "confidence",
        title: "how far a finding's cost can be trusted: high, medium or low",
        what: "A rule with thresholds: lost events, probes that were not available, the number of launches, the width of the \
               interval. The reasons stand beside it in the report and in the JSON.",
    },
    Term {
        name: "critical path",
        title: "the chain of threads that the end of the launch waited for",
        what: "Followed backwards from ready: where a thread was blocked, the path goes on in the thread that woke it. Time \
               beside the path can be saved without the launch ending sooner.",
    },
    Term {
        name: "unexplained",
        title: "time on the critical path for which nothing was recorded",
        what: "Printed rather than spread over the other rows. The rows and this one add up to the total.",
    },
    Term {
        name: LOST_EVENTS,
        title: "kernel events that did not reach the recording, counted by kind",
        what: "A ring buffer that was full, a writer that fell behind, or a program that the kernel did not run. Losses lower \
               the confidence of what they could have changed. `losses` counts them by table; before a dot stands why, where it was \
               not the ring buffer: `writer_behind.`, `over_memory_limit.`, `not_run.` (the kernel did not run the BPF program), \
               `not_written.` (disk), `damaged.`, `impossible.`, `not_sampled.`, or another tool's name. `any` stands for all tables.",
    },
    Term {
        name: "unavailable",
        title: "what this machine, or this recording, cannot show",
        what: "Listed with the reason and the remedy in every result; `slowpath doctor` lists it for the machine.",
    },
    Term {
        name: "n",
        title: "launches of an arm that count, of all its launches",
        what: "A launch that failed, or that was not as cold as it was to be, does not count.",
    },
];
