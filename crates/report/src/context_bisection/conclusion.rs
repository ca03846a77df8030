//! The answer of a bisection in a sentence.

use crate::terminal::{self, Style};
use crate::{BisectedAnswer, BisectedCause, BisectionEnd, CauseKind, ContextBisection};
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
        BisectedAnswer::NotShown => {
            let more = undecided(found);
            match most {
                Some(most) => format!(
                    "no difference was shown: slow could take up to {most} more {metric} than fast, by {} pairs{more}",
                    total.pairs
                ),
                None => format!("too few launches ({} pairs) to say whether slow and fast differ{more}", total.pairs),
            }
        }
        BisectedAnswer::Faster => format!(
            "nothing to explain: the one that was called slow is the faster one, {} {metric}; exchange --fast and --slow",
            change(difference)
        ),
        BisectedAnswer::Slower => {
            format!("slow takes {} {metric} against fast{}", change(difference), explained(found))
        }
    }
}

/// What would decide whether there is a difference.
fn undecided(found: &ContextBisection) -> String {
    match (&found.total.enough, found.ended) {
        (_, BisectionEnd::Stopped) => "; it was interrupted before that was decided".to_owned(),
        (Some(enough), _) => format!(
            "; --max-time {:.0}s would probably decide it (the whole difference has 40 % of that)",
            enough.value.ceil()
        ),
        (None, _) => "; more pairs are not made: with less beside it on the machine, or a --metric that varies less \
                      (such as cpu), fewer decide it"
            .to_owned(),
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
        BisectionEnd::Failed => "; one of the whole contexts was not ready any more before all was decided",
    };
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
    let lacking = format!("{}{}", not_reproduced(found), not_explained(found));
    if !found.causes.is_empty() {
        let causes: Vec<String> = found.causes.iter().map(|cause| because(found, cause)).collect();
        let remain = if lacking.is_empty() { String::new() } else { remain };
        return format!(", because of {}{lacking}{over}{remain}", causes.join("; and of "));
    }
    if let [first, ..] = found.effects.as_slice() {
        let names = first.names.join(" and ");
        let size = change(effect(first));
        let unknown = if first.is_bundled { "by which of them" } else { "by which mechanism" };
        return format!("; {names} changes the time by {size}, {unknown} is not shown{lacking}{over}{remain}");
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

/// What is left of the difference as given because it cannot be applied here, where that matters.
fn not_reproduced(found: &ContextBisection) -> String {
    let rest = found.reproduction.as_ref().and_then(|one| one.unexplained.as_ref());
    match rest.filter(|rest| rest.low.is_some_and(|low| low > found.margin.value)) {
        Some(rest) => format!("; {} of it is not reproduced by what can be applied here", change(Some(rest))),
        None => String::new(),
    }
}

/// What causes and effects leave of the reproduced difference, where it is shown and matters.
fn not_explained(found: &ContextBisection) -> String {
    match found.rest.as_ref().filter(|rest| rest.low.is_some_and(|low| low > 0.0) && rest.value > found.margin.value) {
        Some(rest) => format!("; {} is left that none of them explains", change(Some(rest))),
        None => String::new(),
    }
}

/// The effect that a cause is reported with: the direction that excludes zero; of two such, or none, the one with the narrower interval. The
/// larger one would be so by chance often.
fn effect(cause: &BisectedCause) -> Option<&Quantity> {
    let order = |one: &&Quantity| match (one.low, one.high) {
        (Some(low), Some(high)) => (low <= 0.0, high - low),
        _ => (true, f64::INFINITY),
    };
    let both = cause.sufficient.iter().chain(&cause.necessary);
    both.min_by(|one, other| {
        let ((one_has_zero, one_width), (other_has_zero, other_width)) = (order(one), order(other));
        one_has_zero.cmp(&other_has_zero).then(one_width.total_cmp(&other_width))
    })
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
    let remedy = cause.remedies.first().map(|one| format!(". Remedy: {} (trade-off: {})", one.what, one.price));
    format!(
        "{}: {}{}{}",
        names.join(joined),
        change(effect(cause)),
        counter.unwrap_or_default(),
        remedy.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context_bisection::sample;

    #[test]
    fn a_cause_is_told_with_effect_counter_and_remedy_with_its_price() {
        assert_eq!(
            of(&sample::bisection()),
            "slow takes +63.0 % (60.0..66.0) wall against fast, because of environment MALLOC_PERTURB_ (none -> 165): +62.0 % \
             (58.0..66.0), user 30.0 ms -> 49.0 ms. Remedy: take it out (trade-off: errors are found less often)"
        );
    }

    #[test]
    fn what_the_reproduction_lacks_is_told_with_what_remains() {
        let mut found = sample::bisection();
        if let Some(reproduction) = &mut found.reproduction {
            reproduction.unexplained = Some(Quantity::interval(200.0, 150.0, 260.0, Unit::Percent));
        }
        let text = of(&found);
        let words =
            "; +200 % (150..260) of it is not reproduced by what can be applied here; these differences remain: kernel";
        assert!(text.ends_with(words), "{text}");
    }

    #[test]
    fn what_was_not_found_is_no_cause_and_what_remains_is_told() {
        let mut found = sample::bisection();
        found.effects = std::mem::take(&mut found.causes);
        let text = of(&found);
        assert!(text.contains("changes the time by +62.0 % (58.0..66.0), by which mechanism is not shown"), "{text}");
        found.effects.clear();
        found.ended = BisectionEnd::TimeOver;
        let text = of(&found);
        assert!(text.contains("none of the differences that can be applied here is shown to be the cause"), "{text}");
        assert!(text.contains("a longer --max-time") && text.ends_with("these differences remain: kernel"), "{text}");
        found.candidates.clear();
        assert!(of(&found).contains("nothing that differs can be applied here by itself"));
    }

    #[test]
    fn where_there_is_no_difference_the_largest_that_could_be_is_told() {
        let mut found = sample::bisection();
        found.total.difference = Some(Quantity::interval(0.2, -1.0, 1.4, Unit::Percent));
        for (answer, words) in [
            (BisectedAnswer::NoDifference, "nothing to explain: slow takes at most 1.40 % more wall than fast"),
            (BisectedAnswer::Faster, "exchange --fast and --slow"),
        ] {
            found.total.answer = answer;
            let text = of(&found);
            assert!(text.contains(words), "{text}");
        }
    }

    #[test]
    fn a_difference_that_is_not_shown_is_open_and_told_with_what_would_decide_it() {
        let mut found = sample::bisection();
        found.total.answer = BisectedAnswer::NotShown;
        found.total.difference = Some(Quantity::interval(9.0, -2.0, 21.0, Unit::Percent));
        found.total.enough = Some(Quantity::exact(399.2, Unit::S));
        assert_eq!(
            of(&found),
            "no difference was shown: slow could take up to 21.0 % more wall than fast, by 12 pairs; --max-time 400s would probably \
             decide it (the whole difference has 40 % of that)"
        );
        found.total.enough = None;
        let text = of(&found);
        assert!(text.contains("more pairs are not made") && text.contains("--metric"), "{text}");
        found.ended = BisectionEnd::Stopped;
        assert!(of(&found).ends_with("it was interrupted before that was decided"));
        found.total.difference = None;
        assert!(of(&found).contains("too few launches (12 pairs)"));
    }

    #[test]
    fn what_is_left_unexplained_is_told_where_it_is_shown_and_matters() {
        let text = |low| {
            let mut found = sample::bisection();
            found.rest = Some(Quantity::interval(8.0, low, 12.0, Unit::Percent));
            of(&found)
        };
        assert!(text(4.0).contains("; +8.00 % (4.00..12.0) is left that none of them explains"), "{}", text(4.0));
        assert!(text(4.0).ends_with("these differences remain: kernel"), "{}", text(4.0));
        assert!(!text(-1.0).contains("is left"), "{}", text(-1.0));
    }

    #[test]
    fn a_cause_is_told_with_the_effect_that_is_shown_best_and_not_with_the_larger_one() {
        let text = |sufficient: [f64; 3], necessary: [f64; 3]| {
            let percent = |[value, low, high]: [f64; 3]| Some(Quantity::interval(value, low, high, Unit::Percent));
            let mut found = sample::bisection();
            (found.causes[0].sufficient, found.causes[0].necessary) = (percent(sufficient), percent(necessary));
            let text = of(&found);
            text[text.find(": +").map_or(0, |at| at + 2)..].split(" %").next().unwrap_or_default().to_owned()
        };
        // The larger one does not exclude zero; both do; none does.
        assert_eq!(text([20.0, 15.0, 25.0], [90.0, -10.0, 200.0]), "+20.0");
        assert_eq!(text([30.0, 5.0, 60.0], [20.0, 18.0, 22.0]), "+20.0");
        assert_eq!(text([30.0, -5.0, 60.0], [20.0, -1.0, 42.0]), "+20.0");
    }
}
