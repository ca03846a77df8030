//! A bisection of two contexts on a screen: the answer first, then what was tried, what it gave, and what remains.

use super::figures;
use super::item::Item;
use super::line::{Line, Paint, left, right};
use super::sections::{self, Section};
use super::style::Style;
use crate::{
    BisectedAnswer, BisectedCandidate, BisectedCause, BisectionEnd, CandidateVerdict, CauseKind, ContextBisection,
};
use slowpath_tables::{Losses, Quantity, Unit};

/// Columns of a candidate's name, and of each of its effects.
const NAME: usize = 30;
const EFFECT: usize = 22;
/// Changes from here on are reported as a multiple.
const MULTIPLE_PERCENT: f64 = 400.0;
/// Characters of a value of a candidate.
const VALUE: usize = 60;

/// The result, with a newline after every line.
pub fn context_bisection(found: &ContextBisection, style: &Style) -> String {
    // Everything stays: no page has what a screen would leave out.
    let style = &Style { lines: usize::MAX, ..*style };
    let conclusion = Item::wrapped(Line::default(), Paint::Bold, &found.conclusion, Some(2), style);
    let mut parts = vec![Section { items: vec![conclusion], ..Section::default() }, whole(found, style)];
    parts.extend(found.causes.iter().map(|cause| caused(found, cause, style)));
    parts.extend(found.effects.iter().map(|effect| caused(found, effect, style)));
    parts.push(candidates(found, style));
    parts.push(remaining(found, style));
    parts.push(sections::doubts(&Losses::default(), &found.unavailable, &found.notes, style));
    parts.push(ended(found, style));
    super::screen(parts, super::Rest::InJson, style)
}

/// A change with its sign and interval; large ones as a multiple.
pub(crate) fn change(change: &Quantity, style: &Style) -> String {
    if change.value < MULTIPLE_PERCENT {
        let sign = if change.value > 0.0 { "+" } else { "" };
        return format!("{sign}{}", figures::with_interval(change, style));
    }
    let times = |percent: f64| percent / 100.0 + 1.0;
    let multiple = Quantity {
        value: times(change.value),
        low: change.low.map(times),
        high: change.high.map(times),
        unit: Unit::Count,
    };
    let interval = figures::interval(&multiple, style).map(|text| format!(" ({text})")).unwrap_or_default();
    format!("{}x{interval}", figures::value(&multiple, style))
}

fn change_or_none(value: Option<&Quantity>, style: &Style) -> String {
    value.map_or_else(|| "not launched".to_owned(), |value| change(value, style))
}

fn wrapped(prefix: &str, paint: Paint, text: &str, style: &Style) -> Item {
    Item::wrapped(Line::of(Paint::Plain, prefix, style), paint, text, Some(prefix.len().min(6)), style)
}

fn whole(found: &ContextBisection, style: &Style) -> Section {
    let total = &found.total;
    let median = |value: &Option<Quantity>| value.as_ref().map_or("-".to_owned(), |one| figures::value(one, style));
    let mut items = Vec::new();
    for (name, side, value) in [("fast", &found.fast, &total.fast), ("slow", &found.slow, &total.slow)] {
        let given = if side.given.is_empty() { "without a wrapper" } else { &side.given };
        items.push(wrapped(&format!("  {name}  {}  ", right(&median(value), 10, style)), Paint::Plain, given, style));
    }
    let text =
        format!("slow against fast: {}, {} pairs", change_or_none(total.difference.as_ref(), style), total.pairs);
    items.push(wrapped("  ", Paint::Plain, &text, style));
    if let Some(reproduction) = &found.reproduction {
        let text = format!(
            "reproduced: {}; unexplained rest of the two sides as given: {}",
            change_or_none(reproduction.difference.as_ref(), style),
            change_or_none(reproduction.unexplained.as_ref(), style)
        );
        items.push(wrapped("  ", Paint::Plain, &text, style));
    }
    if total.answer == BisectedAnswer::Slower
        && let Some(rest) = &found.rest
    {
        let text = if found.causes.is_empty() && found.effects.is_empty() {
            format!("nothing of it is explained: {}", change(rest, style))
        } else {
            format!("left when what was found is added to the fast context: {}", change(rest, style))
        };
        items.push(wrapped("  ", Paint::Plain, &text, style));
    }
    let head = format!("the whole difference, {}", found.metric.name());
    Section { head: vec![Line::of(Paint::Bold, &head, style)], items, spaced: true, ..Section::default() }
}

