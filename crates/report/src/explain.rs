//! What `slowpath explain` says: findings, fixes, context factors, families of artifacts, outcomes of a guard, arms, verdicts,
//! rows of time, metrics, terms and what can be unavailable, by name, from their declarations.
//!
//! Owns the form, and the pages of `docs/reference` that are made from it. Leaves the words to the declarations.

use crate::json_words::{self, JsonWord};
use crate::recording_exports::{self, RecordingExport};
use crate::terms::{self, Term};
use schemars::JsonSchema;
use serde::Serialize;
use slowpath_analysis::{ShowsIn, findings};
use slowpath_context::{Lasts, Scope};
use slowpath_session::failure::{Failure, Kind};
use slowpath_tables::missing::{self, Missing, declared};
use slowpath_verify::{DeclaredArm, Role, declared_arms};

/// Schema of what `explain --json` prints.
pub const EXPLAIN_SCHEMA: &str = "slowpath-explain/1";

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NameKind {
    /// A hidden cost.
    Finding,
    /// What ends one.
    Fix,
    /// Something of an execution context that can make the same code slower.
    ContextFactor,
    /// A kind of compiled or cached file that processes need.
    ArtifactFamily,
    /// What a product's start counts of an artifact.
    GuardOutcome,
    /// What a diagnosis launches beside a fix.
    Arm,
    /// What launches said of an arm.
    Outcome,
    /// What follows for a fix.
    Decision,
    /// What `check` says of a limit.
    CheckVerdict,
    /// What `context bisect` says of a difference.
    BisectionVerdict,
    /// How the differences of a cause act.
    BisectedCause,
    /// A row of the table of where time goes.
    TimePart,
    /// A row of the time ledger.
    LedgerCategory,
    /// What launches are compared by.
    Metric,
    /// What the recorder can see.
    Probe,
    /// A form of a recording for other tools.
    Export,
    /// What can be missing in a result.
    Unavailable,
    /// A term that screens use.
    Term,
}

impl NameKind {
    /// All, in the order in which they are listed.
    pub const ALL: [Self; 18] = [
        Self::Finding,
        Self::Fix,
        Self::ContextFactor,
        Self::ArtifactFamily,
        Self::GuardOutcome,
        Self::Arm,
        Self::Outcome,
        Self::Decision,
        Self::CheckVerdict,
        Self::BisectionVerdict,
        Self::BisectedCause,
        Self::TimePart,
        Self::LedgerCategory,
        Self::Metric,
        Self::Probe,
        Self::Export,
        Self::Unavailable,
        Self::Term,
    ];

    /// The heading of a list.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Finding => "Findings",
            Self::Fix => "Fixes",
            Self::ContextFactor => "Context factors",
            Self::ArtifactFamily => "Artifact families",
            Self::GuardOutcome => "Outcomes of a guard",
            Self::Arm => "Arms of a diagnosis",
            Self::Outcome => "Outcomes of an arm",
            Self::Decision => "Decisions on a fix",
            Self::CheckVerdict => "Verdicts of check",
            Self::BisectionVerdict => "Verdicts of context bisect",
            Self::BisectedCause => "How causes act",
            Self::TimePart => "Rows of the time table",
            Self::LedgerCategory => "Categories of the time ledger",
            Self::Metric => "Metrics of launches",
            Self::Probe => "Probes",
            Self::Export => "Exports",
            Self::Unavailable => "What can be unavailable",
            Self::Term => "Terms",
        }
    }
}

/// A paragraph of an explanation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Paragraph {
    /// What it is about (`what it is`).
    pub heading: &'static str,
    /// Its text.
    pub text: String,
}

/// A name and what it means.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Explanation {
    /// What it stands for.
    pub kind: NameKind,
    /// The name as JSON has it.
    pub name: String,
    /// Names that it had in earlier versions; left out where it had no other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub former_names: Vec<&'static str>,
    /// What it is, in a few words.
    pub title: String,
    /// The rest.
    pub paragraphs: Vec<Paragraph>,
}

/// Heading of a name as screens have it, where JSON has another.
const ON_SCREENS: &str = "on screens";

impl Explanation {
    /// The name as screens have it.
    fn shown(&self) -> &str {
        let shown = self.paragraphs.iter().find(|one| one.heading == ON_SCREENS);
        shown.map_or(&self.name, |one| &one.text)
    }

    /// With what it is called now before the rest, where a name of earlier versions is meant; else `None`.
    fn for_former(mut self, is_meant: impl Fn(&str) -> bool) -> Option<Self> {
        let former = self.former_names.iter().find(|name| is_meant(name))?;
        let text = format!("{former} is called {} now", self.name);
        self.paragraphs.insert(0, Paragraph { heading: "renamed", text });
        Some(self)
    }
}

/// What `explain --json` prints.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Explanations {
    /// `slowpath-explain/1`.
    pub schema: &'static str,
    /// The names that were asked for, or all.
    pub names: Vec<Explanation>,
}

