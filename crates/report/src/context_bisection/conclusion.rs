//! The answer of a bisection in a sentence.

use super::{BisectedAnswer, BisectedCause, BisectionEnd, CauseKind, ContextBisection};
use crate::terminal::{self, Style};
use slowpath_tables::{Quantity, Unit};

/// Names of remaining differences that a sentence holds.
const MOST_NAMES: usize = 4;

/// What was found, with effect, counter, and the cheapest remedy with its price.
pub(super) fn of(found: &ContextBisection) -> String {
    let total = &found.total;
    let metric = found.metric.name();
    let difference = total.difference.as_ref();
    let most = difference
        .and_then(|one| one.high)
        .map(|high| terminal::value(&Quantity::exact(high, Unit::Percent), &Style::PLAIN));
    match total.answer {
        BisectedAnswer::NoDifference => {
            format!("nothing to explain: slow takes at most {} more {metric} than fast", most.unwrap_or_default())
        }
        BisectedAnswer::NotShown => match most {
            Some(most) => format!(
                "nothing to explain: no difference was shown, slow takes at most {most} more {metric} than fast"
            ),
            None => format!("too few launches ({} pairs) to say whether slow and fast differ", total.pairs),
        },
        BisectedAnswer::Faster => format!(
            "nothing to explain: the one that was called slow is the faster one, {} {metric}; exchange --fast and --slow",
            change(difference)
        ),
        BisectedAnswer::Slower => {
            format!("slow takes {} {metric} against fast{}", change(difference), explained(found))
        }
    }
}

fn change(change: Option<&Quantity>) -> String {
    change.map_or_else(|| "?".to_owned(), |one| terminal::change(one, &Style::PLAIN))
}

fn explained(found: &ContextBisection) -> String {
    let over = match found.ended {
        BisectionEnd::Decided => "",
        BisectionEnd::TimeOver => "; the time was over before all was decided: a longer --max-time shows more",
        BisectionEnd::Stopped => "; it was interrupted before all was decided",
    };
    if !found.causes.is_empty() {
        let causes: Vec<String> = found.causes.iter().map(|cause| because(found, cause)).collect();
        return format!(", because of {}{over}", causes.join("; and of "));
    }
    let names: Vec<&str> = found.remaining.iter().map(|one| one.name.as_str()).collect();
    let remain = match names.as_slice() {
        [] => String::new(),
        few if few.len() <= MOST_NAMES => format!("; these differences remain: {}", few.join(", ")),
        first => {
            format!(
                "; these differences remain: {} and {} more",
                first[..MOST_NAMES].join(", "),
                first.len() - MOST_NAMES
            )
        }
    };
    if let [effect, ..] = found.effects.as_slice() {
        let names = effect.names.join(" and ");
        let size = change(largest(effect));
        let lacking = if effect.is_bundled { "by which of them" } else { "by which mechanism" };
        return format!("; {names} changes the time by {size}, {lacking} is not shown{over}{remain}");
    }
    if found.candidates.is_empty() {
        return format!("; nothing that differs can be applied here by itself{remain}");
    }
    if let Some(reason) = found.reproduction.as_ref().and_then(|one| one.failure.as_ref()) {
        return format!("; the two contexts could not be reproduced: {reason}{remain}");
    }
    if found.reproduction.as_ref().is_some_and(|one| !one.is_shown) {
        return format!("; what can be applied here does not reproduce that{over}{remain}");
    }
    format!("; none of the differences that can be applied here is shown to be the cause{over}{remain}")
}

fn largest(cause: &BisectedCause) -> Option<&Quantity> {
    let both = cause.sufficient.iter().chain(&cause.necessary);
    both.max_by(|one, other| one.value.total_cmp(&other.value))
}

fn because(found: &ContextBisection, cause: &BisectedCause) -> String {
    let value = |name: &String| {
        let candidate = found.candidates.iter().find(|one| &one.name == name);
        match candidate {
            Some(one) => format!("{name} ({} -> {})", one.fast, one.slow),
            None => name.clone(),
        }
    };
    let joined = match cause.kind {
        CauseKind::Each => " or ",
        _ => " together with ",
    };
    let names: Vec<String> = cause.names.iter().map(value).collect();
    let counter = cause.counters.first().map(|moved| {
        let value = |one: &Quantity| terminal::value(one, &Style::PLAIN);
        format!(", {} {} -> {}", moved.metric.name(), value(&moved.without), value(&moved.with))
    });
    let remedy = cause.remedies.first().map(|one| format!(". Remedy: {} (price: {})", one.what, one.price));
    format!(
        "{}: {}{}{}",
        names.join(joined),
        change(largest(cause)),
        counter.unwrap_or_default(),
        remedy.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::super::*;

    #[test]
    fn a_cause_is_told_with_effect_counter_and_remedy_with_its_price() {
        assert_eq!(
            sample::bisection().concluded().conclusion,
            "slow takes +63.0 % (60.0..66.0) wall against fast, because of environment MALLOC_PERTURB_ (none -> 165): +62.0 % \
             (58.0..66.0), user 30.0 ms -> 49.0 ms. Remedy: take it out (price: errors are found less often)"
        );
    }

    #[test]
    fn what_was_not_found_is_no_cause_and_what_remains_is_told() {
        let mut found = sample::bisection();
        found.effects = std::mem::take(&mut found.causes);
        let told = found.clone().concluded().conclusion;
        assert!(told.contains("changes the time by +62.0 % (58.0..66.0), by which mechanism is not shown"), "{told}");
        found.effects.clear();
        found.ended = BisectionEnd::TimeOver;
        let told = found.clone().concluded().conclusion;
        assert!(told.contains("none of the differences that can be applied here is shown to be the cause"), "{told}");
        assert!(told.contains("a longer --max-time") && told.ends_with("these differences remain: kernel"), "{told}");
        found.candidates.clear();
        assert!(found.concluded().conclusion.contains("nothing that differs can be applied here by itself"));
    }

    #[test]
    fn where_there_is_no_difference_the_largest_that_could_be_is_told() {
        let mut found = sample::bisection();
        found.total.difference = Some(Quantity::interval(0.2, -1.0, 1.4, Unit::Percent));
        for (answer, words) in [
            (BisectedAnswer::NoDifference, "nothing to explain: slow takes at most 1.40 % more wall than fast"),
            (BisectedAnswer::NotShown, "no difference was shown, slow takes at most 1.40 % more"),
            (BisectedAnswer::Faster, "exchange --fast and --slow"),
        ] {
            found.total.answer = answer;
            let told = found.clone().concluded().conclusion;
            assert!(told.contains(words), "{told}");
        }
        found.total.answer = BisectedAnswer::NotShown;
        found.total.difference = None;
        assert!(found.concluded().conclusion.contains("too few launches"));
    }
}
