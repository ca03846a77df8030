//! The numbers of a round: what each is, and how it comes from the visits and the children.

use super::ScenarioMeasure;
use super::round::Round;
use crate::Metric;
use slowpath_experiment::{Level, quantile};
use slowpath_tables::{Milestone, Unit};
use std::collections::{BTreeMap, BTreeSet};

/// A number that a round gives.
pub struct Measure {
    /// How it is reported.
    pub described: ScenarioMeasure,
    from: From,
}

/// Where it comes from.
enum From {
    Start,
    Tree(Metric),
    /// A quantile of the visits.
    Visits(Milestone, f64),
    /// A quantile of the launches of a kind of child.
    Children(String, f64),
}

/// The quantiles of visits.
const OF_VISITS: [f64; 3] = [0.5, 0.75, 0.95];
/// The quantiles of child launches.
const OF_CHILDREN: [f64; 2] = [0.5, 0.95];
/// A kind of child is compared where every round has at least so many of them: below, a 95 % quantile is a maximum.
const ENOUGH_CHILDREN: usize = 5;

/// All measures that the rounds can give. Which kinds of children are among them depends on their number, never on their
/// times.
pub fn all<'a>(rounds: impl Iterator<Item = &'a Round> + Clone) -> Vec<Measure> {
    let measure = |name: &str, unit, meaning: String, from| Measure {
        described: ScenarioMeasure { name: name.to_owned(), unit, meaning },
        from,
    };
    let mut found = vec![measure(
        "start",
        Unit::Ms,
        "from the release of the browser's exec until a tab could be asked for a page".to_owned(),
        From::Start,
    )];
    for (milestone, words) in
        [(Milestone::FirstContentfulPaint, "text or a picture was painted"), (Milestone::Load, "everything was loaded")]
    {
        for at in OF_VISITS {
            let percent = at * 100.0;
            let name = format!("{} p{percent:.0}", milestone.name());
            let meaning =
                format!("{percent:.0} % quantile of the visits of a round: from the navigation until {words}");
            found.push(measure(&name, Unit::Ms, meaning, From::Visits(milestone, at)));
        }
    }
    for kind in kinds(rounds) {
        for at in OF_CHILDREN {
            let percent = at * 100.0;
            let meaning = format!(
                "{percent:.0} % quantile of the launches of {kind} children of a round: from fork until the main thread \
                 first waits for events"
            );
            found.push(measure(
                &format!("child {kind} p{percent:.0}"),
                Unit::Ms,
                meaning,
                From::Children(kind.clone(), at),
            ));
        }
    }
    let tree = [
        (Metric::Cpu, "CPU time of all processes of a round"),
        (Metric::MinorFaults, "page faults without I/O of all processes of a round"),
    ];
    found.extend(
        tree.map(|(metric, meaning)| measure(metric.name(), metric.unit(), meaning.to_owned(), From::Tree(metric))),
    );
    found
}

/// Kinds of which every round has enough.
fn kinds<'a>(mut rounds: impl Iterator<Item = &'a Round>) -> BTreeSet<String> {
    let enough = |round: &Round| -> BTreeSet<String> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for child in round.children.iter().flatten().filter(|child| child.ready.is_some()) {
            *counts.entry(&child.kind).or_default() += 1;
        }
        counts.into_iter().filter(|(_, count)| *count >= ENOUGH_CHILDREN).map(|(kind, _)| kind.to_owned()).collect()
    };
    let first = rounds.next().map(enough).unwrap_or_default();
    rounds.fold(first, |common, round| common.intersection(&enough(round)).cloned().collect())
}

/// The value of a measure in a round, in its unit; `None` where the round has none.
pub fn value(measure: &Measure, round: &Round) -> Option<f64> {
    let of = |values: Vec<f64>, at| Some(quantile::quantile(&values, at, Level::P95)?.value);
    match &measure.from {
        From::Start => Some(round.start),
        From::Tree(metric) => round.measures.get(metric).copied(),
        From::Visits(milestone, at) => {
            let visits = round.visits.iter().filter_map(|visit| visit.milestones.get(milestone).copied());
            of(visits.collect(), *at)
        }
        From::Children(kind, at) => {
            let children = round.children.iter().flatten().filter(|child| child.kind == *kind);
            of(children.filter_map(|child| child.time()).map(|time| time.0 as f64 / 1e6).collect(), *at)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::round::PageVisit;
    use super::*;
    use slowpath_analysis::starts::children::{ChildLaunch, Origin};
    use slowpath_tables::{Losses, Nanos, ProcessKey};

    fn child(kind: &str, ready: Option<u64>) -> ChildLaunch {
        ChildLaunch {
            process: ProcessKey { pid: 1, start: Nanos(1) },
            kind: kind.to_owned(),
            origin: Origin::Forked,
            forked: Nanos(1_000_000),
            ready: ready.map(|ms| Nanos(1_000_000 * (1 + ms))),
        }
    }

    fn round(loads: &[f64], children: Vec<ChildLaunch>) -> Round {
        let visit = |(page, ms): (usize, &f64)| PageVisit {
            page,
            from: Nanos(0),
            to: Nanos(1),
            milestones: [(Milestone::Load, *ms)].into(),
        };
        Round {
            start: 7.0,
            visits: loads.iter().enumerate().map(visit).collect(),
            children: Some(children),
            losses: Losses::default(),
            measures: [(Metric::Cpu, 5.0)].into(),
        }
    }

    fn named(rounds: &[Round], name: &str) -> Option<f64> {
        let all = all(rounds.iter());
        let measure = all.iter().find(|one| one.described.name == name)?;
        value(measure, rounds.first()?)
    }

    #[test]
    fn quantiles_are_those_of_the_visits_and_children_of_one_round() {
        let many = || (1..=5).map(|ms| child("renderer", Some(ms))).chain([child("renderer", None)]).collect();
        let rounds = [round(&[10.0, 20.0, 30.0], many()), round(&[1.0], many())];
        assert_eq!(named(&rounds, "load p50"), Some(20.0));
        assert_eq!(named(&rounds, "child renderer p50"), Some(3.0));
        assert_eq!((named(&rounds, "start"), named(&rounds, "cpu")), (Some(7.0), Some(5.0)));
        // No page painted anything.
        assert_eq!(named(&rounds, "first_contentful_paint p50"), None);
    }

    #[test]
    fn a_kind_that_one_round_has_too_few_of_is_not_compared() {
        let some = |count| (0..count).map(|_| child("gpu-process", Some(3))).collect();
        assert!(named(&[round(&[1.0], some(5)), round(&[1.0], some(4))], "child gpu-process p50").is_none());
        assert!(named(&[round(&[1.0], some(5)), round(&[1.0], some(6))], "child gpu-process p50").is_some());
    }
}
