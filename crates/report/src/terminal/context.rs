//! Execution contexts on a screen: one as a list of its factors, two as what differs between them.

use super::item::Item;
use super::line::{Line, Paint};
use super::sections::{self, Section};
use super::style::Style;
use crate::{ComparedContext, ContextComparison, ShownContext, ShownToggle};
use slowpath_context::chains::Side;
use slowpath_context::{Chain, Difference, Reading, Scope, Snapshot, Thread, Value, factors};
use slowpath_tables::{Losses, Unavailable};
use std::collections::{BTreeMap, BTreeSet};

/// Columns of a factor's name.
const NAME: usize = 28;
/// Parts of a factor beyond which only their number is reported: files of code.
const MOST_PARTS: usize = 24;
/// Parts of a difference that are shown.
const PARTS_SHOWN: usize = 12;

/// The list of the factors of one context, with a newline after every line.
pub fn context(shown: &ShownContext, style: &Style) -> String {
    // Every factor stays: no page has what a screen would leave out.
    let style = &Style { lines: usize::MAX, ..*style };
    let context = &shown.context;
    let mut parts = vec![titled(&[subject(&ComparedContext::of(context))], style)];
    if let Some(thread) = context.main_thread() {
        parts.push(factors_of(Scope::Thread, "its first thread", &thread.factors, style));
    }
    parts.push(other_threads(context, style));
    parts.push(factors_of(Scope::Process, "the process", &context.process, style));
    parts.push(factors_of(Scope::Machine, "the machine", &context.machine, style));
    parts.push(sections::doubts(&Losses::default(), &gaps(&shown.unavailable), &[], style));
    super::screen(parts, super::Rest::InJson, style)
}

/// What differs between two contexts, with a newline after every line.
pub fn context_comparison(comparison: &ContextComparison, style: &Style) -> String {
    let style = &Style { lines: usize::MAX, ..*style };
    let head = titled(&[format!("a: {}", subject(&comparison.a)), format!("b: {}", subject(&comparison.b))], style);
    let (lasting, of_the_moment): (Vec<&Difference>, Vec<&Difference>) =
        comparison.differences.iter().partition(|one| !one.of_the_moment);
    let nothing = if lasting.is_empty() {
        "nothing that lasts differs"
    } else {
        "what differs, what is known to matter most first"
    };
    let mut parts = vec![head, listed(nothing, &lasting, style)];
    if !of_the_moment.is_empty() {
        parts.push(listed("states of the moment", &of_the_moment, style));
    }
    parts.extend(comparison.chains.iter().map(|chain| chained(chain, style)));
    parts.push(toggles(comparison, style));
    let same = format!("{} factors are the same: {}", comparison.same.len(), comparison.same.join(", "));
    parts.push(Section {
        items: vec![Item::wrapped(Line::default(), Paint::Quiet, &same, Some(2), style)],
        spaced: true,
        ..Section::default()
    });
    let note = "a difference is not a cause: only a measurement shows what each costs this program".to_owned();
    parts.push(sections::doubts(&Losses::default(), &gaps(&comparison.unavailable), &[note], style));
    super::screen(parts, super::Rest::InJson, style)
}

fn subject(context: &ComparedContext) -> String {
    let number = context.pid.map(|pid| format!(" {pid}")).unwrap_or_default();
    let words = context.command.join(" ");
    let words = if words.is_empty() { String::new() } else { format!(" ({words})") };
    format!("{}{number}{words}, {}", context.name, context.origin)
}

fn titled(texts: &[String], style: &Style) -> Section {
    Section { items: texts.iter().map(|text| heading(text, style)).collect(), ..Section::default() }
}

fn heading(text: &str, style: &Style) -> Item {
    Item::wrapped(Line::default(), Paint::Bold, text, Some(2), style)
}

/// What could not be read, each reason once.
fn gaps(unavailable: &[Unavailable]) -> Vec<Unavailable> {
    let mut by_reason: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for gap in unavailable {
        by_reason.entry((&gap.reason, &gap.remedy)).or_default().push(&gap.what);
    }
    let joined = |((reason, remedy), factors): ((&str, &str), Vec<&str>)| Unavailable {
        what: factors.join(", "),
        reason: reason.to_owned(),
        remedy: remedy.to_owned(),
    };
    by_reason.into_iter().map(joined).collect()
}

fn value_text(value: &Value) -> String {
    match value {
        Value::Number(number) => number.to_string(),
        Value::Text(text) => text.clone(),
        Value::Set(words) if words.is_empty() => "none".to_owned(),
        Value::Set(words) => words.iter().cloned().collect::<Vec<_>>().join(", "),
        Value::Table(parts) if parts.is_empty() => "none".to_owned(),
        Value::Table(parts) if parts.len() > MOST_PARTS => format!("{} of them: see --json", parts.len()),
        Value::Table(parts) => {
            let parts = parts.iter().map(|(name, value)| match value.as_str() {
                "" => format!("{name} none"),
                value => format!("{name} {value}"),
            });
            parts.collect::<Vec<_>>().join("; ")
        }
    }
}

fn factors_of(scope: Scope, heading: &str, readings: &BTreeMap<String, Reading>, style: &Style) -> Section {
    let row = |name: &str, paint: Paint, text: &str| {
        Item::wrapped(Line::of(Paint::Plain, &format!("  {name:<NAME$} "), style), paint, text, None, style)
    };
    let items = factors::of(scope).filter_map(|factor| {
        Some(match readings.get(factor.name)? {
            Reading::Known { value } => row(factor.name, Paint::Plain, &value_text(value)),
            Reading::Absent { reason } => row(factor.name, Paint::Quiet, &format!("none: {reason}")),
            // The reasons stand together below.
            Reading::Unavailable { .. } => row(factor.name, Paint::Quiet, "could not be read"),
        })
    });
    Section {
        head: vec![Line::of(Paint::Bold, heading, style)],
        items: items.collect(),
        spaced: true,
        ..Section::default()
    }
}

