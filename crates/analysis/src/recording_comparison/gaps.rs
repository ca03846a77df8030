//! What cannot be compared, or only with a doubt: different programs and machines, what one side did not record, losses.

use super::printed::Compared;
use crate::metrics::{RecordedMetrics, Source};
use slowpath_tables::Unavailable;
use slowpath_tables::missing::declared;
use std::collections::BTreeSet;

/// A side and one of its recordings, as a reader finds it.
struct Named<'a> {
    name: String,
    costs: &'a RecordedMetrics,
}

fn named<'a>(before: &'a [Compared], after: &'a [Compared]) -> Vec<Named<'a>> {
    let name = |side: &'static str| {
        move |one: &'a Compared| Named { name: format!("{side} ({})", one.recording), costs: &one.costs }
    };
    before.iter().map(name("before")).chain(after.iter().map(name("after"))).collect()
}

/// All gaps.
pub(super) fn gaps(before: &[Compared], after: &[Compared]) -> Vec<Unavailable> {
    let all = named(before, after);
    let mut gaps = Vec::new();
    gaps.extend(programs(&all));
    gaps.extend(kinds(&all));
    gaps.extend(machines(&all));
    gaps.extend(sources(&all));
    gaps.extend(costs_of_recording(&all));
    for one in &all {
        gaps.extend(losses(one));
        let doubt = |doubt: &String| declared::COMPLETE.because(format!("{}: {doubt}", one.name), "");
        gaps.extend(one.costs.doubts.iter().map(doubt));
    }
    gaps.extend(unobserved(&all));
    gaps
}

/// Those for which `is_meant`, in words: `before (A), after (B) and 3 others`.
fn list(all: &[Named<'_>], is_meant: impl Fn(&RecordedMetrics) -> bool) -> String {
    const MOST: usize = 4;
    let names: Vec<&str> = all.iter().filter(|one| is_meant(one.costs)).map(|one| one.name.as_str()).collect();
    match names.len() {
        count if count > MOST => format!("{} and {} others", names[..MOST].join(", "), count - MOST),
        _ => names.join(", "),
    }
}

fn programs(all: &[Named<'_>]) -> Option<Unavailable> {
    let programs: BTreeSet<&str> = all.iter().map(|one| one.costs.program.as_str()).collect();
    (programs.len() > 1).then(|| {
        let names = programs.into_iter().collect::<Vec<_>>().join(", ");
        let reason = format!("different programs were recorded: {names}; what has no namesake looks new or gone");
        declared::ONE_WORKLOAD.because(reason, "record the same program on both sides")
    })
}

fn kinds(all: &[Named<'_>]) -> Option<Unavailable> {
    let launches = list(all, |costs| costs.is_launch);
    let others = list(all, |costs| !costs.is_launch);
    (!launches.is_empty() && !others.is_empty()).then(|| {
        let reason =
            format!("launches until ready ({launches}) are compared with what is none, or was never ready ({others})");
        declared::ONE_WORKLOAD.because(reason, "record both sides in the same way")
    })
}

fn machines(all: &[Named<'_>]) -> Option<Unavailable> {
    let machines: BTreeSet<String> = all
        .iter()
        .map(|one| &one.costs.host)
        .map(|host| {
            format!(
                "Linux {} on {} with {} CPUs, {} MiB",
                host.kernel,
                host.machine,
                host.cpus,
                host.memory_bytes >> 20
            )
        })
        .collect();
    (machines.len() > 1).then(|| {
        let reason = format!("they differ: {}", machines.into_iter().collect::<Vec<_>>().join("; "));
        declared::ONE_MACHINE.because(reason, "record both sides on the same machine")
    })
}

/// What not all recordings have. That nobody recorded a launch is no gap, nor that stacks lack of what is lacking itself.
fn sources(all: &[Named<'_>]) -> Vec<Unavailable> {
    let lacks = |source: Source| all.iter().filter(|one| !one.costs.sources.contains(&source)).count();
    let follows_from = |source: Source| match source {
        Source::FaultTimes | Source::FaultStacks => Some(Source::Faults),
        Source::SampleStacks => Some(Source::Samples),
        Source::MemoryCallStacks => Some(Source::MemoryCalls),
        Source::WaitStacks | Source::Ledger => Some(Source::Waits),
        _ => None,
    };
    let is_reported = |source: &Source| match lacks(*source) {
        0 => false,
        lacking if *source == Source::Launch => lacking < all.len(),
        lacking => follows_from(*source).is_none_or(|whole| lacks(whole) < lacking),
    };
    Source::ALL.into_iter().filter(is_reported).filter_map(|source| not_recorded(all, source)).collect()
}

/// The first of these that not all recordings have.
pub fn lacking(
    before: &[Compared],
    after: &[Compared],
    sources: impl IntoIterator<Item = Source>,
) -> Option<Unavailable> {
    let all = named(before, after);
    sources.into_iter().find_map(|source| not_recorded(&all, source))
}

fn not_recorded(all: &[Named<'_>], source: Source) -> Option<Unavailable> {
    let lacks = |costs: &RecordedMetrics| !costs.sources.contains(&source);
    match all.iter().filter(|one| lacks(one.costs)).count() {
        0 => None,
        count if count == all.len() => Some(source.unavailable("recorded on neither side".to_owned())),
        _ => Some(source.unavailable(format!("not recorded in {}", list(all, lacks)))),
    }
}

/// Recording costs the recorded program something: more where more is recorded.
fn costs_of_recording(all: &[Named<'_>]) -> Option<Unavailable> {
    let recorded = |one: &Named<'_>| -> BTreeSet<Source> {
        one.costs.sources.iter().copied().filter(|source| source.costs_the_target()).collect()
    };
    let differs = all
        .windows(2)
        .any(|pair| recorded(&pair[0]) != recorded(&pair[1]) || pair[0].costs.probes != pair[1].costs.probes);
    differs.then(|| {
        let reason = "the recordings were made with different options, and each option costs the program time";
        declared::PROGRAM_ALONE.because(reason.to_owned(), "record both sides with the same options")
    })
}

fn losses(one: &Named<'_>) -> Option<Unavailable> {
    let lost: Vec<String> = one
        .costs
        .losses
        .0
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(kind, count)| format!("{kind} {count}"))
        .collect();
    (!lost.is_empty()).then(|| {
        let reason = format!("{}: lost events: {}", one.name, lost.join(", "));
        declared::COMPLETE.because(reason, "record less, or for a shorter time")
    })
}

/// What some could observe and others not.
fn unobserved(all: &[Named<'_>]) -> Vec<Unavailable> {
    let known: BTreeSet<&str> =
        all.iter().flat_map(|one| one.costs.unavailable.iter().map(|gap| gap.what.as_str())).collect();
    let misses = |costs: &RecordedMetrics, what: &str| costs.unavailable.iter().any(|gap| gap.what == what);
    let on_some = known.into_iter().filter(|what| !all.iter().all(|one| misses(one.costs, what)));
    let gap = |what: &str| {
        let missing = all.iter().flat_map(|one| &one.costs.unavailable).find(|gap| gap.what == what)?;
        let where_to = list(all, |costs| misses(costs, what));
        Some(missing.clone().with_reason(format!("only in {where_to}: {}", missing.reason)))
    };
    on_some.filter_map(gap).collect()
}
