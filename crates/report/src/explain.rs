//! What `slowpath explain` says of each name that results have: findings, fixes, context factors, verdicts, values of JSON fields, terms,
//! what can be unavailable, and the rest ([`NameKind`]), from their declarations.
//!
//! Owns the form, looking a name up as people write it, and the pages of `docs/reference` that are made from it. Leaves the words to the
//! declarations, which [`from_declarations`] reads.

mod explanation;
mod from_declarations;
mod kind;

pub use crate::json_values::unexplained;
pub use explanation::{EXPLAIN_SCHEMA, Explanation, Explanations, Paragraph};
pub use kind::NameKind;

use crate::terms;
use from_declarations::{of_factor, of_fix, of_missing};
use slowpath_context::factors;
use slowpath_session::failure::{Failure, Kind};
use slowpath_tables::{Losses, missing};
use std::sync::LazyLock;

/// Every name that can be explained. Schemas and declarations do not change while the program runs.
static ALL: LazyLock<Vec<Explanation>> = LazyLock::new(from_declarations::all);

/// Every name that can be explained.
pub fn all() -> Vec<Explanation> {
    ALL.clone()
}

/// What has this name, however it is spelled: a name can be an outcome and a decision. A name of an earlier version leads to what has
/// another one today, which is then said first. Names that are made of others lead to those: see [`composed`].
pub fn named(name: &str) -> Vec<Explanation> {
    let wanted = spelled(name);
    let is_wanted = |one: &&Explanation| spelled(&one.name) == wanted || spelled(one.shown()) == wanted;
    let renamed = ALL.iter().filter_map(|one| one.clone().for_former(|name| spelled(name) == wanted));
    let found: Vec<Explanation> = ALL.iter().filter(is_wanted).cloned().chain(renamed).collect();
    if found.is_empty() { composed(name) } else { found }
}

/// A name as it is compared.
fn spelled(name: &str) -> String {
    name.trim().to_lowercase().replace(['-', ' '], "_")
}

/// What a name is made of: a fix with the number of one of its plans (`reuse_buffer 2`), a factor with a part of its value
/// (`control_groups cpu.max`), a declared name with a word filled in (`probe first_wait`, also as an earlier version had it), or a kind of
/// lost events with the reason before it (`not_written.faults`).
fn composed(name: &str) -> Vec<Explanation> {
    let wanted = spelled(name);
    let plan = || slowpath_fix::ALL.iter().find(|fix| is_plan_of(&wanted, fix.name)).map(of_fix);
    let now = || missing::named(name).map(of_missing);
    let formerly = || {
        let (found, former) = missing::formerly_named(name)?;
        of_missing(found).for_former(|name| name == former)
    };
    let lost = || {
        let kind = name.trim().rsplit('.').next()?;
        let is_table = ALL.iter().any(|one| one.kind == NameKind::Table && one.name == kind);
        let is_kind =
            is_table || kind == Losses::ANY_KIND || slowpath_capture::kinds_of_losses().any(|one| one == kind);
        ALL.iter().find(|one| is_kind && one.name == terms::LOST_EVENTS).cloned()
    };
    let part = || {
        let (factor, _part) = name.trim().split_once(' ')?;
        factors::named(factor).map(of_factor)
    };
    plan().or_else(now).or_else(formerly).or_else(lost).or_else(part).into_iter().collect()
}

/// Whether a name, as it is compared, is that of a fix with the number of one of its plans.
fn is_plan_of(name: &str, fix: &str) -> bool {
    let number = name.strip_prefix(fix).and_then(|rest| rest.strip_prefix('_'));
    number.is_some_and(|number| number.parse::<u64>().is_ok())
}

/// What has this name.
///
/// # Errors
/// Nothing has; the hint has names that are near.
pub fn found(name: &str) -> Result<Vec<Explanation>, Failure> {
    let found = named(name);
    if !found.is_empty() {
        return Ok(found);
    }
    let hint = match likely(name).as_slice() {
        [] => "`slowpath explain` lists all names".to_owned(),
        likely => format!("perhaps {}; `slowpath explain` lists all names", likely.join(", ")),
    };
    Err(Failure::new(Kind::Usage, format!("nothing is called {name:?}")).hint(hint))
}