/// The threads that differ from the first one, those of a name together.
fn other_threads(context: &Snapshot, style: &Style) -> Section {
    let Some((first, others)) = context.threads.split_first() else { return Section::default() };
    let differing = |thread: &Thread| -> BTreeMap<String, Value> {
        let known = thread.factors.iter().filter_map(|(name, reading)| Some((name, reading.value()?)));
        known
            .filter(|(name, value)| first.factors.get(*name).and_then(Reading::value) != Some(value))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    let mut rows: BTreeMap<(String, String), usize> = BTreeMap::new();
    for thread in others {
        let parts: Vec<String> =
            differing(thread).iter().map(|(name, value)| format!("{name}: {}", value_text(value))).collect();
        if !parts.is_empty() {
            *rows.entry((thread.name.clone(), parts.join("; "))).or_default() += 1;
        }
    }
    if rows.is_empty() {
        return Section::default();
    }
    let count: usize = rows.values().sum();
    let items = rows.iter().map(|((name, text), count)| {
        let name = if *count > 1 { format!("{name} ({count})") } else { name.clone() };
        Item::wrapped(Line::of(Paint::Plain, &format!("  {name:<NAME$} "), style), Paint::Plain, text, None, style)
    });
    let heading = format!("{count} of {} other threads differ from it", others.len());
    Section {
        head: vec![Line::of(Paint::Bold, &heading, style)],
        items: items.collect(),
        spaced: true,
        ..Section::default()
    }
}

fn listed(heading: &str, differences: &[&Difference], style: &Style) -> Section {
    let mut items = Vec::new();
    for one in differences {
        let whose = match (&one.threads, one.scope) {
            (Some(name), _) => format!("threads {name}"),
            (None, Scope::Thread) => "first thread".to_owned(),
            (None, Scope::Process) => "process".to_owned(),
            (None, Scope::Machine) => "machine".to_owned(),
        };
        items.push(Line::of(Paint::Bold, &format!("  {} ({whose}): {}", one.factor, one.title), style).into());
        for part in one.parts.iter().take(PARTS_SHOWN) {
            let name = part.name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
            let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
            let text = format!("{name}{} | {}", value(&part.a), value(&part.b));
            items.push(Item::wrapped(Line::of(Paint::Plain, "    ", style), Paint::Plain, &text, Some(6), style));
        }
        if one.parts.len() > PARTS_SHOWN {
            let more = format!("    {} more: see --json", one.parts.len() - PARTS_SHOWN);
            items.push(Line::of(Paint::Quiet, &more, style).into());
        }
        let known = format!("{} ({})", one.known.cost, one.known.source);
        items.push(Item::wrapped(Line::of(Paint::Quiet, "    ", style), Paint::Quiet, &known, Some(4), style));
    }
    Section { head: vec![Line::of(Paint::Bold, heading, style)], items, spaced: true, ..Section::default() }
}

/// What could be tried here, in one line; and what could not, each with its reason.
fn toggles(comparison: &ContextComparison, style: &Style) -> Section {
    let (here, others): (Vec<&ShownToggle>, Vec<&ShownToggle>) =
        comparison.toggles.iter().filter(|one| !is_of_the_moment(comparison, one)).partition(|one| one.here);
    let mut items = Vec::new();
    let mut put = |prefix: &str, text: &str| {
        items.push(Item::wrapped(Line::of(Paint::Plain, prefix, style), Paint::Quiet, text, Some(4), style));
    };
    if !here.is_empty() {
        let names: Vec<&str> = here.iter().map(|one| one.name.as_str()).collect();
        put("  each can be tried alone here: ", &names.join(", "));
    }
    for one in others {
        put(&format!("  not {}: ", one.name), &one.why);
    }
    Section { items, spaced: true, ..Section::default() }
}

fn is_of_the_moment(comparison: &ContextComparison, toggle: &ShownToggle) -> bool {
    comparison.differences.iter().any(|one| one.of_the_moment && one.factor == toggle.name)
}

fn chained(chain: &Chain, style: &Style) -> Section {
    let side = match chain.slower {
        Side::A => "a",
        Side::B => "b",
    };
    let mut items: Vec<Item> = Vec::new();
    let mut put = |prefix: &str, text: &str| {
        items.push(Item::wrapped(Line::of(Paint::Plain, prefix, style), Paint::Plain, text, Some(4), style));
    };
    for (number, link) in chain.links.iter().enumerate() {
        put(&format!("  {}. ", number + 1), &format!("{}: {}; {}", link.factor, link.seen, link.why));
    }
    put("  costs: ", &chain.cost);
    for remedy in &chain.remedies {
        put("  remedy: ", &format!("{}. Trade-off: {}", remedy.what, remedy.price));
    }
    let sources: BTreeSet<&str> = chain.sources.iter().map(String::as_str).collect();
    put("  known from: ", &sources.into_iter().collect::<Vec<_>>().join("; "));
    items
        .insert(0, heading(&format!("known to follow from each other, at the cost of {side}: {}", chain.title), style));
    Section { items, spaced: true, ..Section::default() }
}