/// Every name that can be explained.
pub fn all() -> Vec<Explanation> {
    let findings = findings::ALL.iter().map(of_finding);
    let fixes = slowpath_fix::ALL.iter().map(of_fix);
    let factors = slowpath_context::factors::ALL.iter().map(of_factor);
    let families = slowpath_artifacts::families::ALL.iter().map(of_family);
    let guarded = slowpath_guard::Outcome::ALL.into_iter().map(of_guarded);
    let arms = declared_arms::ALL.into_iter().map(of_arm);
    let words = json_words::all().map(of_word);
    let missing = declared::ALL.iter().map(|missing| of_missing(missing));
    let terms = terms::ALL.into_iter().map(of_term);
    let things = findings.chain(fixes).chain(factors).chain(families).chain(guarded).chain(arms);
    let probes = slowpath_capture::probes().map(of_probe);
    let exports = recording_exports::ALL.into_iter().map(of_export);
    things.chain(words).chain(probes).chain(exports).chain(missing).chain(terms).collect()
}

/// What has this name, however it is spelled: a name can be an outcome and a decision. What a result prints as unavailable
/// leads to its declaration (`probe first_wait` to `probe <name>`), and a plan of several to its fix (`reuse_buffer 2`). A name of an
/// earlier version leads to what has another one today, which is then said first.
pub fn named(name: &str) -> Vec<Explanation> {
    let spelled = |name: &str| name.trim().to_lowercase().replace(['-', ' '], "_");
    let wanted = spelled(name);
    let found: Vec<Explanation> =
        all().into_iter().filter(|one| spelled(&one.name) == wanted || spelled(one.shown()) == wanted).collect();
    if !found.is_empty() {
        return found;
    }
    let renamed: Vec<Explanation> =
        all().into_iter().filter_map(|one| one.for_former(|name| spelled(name) == wanted)).collect();
    if !renamed.is_empty() {
        return renamed;
    }
    let of_plan = slowpath_fix::ALL.iter().filter(|fix| is_plan_of(&wanted, fix.name)).map(of_fix).next();
    of_plan.or_else(|| missing::named(name).map(of_missing)).into_iter().collect()
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
    let wanted = name.to_lowercase().replace(['-', ' '], "_");
    let is_likely = |one: &Explanation| {
        let parts = wanted.split('_').filter(|part| part.len() > 2);
        parts.into_iter().any(|part| one.name.contains(part) || one.title.contains(part))
    };
    all().into_iter().filter(is_likely).map(|one| one.name).take(5).collect()
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

fn paragraphs<const N: usize>(all: [(&'static str, &str); N]) -> Vec<Paragraph> {
    let present = all.into_iter().filter(|(_, text)| !text.is_empty());
    present.map(|(heading, text)| Paragraph { heading, text: text.to_owned() }).collect()
}

fn of_finding(finding: &slowpath_analysis::Declaration) -> Explanation {
    let seen = match finding.shows_in {
        ShowsIn::ColdLaunches => "launches from storage: `slowpath diagnose --cold`, in a lab",
        ShowsIn::WarmLaunches => "launches with everything in memory: `slowpath diagnose --warm`",
        ShowsIn::AnyWork => {
            "launches with everything in memory, and what runs already: `slowpath diagnose --warm` and `--pid PID`"
        }
    };
    let paragraphs = paragraphs([
        ("what it is", finding.what),
        ("why it costs", finding.why),
        ("what helps", finding.helps),
        ("see it by hand", finding.by_hand),
        ("reported from", &finding.threshold.words()),
        ("looked for in", seen),
    ]);
    let (kind, name, title) = (NameKind::Finding, finding.name.to_owned(), finding.title.to_owned());
    Explanation { kind, name, former_names: finding.former.to_vec(), title, paragraphs }
}

fn of_fix(fix: &slowpath_fix::Declaration) -> Explanation {
    let paragraphs = paragraphs([
        ("what it changes", fix.what),
        ("why it helps", fix.why),
        ("price", fix.price),
        ("by hand", fix.by_hand),
        ("tried", fix.trial),
    ]);
    let (kind, name, title) = (NameKind::Fix, fix.name.to_owned(), fix.title.to_owned());
    Explanation { kind, name, former_names: fix.former.to_vec(), title, paragraphs }
}

fn of_factor(factor: &slowpath_context::Factor) -> Explanation {
    let scope = match factor.scope {
        Scope::Thread => "each thread has its own",
        Scope::Process => "the threads of a process share it",
        Scope::Machine => "all processes of a machine share it",
    };
    let changes = match factor.lasts {
        Lasts::Always => "",
        Lasts::Boot => "its numbers do not compare with those of another boot of the machine",
        Lasts::Moment => "it changes by itself, so two readings of one process may differ",
    };
    let remedies = factor.remedies(factor.name).into_iter().map(|one| format!("{} (price: {})", one.what, one.price));
    let remedies = remedies.collect::<Vec<_>>().join("; ");
    let never = factor.never_set();
    let bisected = match never {
        Some(why) => format!("not by `slowpath context bisect`: {why}"),
        None => "by `slowpath context bisect`, part by part, where this machine allows it".to_owned(),
    };
    let paragraphs = paragraphs([
        ("whose it is", scope),
        ("over time", changes),
        ("see it by hand", factor.by_hand),
        ("what a difference costs", "`slowpath context diff` says what is known of the two values, with its source"),
        ("what helps", &remedies),
        ("set in a launch", &bisected),
    ]);
    let (kind, name) = (NameKind::ContextFactor, factor.name.to_owned());
    Explanation { kind, name, former_names: factor.former_names().to_vec(), title: factor.title.to_owned(), paragraphs }
}

fn of_family(family: &slowpath_artifacts::families::Family) -> Explanation {
    let shared_by = if family.shared_by.is_empty() { "no way is known" } else { family.shared_by };
    let paragraphs = paragraphs([
        ("recognised by", family.recognised_by),
        ("made from", family.derives_from),
        ("stale", family.stale_when),
        ("without it", family.fallback),
        ("seen in a recording by", family.trace.what()),
        ("repair by hand", family.by_hand),
        ("regenerated in a trial by", family.regeneration.words),
        ("a copy elsewhere", shared_by),
    ]);
    let (kind, name) = (NameKind::ArtifactFamily, family.name.to_owned());
    Explanation { kind, name, former_names: Vec::new(), title: family.title.to_owned(), paragraphs }
}

fn of_guarded(outcome: slowpath_guard::Outcome) -> Explanation {
    let paragraphs = paragraphs([("what it is", outcome.what()), ("what helps", outcome.helps())]);
    let (kind, name) = (NameKind::GuardOutcome, outcome.name().to_owned());
    Explanation { kind, name, former_names: Vec::new(), title: outcome.title().to_owned(), paragraphs }
}

fn of_arm(arm: &DeclaredArm) -> Explanation {
    let role = match arm.role {
        Role::Baseline => "the launch that the others are compared with",
        Role::Fix => "a fix, or a variant of one",
        Role::Sham => "a control: the wrapper of a fix, without the fix",
        Role::Rival => "what another tool would do",
        Role::Warm => "the best that reading ahead could reach",
    };
    let paragraphs = paragraphs([("what it is", arm.what), ("what it is for", role)]);
    let (kind, name, title) = (NameKind::Arm, arm.name.to_owned(), arm.title.to_owned());
    Explanation { kind, name, former_names: Vec::new(), title, paragraphs }
}

fn of_word(word: JsonWord) -> Explanation {
    let paragraphs =
        paragraphs([(ON_SCREENS, word.shown), ("what it is", word.what), ("see it by hand", word.by_hand)]);
    let (kind, name) = (word.kind, word.name.to_owned());
    Explanation { kind, name, former_names: Vec::new(), title: word.title.to_owned(), paragraphs }
}

fn of_probe(probe: &slowpath_capture::Probe) -> Explanation {
    let paragraphs =
        paragraphs([("what it records", probe.what), ("recorded with", probe.asked_for), ("price", probe.price)]);
    let (kind, name) = (NameKind::Probe, probe.name.to_owned());
    Explanation { kind, name, former_names: Vec::new(), title: probe.title.to_owned(), paragraphs }
}

fn of_export(export: &RecordingExport) -> Explanation {
    let paragraphs = paragraphs([
        ("what is in it", export.what),
        ("what it has no place for", export.lacks),
        ("read by", export.read_by),
        ("written by", &format!("`slowpath export RECORDING --to {}`", export.name)),
    ]);
    let (kind, name) = (NameKind::Export, export.name.to_owned());
    Explanation { kind, name, former_names: Vec::new(), title: export.title.to_owned(), paragraphs }
}

fn of_term(term: Term) -> Explanation {
    let paragraphs = paragraphs([("what it is", term.what)]);
    let (kind, name) = (NameKind::Term, term.name.to_owned());
    Explanation { kind, name, former_names: Vec::new(), title: term.title.to_owned(), paragraphs }
}

fn of_missing(missing: &Missing) -> Explanation {
    let paragraphs = paragraphs([("why it may be missing", missing.why), ("what helps", missing.helps)]);
    let (kind, name) = (NameKind::Unavailable, missing.name.to_owned());
    Explanation { kind, name, former_names: Vec::new(), title: missing.what.to_owned(), paragraphs }
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
        let keys: BTreeSet<_> = all.iter().map(|one| (one.kind as u8, one.name.as_str())).collect();
        assert_eq!(keys.len(), all.len());
        for one in &all {
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
            let [found] = named(former).try_into().unwrap();
            let Explanation { kind: found_kind, name: found_name, paragraphs, .. } = found;
            assert_eq!((found_kind, found_name.as_str()), (kind, name));
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