fn caused(found: &ContextBisection, cause: &BisectedCause, style: &Style) -> Section {
    let how = match cause.kind {
        CauseKind::Alone => "by itself",
        CauseKind::Together => "only together",
        CauseKind::Each => "each by itself",
        CauseKind::OnlyWithOthers => "only with something else that was not found",
        CauseKind::HiddenByOthers => "by itself, and something else that was not found has the same effect",
    };
    let word = match (cause.is_bundled, cause.counters.is_empty()) {
        (true, _) => "changes the time, by which of them is not shown",
        (false, true) => "changes the time, by which mechanism is not shown",
        (false, false) => "cause",
    };
    // Of several that were only tried as one it is not known how they act.
    let how = if cause.is_bundled { String::new() } else { format!(" ({how})") };
    let title = format!("{word}: {}{how}", cause.names.join(" and "));
    let mut items = vec![wrapped("", Paint::Bold, &title, style)];
    for name in &cause.names {
        if let Some(one) = found.candidates.iter().find(|one| &one.name == name) {
            let values = format!("{} -> {}", cut(&one.fast), cut(&one.slow));
            items.push(wrapped(&format!("  {name}: "), Paint::Plain, &values, style));
        }
    }
    let effects = format!(
        "added to the fast context {}; the slow context with it against without it {}",
        change_or_none(cause.sufficient.as_ref(), style),
        change_or_none(cause.necessary.as_ref(), style)
    );
    items.push(wrapped("  effect: ", Paint::Plain, &effects, style));
    for moved in &cause.counters {
        let text = format!(
            "{} {} -> {} (p {})",
            moved.metric.name(),
            figures::value(&moved.without, style),
            figures::value(&moved.with, style),
            probability(moved.p)
        );
        items.push(wrapped("  counter: ", Paint::Plain, &text, style));
    }
    if !cause.mechanism.is_empty() {
        items.push(wrapped("  mechanism: ", Paint::Plain, &cause.mechanism, style));
    }
    for remedy in &cause.remedies {
        let text = format!("{}. Trade-off: {}", remedy.what, remedy.price);
        items.push(wrapped("  remedy: ", Paint::Plain, &text, style));
    }
    Section { items, spaced: true, ..Section::default() }
}

