//! Whether a zygote pays for a program: a rule on what a recording shows of its children. Pure.
//!
//! The saving of a child is set against the child's whole start. A zygote is a change of how a program is built, so a few percent are none.

use schemars::JsonSchema;
use serde::Serialize;

/// Least share of a child's start that a zygote has to save, to be advised.
pub const LEAST_SHARE: f64 = 0.2;

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// A child's start becomes shorter by more than [`LEAST_SHARE`].
    Yes,
    /// It does not.
    No,
    /// What was recorded does not decide it.
    Unknown,
}

/// Children of one program that repeat a start.
#[derive(Clone, Debug, PartialEq)]
pub struct RepeatedStart {
    /// What they are called together.
    pub name: String,
    /// How many.
    pub children: u64,
    /// What all but one would save together, ms.
    pub saving_ms: f64,
    /// What the whole start of each takes, ms: from its fork until it waits for events, or ends, without waiting for a CPU.
    pub starts_ms: Vec<f64>,
    /// The children took very different times for the same steps, or rows were lost.
    pub is_doubtful: bool,
}

/// The answer with its reasons.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// The answer.
    pub answer: Answer,
    /// The share of a child's start that would be saved, of the program that gains most; none where no start is repeated.
    pub share: Option<f64>,
    /// Of which program, by its place in the list.
    pub best: Option<usize>,
    /// Why.
    pub reasons: Vec<String>,
}

impl RepeatedStart {
    /// The share of a child's start that is saved: what one child saves, over the start of one in the middle.
    pub fn share(&self) -> Option<f64> {
        let mut starts = self.starts_ms.clone();
        starts.sort_by(f64::total_cmp);
        let start = starts.get(starts.len().checked_sub(1)? / 2).copied().filter(|start| *start > 0.0)?;
        let each = self.saving_ms / self.children.saturating_sub(1).max(1) as f64;
        // What runs on several CPUs at once is more than the time that passes.
        Some((each / start).clamp(0.0, 1.0))
    }
}

/// Advises from the repeated starts of a program, and from what was not recorded.
pub fn advise(starts: &[RepeatedStart], missing: &[String]) -> Advice {
    let shares = starts.iter().enumerate().filter_map(|(index, start)| Some((index, start.share()?)));
    let best = shares.max_by(|one, other| one.1.total_cmp(&other.1));
    let Some((index, share)) = best else {
        let (answer, reason) = match (starts.is_empty(), missing.is_empty()) {
            (true, true) => (Answer::No, "no three children of one program repeat a start that is worth it"),
            (true, false) => (Answer::Unknown, "no repeated start is seen, and not all that shows one was recorded"),
            (false, _) => (
                Answer::Unknown,
                "a start is repeated, and how long the children take as a whole is not in the recording",
            ),
        };
        let reasons = std::iter::once(reason.to_owned()).chain(missing.iter().cloned()).collect();
        return Advice { answer, share: None, best: None, reasons };
    };
    let start = &starts[index];
    let mut reasons = vec![format!(
        "{} {} processes repeat a start: without it a child's would be shorter by {:.0} % ({:.0} % or more is worth a zygote)",
        start.children,
        start.name,
        share * 100.0,
        LEAST_SHARE * 100.0
    )];
    let answer = match (share >= LEAST_SHARE, start.is_doubtful) {
        (true, false) => Answer::Yes,
        (false, _) => Answer::No,
        (true, true) => {
            reasons.push("how much they repeat is in doubt: `slowpath analyze` of the recording says why".to_owned());
            Answer::Unknown
        }
    };
    Advice { answer, share: Some(share), best: Some(index), reasons }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(saving_ms: f64, starts_ms: &[f64]) -> RepeatedStart {
        RepeatedStart {
            name: "worker".into(),
            children: 5,
            saving_ms,
            starts_ms: starts_ms.to_vec(),
            is_doubtful: false,
        }
    }

    #[test]
    fn a_fifth_of_a_childs_start_is_worth_it_and_less_is_not() {
        for (saving, answer) in [(400.0, Answer::Yes), (80.0, Answer::Yes), (79.0, Answer::No), (0.0, Answer::No)] {
            let advice = advise(&[start(saving, &[100.0, 90.0, 5000.0])], &[]);
            assert_eq!(advice.answer, answer, "{saving}: {advice:?}");
        }
        let advice = advise(&[start(4.0, &[100.0]), start(300.0, &[100.0])], &[]);
        assert_eq!((advice.answer, advice.best, advice.share), (Answer::Yes, Some(1), Some(0.75)));
    }

    #[test]
    fn what_is_not_known_is_said_and_not_guessed() {
        let missing = ["opens were not recorded".to_owned()];
        assert_eq!(advise(&[], &[]).answer, Answer::No);
        let advice = advise(&[], &missing);
        assert!(advice.answer == Answer::Unknown && advice.reasons.contains(&missing[0]));
        assert_eq!(advise(&[start(400.0, &[])], &[]).answer, Answer::Unknown);
        let doubtful = RepeatedStart { is_doubtful: true, ..start(400.0, &[100.0]) };
        assert_eq!(advise(&[doubtful], &[]).answer, Answer::Unknown);
    }
}
