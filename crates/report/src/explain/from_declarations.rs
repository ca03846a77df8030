//! Explanations made from declarations: one function a kind.

use super::explanation::{Explanation, ON_SCREENS, Paragraph};
use super::kind::NameKind;
use crate::exports::{self, BenchmarkExport};
use crate::json_documents::{self, JsonDocument};
use crate::json_values;
use crate::json_values::enumeration::JsonEnumeration;
use crate::json_words::{self, JsonWord};
use crate::recording_exports::{self, RecordingExport};
use crate::terms::{self, Term};
use slowpath_analysis::{ShowsIn, findings};
use slowpath_context::{Lasts, Scope};
use slowpath_fix::apply::{Keeps, TARGETS, TargetKind};
use slowpath_import::Importer;
use slowpath_ipc::transport::{self, Transport};
use slowpath_layout::order::{ALGORITHMS, Algorithm, FORMATS, Format};
use slowpath_layout::scored::{CURRENT, GIVEN};
use slowpath_layout::trial::variants::{VARIANTS, Variant};
use slowpath_tables::missing::{Missing, declared};
use slowpath_tables::{TableDoc, all_tables};
use slowpath_verify::{DeclaredArm, Role, declared_arms};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Every name that can be explained, by kind.
pub(super) fn all() -> Vec<Explanation> {
    let mut all: Vec<Explanation> = Vec::new();
    all.extend(findings::ALL.iter().map(of_finding));
    all.extend(slowpath_fix::ALL.iter().map(of_fix));
    all.extend(slowpath_context::factors::ALL.iter().map(of_factor));
    all.extend(slowpath_artifacts::families::ALL.iter().map(of_family));
    all.extend(slowpath_guard::Outcome::ALL.into_iter().map(of_guarded));
    all.extend(declared_arms::ALL.into_iter().map(of_arm));
    all.extend(TARGETS.into_iter().map(of_target));
    all.extend(json_words::all().map(of_word));
    all.extend(slowpath_capture::probes().map(of_probe));
    all.extend(all_tables().iter().map(of_table));
    all.extend(slowpath_import::ALL.into_iter().map(of_importer));
    all.extend(recording_exports::ALL.into_iter().map(of_export));
    all.extend(exports::ALL.iter().map(of_benchmark_export));
    all.extend(transport::ALL.iter().copied().map(of_transport));
    all.extend(VARIANTS.iter().map(of_variant));
    all.extend(ALGORITHMS.iter().map(of_algorithm));
    all.extend([CURRENT, GIVEN].map(|(name, what)| of_order(name, what, "`slowpath layout score BINARY`")));
    all.extend(FORMATS.iter().map(of_format));
    all.extend(json_documents::all().map(of_document));
    let values = of_enumerations(&all);
    all.extend(values);
    all.extend(declared::ALL.iter().map(|missing| of_missing(missing)));
    all.extend(terms::ALL.into_iter().map(of_term));
    all
}

/// The values of the enumerations that have no kind of their own.
fn of_enumerations(others: &[Explanation]) -> Vec<Explanation> {
    let mut kinds: BTreeMap<NameKind, BTreeSet<&str>> = BTreeMap::new();
    for one in others {
        kinds.entry(one.kind).or_default().insert(&one.name);
    }
    let has_kind = |one: &JsonEnumeration| {
        let values: BTreeSet<&str> = one.values.iter().map(|(value, _)| value.as_str()).collect();
        kinds.values().any(|names| *names == values)
    };
    json_values::all().iter().filter(|one| !has_kind(one)).flat_map(of_values).collect()
}

fn of_document(document: JsonDocument) -> Explanation {
    let paragraphs = paragraphs([
        ("what else", &document.rest),
        ("its fields", &format!("docs/schemas/{}", document.file)),
        ("printed as", "`schema`; the number behind the slash is its version"),
    ]);
    let (kind, title, name) = (NameKind::JsonDocument, document.title, document.schema);
    Explanation { kind, name, former_names: Vec::new(), title, paragraphs }
}

