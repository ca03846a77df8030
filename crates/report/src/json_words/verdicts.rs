//! What launches said: of an arm, a fix, a limit, and a difference of two contexts.

use super::json_word::JsonWord;
use crate::explain::NameKind;

/// Its word, its title, and what it means.
type Verdict = (&'static str, &'static str, &'static str);

pub(super) fn all() -> impl Iterator<Item = JsonWord> {
    let all: [(NameKind, &'static [Verdict]); 5] = [
        (NameKind::Outcome, &OUTCOMES),
        (NameKind::Decision, &DECISIONS),
        (NameKind::CheckVerdict, &OF_CHECK),
        (NameKind::BisectionVerdict, &OF_CANDIDATES),
        (NameKind::BisectedCause, &CAUSES),
    ];
    all.into_iter().flat_map(|(kind, verdicts)| verdicts.iter().map(move |verdict| word(kind, *verdict)))
}

fn word(kind: NameKind, (name, title, what): Verdict) -> JsonWord {
    JsonWord { kind, name, shown: "", title, what, by_hand: "" }
}

const OUTCOMES: [Verdict; 5] = [
    (
        "helps",
        "less than the baseline",
        "The whole confidence interval of the difference lies below zero. Of a fix that holds against the baseline and against \
         its sham (the same wrapper without the fix).",
    ),
    ("hurts", "more than the baseline", "The whole confidence interval of the difference lies above zero."),
    (
        "no_difference",
        "no difference that matters",
        "The confidence interval holds zero, and all of it lies within ±2 % of the baseline's median.",
    ),
    (
        "inconclusive",
        "not decided",
        "The confidence interval holds zero and reaches beyond ±2 % of the baseline's median: more launches may decide. So is \
         a fix that beats the baseline and not its sham.",
    ),
    ("not_testable", "not testable", "It could not be launched, or there are too few pairs for an interval."),
];

const DECISIONS: [Verdict; 4] = [
    (
        "proved",
        "the fix helps",
        "Measured on launches that the fix was not made from: the whole interval lies below zero against the untreated launch \
         and against the sham. The 95 % are joint: of all arms of the diagnosis together.",
    ),
    (
        "withdrawn",
        "the fix does not help",
        "Launches show that it hurts, or the interval holds zero and lies within ±2 % of the untreated launch.",
    ),
    (
        "not_shown",
        "not decided",
        "The interval holds zero and reaches beyond ±2 %, or the fix beats the untreated launch and not its sham; more --blocks \
         may decide.",
    ),
    (
        "not_tried",
        "not launched",
        "The verdict says why: the program, the machine, the time, or a change of the source.",
    ),
];

const OF_CHECK: [Verdict; 4] = [
    (
        "within",
        "the limit is kept",
        "Counts and sizes: no launch exceeded it. Times: the whole confidence interval of the median, or of the quantile that \
         is limited, lies at or below it.",
    ),
    (
        "exceeded",
        "the limit is exceeded",
        "Counts and sizes: one launch or more exceeded it. Times: the whole confidence interval lies above it. `responsible` \
         names what caused it, as far as a recording shows. One exceeded limit makes the whole check exceeded.",
    ),
    (
        "undecided",
        "kept or exceeded is not known",
        "Times: the confidence interval holds the limit, there are too few launches for an interval, or the target hides \
         what its children take; more launches may decide. Counts and sizes: the recording may lack events, so that a small number is no proof. `reason` says which.",
    ),
    (
        "unavailable",
        "not measured here",
        "No launch has this number, or the recording does not hold it. `reason` says why.",
    ),
];

const OF_CANDIDATES: [Verdict; 8] = [
    (
        "cause",
        "a cause, or part of one",
        "It changes the time by more than 2 % and a tenth of the whole difference, the corrected interval excludes zero, and a \
         counter of its mechanism rose in the same launches. `causes` has the effect and the counters.",
    ),
    (
        "no_mechanism",
        "an effect, mechanism not shown",
        "It changes the time, and no counter of its mechanism rose in the same launches, so it is not called a cause.",
    ),
    (
        "among_several",
        "one of several that have an effect together",
        "These differences were only launched together, and together they change the time. Which of them does is not shown: \
         `tried_with` has the others.",
    ),
    (
        "no_effect",
        "no effect that matters",
        "Launches with and without it differ by less than what matters, with the whole corrected interval.",
    ),
    (
        "not_shown",
        "no effect shown",
        "The corrected interval still reaches beyond what matters. `sufficient` and `necessary` say how large an effect could \
         be; a longer --max-time may decide.",
    ),
    (
        "not_needed",
        "launched in a few blocks only",
        "Other differences explain the gap already, so the launches went to those.",
    ),
    (
        "failed",
        "the command fails with it",
        "The command was never ready in a launch with it. `reason` says how it ended.",
    ),
    ("not_tried", "not launched by itself", "No launch had only this difference, or all but this one."),
];

const CAUSES: [Verdict; 5] = [
    (
        "alone",
        "acts by itself",
        "Added to the fast context it makes the command slower; taken out of the slow context it makes it faster.",
    ),
    ("together", "acts only with the others of the cause", "Taking one of them out ends the effect of all."),
    ("each", "each of the cause suffices", "Taking one out does not help as long as another is there: all must go."),
    (
        "only_with_others",
        "acts with something that was not found",
        "Taken out of the slow context it helps; added to the fast context alone it does nothing.",
    ),
    (
        "hidden_by_others",
        "something that was not found has the same effect",
        "Added to the fast context it makes the command slower; taken out of the slow context alone it does not help.",
    ),
];