fn probability(p: f64) -> String {
    if p < 0.0001 { "< 0.0001".to_owned() } else { format!("= {p:.4}") }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(VALUE) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

fn candidates(found: &ContextBisection, style: &Style) -> Section {
    if found.candidates.is_empty() {
        return Section::default();
    }
    let heading =
        [left("tried one at a time", NAME, style), right("added", EFFECT, style), right("taken out", EFFECT, style)];
    let mut items = Vec::new();
    for one in &found.candidates {
        let name = super::escape::escape(&one.name, style.unicode);
        let effect = |value: &Option<Quantity>| value.as_ref().map_or("-".to_owned(), |value| change(value, style));
        let cells = [
            left(&name, NAME, style),
            right(&effect(&one.sufficient), EFFECT, style),
            right(&effect(&one.necessary), EFFECT, style),
        ];
        items.push(Line::of(paint(one.verdict), &cells.concat(), style).into());
        let text = format!("{} -> {}: {}", cut(&one.fast), cut(&one.slow), verdict(one));
        items.push(wrapped("    ", Paint::Quiet, &text, style));
    }
    Section {
        head: vec![Line::of(Paint::Quiet, &heading.concat(), style)],
        items,
        what: "candidates",
        spaced: true,
        ..Section::default()
    }
}

fn paint(verdict: CandidateVerdict) -> Paint {
    match verdict {
        CandidateVerdict::Cause => Paint::Bad,
        _ => Paint::Plain,
    }
}

fn verdict(one: &BisectedCandidate) -> String {
    let with = match one.tried_with.len() {
        0 => String::new(),
        1 => ", together with another".to_owned(),
        count => format!(", together with {count} others"),
    };
    match one.verdict {
        CandidateVerdict::Cause => "cause".to_owned(),
        CandidateVerdict::NoMechanism => "an effect, mechanism not shown".to_owned(),
        CandidateVerdict::AmongSeveral => format!("one of {} that have an effect together", one.tried_with.len() + 1),
        CandidateVerdict::NoEffect => format!("no effect that matters{with}"),
        CandidateVerdict::NotShown => format!("no effect shown{with}"),
        CandidateVerdict::NotNeeded => format!("tried in a few blocks only{with}: others explain the difference"),
        CandidateVerdict::Failed => {
            format!("the command fails with it: {}", one.reason.as_deref().unwrap_or("no reason"))
        }
        CandidateVerdict::NotTried => "not tried".to_owned(),
    }
}

fn remaining(found: &ContextBisection, style: &Style) -> Section {
    if found.remaining.is_empty() {
        return Section::default();
    }
    let mut items = Vec::new();
    for one in &found.remaining {
        let values = format!("{} -> {}", cut(&one.fast), cut(&one.slow));
        items.push(wrapped(&format!("  {}: ", one.name), Paint::Plain, &values, style));
        let text = format!("{}. Known: {} ({})", one.why, one.known.cost, one.known.source);
        items.push(wrapped("    ", Paint::Quiet, &text, style));
    }
    let head = Line::of(Paint::Bold, "differs and cannot be tried here by itself", style);
    Section { head: vec![head], items, spaced: true, ..Section::default() }
}

fn ended(found: &ContextBisection, style: &Style) -> Section {
    let why = match found.ended {
        BisectionEnd::Decided => "everything was decided",
        BisectionEnd::TimeOver => "the time was over",
        BisectionEnd::Stopped => "it was interrupted",
        BisectionEnd::Failed => "one of the whole contexts was not ready any more",
    };
    let tried = found.candidates.iter().any(|one| one.verdict != CandidateVerdict::NotTried);
    let intervals = if tried { " Intervals of single differences hold together for all that were tried." } else { "" };
    let text = format!(
        "{} launches in {}, seed {}; {why}; what is below {} does not matter here.{intervals}",
        found.launches,
        figures::value(&found.took, style),
        found.seed,
        figures::value(&found.margin, style)
    );
    let item = Item::wrapped(Line::of(Paint::Quiet, "", style), Paint::Quiet, &text, Some(0), style);
    Section { items: vec![item], spaced: true, ..Section::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context_bisection::sample;

    fn words(found: &ContextBisection) -> String {
        let text = context_bisection(found, &Style::PLAIN);
        assert!(text.lines().all(|line| line.len() <= 80), "{text}");
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_answer_comes_first_and_everything_that_was_tried_is_there() {
        let text = words(&sample::concluded(sample::bisection()));
        assert!(text.starts_with("slow takes +63.0 %"), "{text}");
        for part in [
            "cause: environment MALLOC_PERTURB_ (by itself)",
            "counter: user 30.0 ms -> 49.0 ms (p = 0.0005)",
            "remedy: take it out. Trade-off: errors are found less often",
            "environment LANG +0.10 % (-1.00..1.20) -",
            "tried in a few blocks only, together with another",
            "kernel: 6.1 -> 6.6",
            "120 launches in 21.5 s, seed 1; everything was decided",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn of_several_that_were_tried_as_one_it_is_not_said_how_they_act() {
        let mut found = sample::bisection();
        let mut effect = found.causes.remove(0);
        effect.is_bundled = true;
        effect.names.push("timer_slack_ns".to_owned());
        found.effects.push(effect);
        let text = words(&sample::concluded(found));
        let title = "changes the time, by which of them is not shown: environment MALLOC_PERTURB_ and timer_slack_ns environment";
        assert!(text.contains(title), "{text}");
    }

    #[test]
    fn large_changes_are_multiples_and_foreign_text_is_escaped() {
        let large = Quantity::interval(8300.0, 8000.0, 8600.0, Unit::Percent);
        assert_eq!(change(&large, &Style::PLAIN), "84.0x (81.0..87.0)");
        let mut found = sample::bisection();
        found.candidates[0].slow = "\u{1b}[31mred".to_owned();
        found.candidates[0].name = "environment \u{1b}X".to_owned();
        assert!(!context_bisection(&sample::concluded(found), &Style::PLAIN).contains('\u{1b}'));
    }
}