/// A few names that somebody could have meant who wrote one that there is not.
pub fn likely(name: &str) -> Vec<String> {
    let wanted = spelled(name);
    let is_likely = |one: &Explanation| {
        let parts = wanted.split('_').filter(|part| part.len() > 2);
        parts.into_iter().any(|part| one.name.contains(part) || one.title.contains(part))
    };
    let mut likely: Vec<String> = ALL.iter().filter(|one| is_likely(one)).map(|one| one.name.clone()).collect();
    likely.dedup();
    likely.truncate(5);
    likely
}

/// One page of `docs/reference`.
pub fn reference(kind: NameKind) -> String {
    let mut page = format!(
        "# {}\n\nGenerated from the declarations (`make schemas`); `slowpath explain NAME` prints the same.\n",
        kind.heading()
    );
    for one in all().into_iter().filter(|one| one.kind == kind) {
        // An angle bracket begins a tag of HTML otherwise.
        let name = one.name.replace('<', "\\<");
        page.push_str(&format!("\n## {name}\n\n**{}**\n\n", capitalised(&one.title)));
        if !one.former_names.is_empty() {
            page.push_str(&folded(&format!("- *former name*: {}", one.former_names.join(", ")), "  "));
        }
        for paragraph in one.paragraphs {
            page.push_str(&folded(&format!("- *{}*: {}", paragraph.heading, paragraph.text), "  "));
        }
    }
    page
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A paragraph of a reference page: lines of at most 120 characters, the second and later ones with this before them.
pub fn folded(text: &str, hanging: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last().map_or(0, |line| line.chars().count());
        if line > 0 && line + 1 + word.chars().count() > 120 {
            lines.push(format!("{hanging}{word}"));
        } else if let Some(last) = lines.last_mut() {
            if !last.is_empty() {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_within_their_kind_and_each_has_a_title_and_text() {
        let all = all();
        let mut keys = BTreeSet::new();
        for one in &all {
            // A value can stand in several fields, with another meaning in each.
            let meaning = if one.kind == NameKind::JsonValue { one.title.as_str() } else { "" };
            assert!(keys.insert((one.kind, one.name.as_str(), meaning)), "{:?} {} {meaning}", one.kind, one.name);
            assert!(!one.title.is_empty() && !one.paragraphs.is_empty(), "{}", one.name);
            assert!(one.paragraphs.iter().all(|paragraph| !paragraph.text.contains("  ")), "{}", one.name);
        }
    }

    #[test]
    fn a_word_of_json_is_found_as_screens_have_it_too() {
        for (shown, name) in [("waits for a CPU", "waits_for_cpu"), ("user or kernel", "on_cpu"), ("locks", "lock")] {
            assert!(named(shown).iter().any(|one| one.name == name), "{shown}");
            assert!(named(name).iter().any(|one| one.name == name), "{name}");
        }
    }

    #[test]
    fn a_former_name_leads_to_what_is_called_otherwise_now() {
        for (former, name, kind) in [
            ("deferred_memory_cost", "background_reclaim", NameKind::Finding),
            ("oversized first touch", "unused_touched_pages", NameKind::Finding),
            ("look-in-place", "avoid_copy", NameKind::Fix),
            ("size_to_use", "right_size_buffer", NameKind::Fix),
            ("keep_buffer", "reuse_buffer", NameKind::Fix),
            ("another_allocator", "replace_allocator", NameKind::Fix),
            ("objects", "loaded_libraries", NameKind::ContextFactor),
            ("processors", "cpu_model", NameKind::ContextFactor),
            ("frequency", "cpufreq", NameKind::ContextFactor),
        ] {
            let found = named(former).into_iter().find(|one| one.kind == kind);
            let Explanation { name: found_name, paragraphs, .. } = found.unwrap();
            assert_eq!(found_name, name);
            let said = &paragraphs[0];
            assert!(said.heading == "renamed" && said.text.ends_with(&format!("is called {name} now")), "{said:?}");
            assert!(named(name).iter().all(|one| one.paragraphs[0].heading != "renamed"));
        }
    }

    #[test]
    fn no_former_name_is_a_name_of_the_same_kind() {
        let all = all();
        for (one, former) in all.iter().flat_map(|one| one.former_names.iter().map(move |former| (one, *former))) {
            assert!(all.iter().all(|other| other.kind != one.kind || other.name != former), "{former}");
        }
    }

    #[test]
    fn lines_of_the_reference_are_at_most_120_characters() {
        for kind in NameKind::ALL {
            let page = reference(kind);
            let long = page.lines().find(|line| line.chars().count() > 120);
            assert!(long.is_none(), "{long:?}");
        }
    }
}