fn of_values(enumeration: &JsonEnumeration) -> Vec<Explanation> {
    let of_value = |(value, what): &(String, String)| {
        let others = enumeration.values.iter().filter(|(other, _)| other != value);
        let others: Vec<String> = others.map(|(other, _)| format!("`{other}`")).collect();
        let what = if what.is_empty() { &enumeration.about } else { what };
        let paragraphs = paragraphs([
            ("what it is", what),
            ("printed as", &enumeration.printed_as()),
            ("other values", &others.join(", ")),
        ]);
        let (kind, name) = (NameKind::JsonValue, value.clone());
        Explanation { kind, name, former_names: Vec::new(), title: enumeration.title(), paragraphs }
    };
    enumeration.values.iter().map(of_value).collect()
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

pub(super) fn of_fix(fix: &slowpath_fix::Declaration) -> Explanation {
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

pub(super) fn of_factor(factor: &slowpath_context::Factor) -> Explanation {
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
        ("what it is", factor.what),
        ("why it costs", factor.why),
        ("what helps", &remedies),
        ("see it by hand", factor.by_hand),
        ("what a difference costs", "`slowpath context diff` says what is known of the two values, with its source"),
        ("whose it is", scope),
        ("over time", changes),
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

pub(super) fn of_missing(missing: &Missing) -> Explanation {
    let paragraphs = paragraphs([("why it may be missing", missing.why), ("what helps", missing.helps)]);
    let (kind, name) = (NameKind::Unavailable, missing.name.to_owned());
    Explanation { kind, name, former_names: missing.former.to_vec(), title: missing.what.to_owned(), paragraphs }
}

fn of_table(table: &TableDoc) -> Explanation {
    let columns: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
    let paragraphs = paragraphs([
        ("what a row is", &table.doc),
        ("columns", &columns.join(", ")),
        ("in full", "docs/reference/recording-format.md; `slowpath query` and any columnar tool read it"),
    ]);
    let (kind, name) = (NameKind::Table, table.name.to_owned());
    Explanation { kind, name, former_names: Vec::new(), title: "a table of a recording".to_owned(), paragraphs }
}

fn of_importer(importer: &Importer) -> Explanation {
    let paragraphs = paragraphs([
        ("made by", &format!("`{}`", importer.made_by)),
        ("what is read", importer.reads),
        ("what it cannot hold", importer.lacks),
        (
            "read by",
            &format!(
                "`slowpath import FILE -o RECORDING --format {}`; without --format, if it begins as one",
                importer.name
            ),
        ),
    ]);
    let (kind, name) = (NameKind::Importer, importer.name.to_owned());
    Explanation { kind, name, former_names: Vec::new(), title: importer.title.to_owned(), paragraphs }
}

fn of_benchmark_export(export: &BenchmarkExport) -> Explanation {
    let paragraphs = paragraphs([("written by", &format!("`slowpath launch --export {} -- COMMAND`", export.name))]);
    let (kind, name) = (NameKind::BenchmarkExport, export.name.to_owned());
    Explanation { kind, name, former_names: Vec::new(), title: export.title.to_owned(), paragraphs }
}

fn of_target(target: &TargetKind) -> Explanation {
    let keeps = match target.keeps {
        Keeps::Content(_) => "the content of a file; `slowpath fix undo` restores it to the byte",
        Keeps::Permissions => "the permissions of files that the fix names; `slowpath fix undo` restores them",
    };
    let paragraphs = paragraphs([
        ("what it changes", keeps),
        ("written by", &format!("`slowpath fix apply DIAGNOSIS FIX {}`", target.option)),
    ]);
    let (kind, name) = (NameKind::FixTarget, target.name.to_owned());
    Explanation { kind, name, former_names: Vec::new(), title: target.title.to_owned(), paragraphs }
}

fn of_transport(transport: &Transport) -> Explanation {
    let waits = format!("`{}` in the column `reason` of the table `off_cpu`", transport.waits.as_str());
    let paragraphs = paragraphs([
        ("what it is", transport.documentation),
        ("waits in a recording", &waits),
        ("measured by", &format!("`slowpath ipc latency --transport {}`", transport.name)),
    ]);
    let (kind, name) = (NameKind::Transport, transport.name.to_owned());
    Explanation { kind, name, former_names: Vec::new(), title: transport.title.to_owned(), paragraphs }
}

fn of_variant(variant: &Variant) -> Explanation {
    let flags = |flags: String| if flags.is_empty() { "none".to_owned() } else { format!("`{flags}`") };
    let order = if variant.ordered { "; the order comes from traces, by the linker's own option" } else { "" };
    let paragraphs = paragraphs([
        ("compiler flags", &flags(variant.cflags())),
        ("linker flags", &format!("{}{order}", flags(variant.ldflags(None, Path::new(""))))),
        ("launched by", "`slowpath layout try`, beside the build as it is"),
    ]);
    let (kind, name) = (NameKind::LayoutVariant, variant.name.to_owned());
    Explanation { kind, name, former_names: Vec::new(), title: variant.title.to_owned(), paragraphs }
}

fn of_algorithm(algorithm: &Algorithm) -> Explanation {
    of_order(
        algorithm.name,
        algorithm.title,
        &format!("`slowpath layout order TRACE... --algorithm {} --for LINKER -o ORDER`", algorithm.name),
    )
}

fn of_order(name: &str, what: &str, made_by: &str) -> Explanation {
    let paragraphs = paragraphs([("what stands first", what), ("printed by", made_by)]);
    let (kind, name, title) = (NameKind::LayoutOrder, name.to_owned(), "an order of functions".to_owned());
    Explanation { kind, name, former_names: Vec::new(), title, paragraphs }
}

fn of_format(format: &Format) -> Explanation {
    let paragraphs = paragraphs([
        ("how it is used", format.usage),
        ("written by", &format!("`slowpath layout order TRACE... --for {} -o ORDER`", format.name)),
    ]);
    let (kind, name) = (NameKind::OrderFormat, format.name.to_owned());
    let title = "an order of functions for this linker or optimiser".to_owned();
    Explanation { kind, name, former_names: Vec::new(), title, paragraphs }
}
