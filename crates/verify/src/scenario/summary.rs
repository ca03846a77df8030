//! From rounds to what is printed.

use super::measure::{self, Measure};
use super::measurements::Measurements;
use super::round::Round;
use super::settings::ScenarioSettings;
use super::{OneVisit, SCENARIO_SCHEMA, Scenario, ScenarioArm, ScenarioComparison, ScenarioRound};
use crate::benchmark::LaunchArm;
use crate::children::{ChildLaunches, of_runs as children_of_runs};
use crate::printed::quantity;
use slowpath_analysis::starts::children::ChildLaunch;
use slowpath_browse::Page;
use slowpath_experiment::{Level, Samples, effect, median, multiple, outcome};
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_tables::{Losses, Milestone, Quantity, Unavailable, Unit};
use std::collections::BTreeMap;

/// The scenario.
pub fn summarize(
    settings: &ScenarioSettings,
    arms: &[LaunchArm],
    pages: &[Page],
    measured: &Measurements,
    unavailable: Vec<Unavailable>,
) -> Result<Scenario, Failure> {
    let measures = measure::all(measured.rounds.iter().flatten().flatten());
    let summaries: Vec<ScenarioArm> =
        (0..arms.len()).map(|arm| summary(arms, arm, pages, measured, &measures)).collect();
    let mut losses = Losses::default();
    measured.rounds.iter().flatten().flatten().for_each(|round| losses.merge(&round.losses));
    Ok(Scenario {
        schema: SCENARIO_SCHEMA.to_owned(),
        conditions: conditions(settings),
        seed: settings.seed,
        rounds: count(measured.comparison.blocks),
        ended: measured.why.clone(),
        pages: pages.iter().map(|page| page.name.clone()).collect(),
        measures: measures.iter().map(|measure| measure.described.clone()).collect(),
        comparisons: comparisons(settings, arms, measured, &measures)?,
        notes: notes(&summaries),
        arms: summaries,
        losses,
        unavailable,
    })
}

fn conditions(settings: &ScenarioSettings) -> Vec<String> {
    vec![
        "warm: one round of each arm before the first that counts".to_owned(),
        "every round starts each browser once, with a fresh profile, and visits every page once in one tab".to_owned(),
        "the order of the pages is another in every round, and the same for all arms of it".to_owned(),
        "local pages are served on loopback, each from an address of its own, and are not cached".to_owned(),
        format!("added to every browser: {}", super::browsers::ADDED.join(" ")),
        format!("differences up to {} % count as none", settings.min_effect * 100.0),
    ]
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn summary(
    arms: &[LaunchArm],
    index: usize,
    pages: &[Page],
    measured: &Measurements,
    measures: &[Measure],
) -> ScenarioArm {
    let result = &measured.comparison.results[index];
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    result.failed.iter().for_each(|reason| *reasons.entry(reason).or_default() += 1);
    let counted = result.launches.iter().zip(&measured.rounds[index]);
    let rounds = counted.zip(&measured.comparison.order).map(|((launch, round), order)| {
        let (launch, round) = (launch.as_ref()?, round.as_ref()?);
        let of = |measure: &Measure| Some((measure.described.name.clone(), measure::value(measure, round)?));
        Some(ScenarioRound {
            position: count(order.iter().position(|arm| *arm == index).unwrap_or(0)),
            visits: visits(round),
            measures: measures.iter().filter_map(of).collect(),
            around: launch.around,
        })
    });
    let rounds: Vec<Option<ScenarioRound>> = rounds.collect();
    let whole: Vec<&Round> = measured.rounds[index].iter().take(rounds.len()).flatten().collect();
    let medians = measures.iter().filter_map(|measure| {
        let values: Vec<f64> = whole.iter().filter_map(|round| measure::value(measure, round)).collect();
        let median = median::median(&values, Level::P95)?;
        Some((measure.described.name.clone(), quantity(median, measure.described.unit)))
    });
    ScenarioArm {
        name: arms[index].name.clone(),
        command: arms[index].target.words(),
        medians: medians.collect(),
        pages: (0..pages.len()).map(|page| of_page(&whole, page)).collect(),
        children: children(&whole),
        failed: count(result.failed.len()),
        reasons: reasons.into_iter().map(|(reason, count)| format!("{count} x {reason}")).collect(),
        rounds,
    }
}

fn visits(round: &Round) -> Vec<OneVisit> {
    let during = |from, to| {
        let children = round.children.as_ref()?;
        Some(count(children.iter().filter(|child| (from..to).contains(&child.forked)).count()))
    };
    let visits = round.visits.iter();
    visits
        .map(|visit| OneVisit {
            page: count(visit.page),
            milestones: visit.milestones.clone(),
            children: during(visit.from, visit.to),
        })
        .collect()
}

/// Medians over the rounds of the milestones of a page.
fn of_page(rounds: &[&Round], page: usize) -> BTreeMap<Milestone, Quantity> {
    let visits = rounds.iter().flat_map(|round| &round.visits).filter(|visit| visit.page == page);
    let mut values: BTreeMap<Milestone, Vec<f64>> = BTreeMap::new();
    for (milestone, ms) in visits.flat_map(|visit| &visit.milestones) {
        values.entry(*milestone).or_default().push(*ms);
    }
    let of = |(milestone, values): (Milestone, Vec<f64>)| {
        Some((milestone, quantity(median::median(&values, Level::P95)?, Unit::Ms)))
    };
    values.into_iter().filter_map(of).collect()
}

/// Children of all rounds, by kind and origin.
fn children(rounds: &[&Round]) -> Option<ChildLaunches> {
    let runs: Option<Vec<Vec<ChildLaunch>>> = rounds.iter().map(|round| round.children.clone()).collect();
    runs.filter(|runs| !runs.is_empty()).map(|runs| children_of_runs(&runs))
}

fn comparisons(
    settings: &ScenarioSettings,
    arms: &[LaunchArm],
    measured: &Measurements,
    measures: &[Measure],
) -> Result<Vec<ScenarioComparison>, Failure> {
    let number = arms.len().saturating_sub(1) * measures.len();
    // All intervals hold together with 95 %.
    let level = Level::P95.shared_by(number);
    let machine = failed(Kind::Machine);
    let mut found = Vec::new();
    let mut raw = Vec::new();
    for measure in measures {
        let mut samples = Samples::new(arms.len(), measured.comparison.blocks);
        for (arm, rounds) in measured.rounds.iter().enumerate() {
            for (block, round) in rounds.iter().take(measured.comparison.blocks).enumerate() {
                if let Some(value) = round.as_ref().and_then(|round| measure::value(measure, round)) {
                    samples.set(arm, block, value).map_err(&machine)?;
                }
            }
        }
        for (index, arm) in arms.iter().enumerate().skip(1) {
            let effect = effect::paired(&samples, 0, index, level).map_err(&machine)?;
            let margin = settings.min_effect * effect.baseline.map_or(0.0, |median| median.value);
            let unit = measure.described.unit;
            raw.push(effect::p_value(&samples, 0, index).map_err(&machine)?);
            found.push(ScenarioComparison {
                arm: arm.name.clone(),
                against: arms[0].name.clone(),
                measure: measure.described.name.clone(),
                outcome: outcome::judge(&effect, margin),
                difference: effect.difference.map(|estimate| quantity(estimate, unit)),
                ratio: effect.ratio.map(|estimate| quantity(estimate, Unit::Ratio)),
                margin: effect.baseline.is_some().then(|| Quantity::exact(margin, unit)),
                minimum_detectable_effect: effect.minimum_detectable_effect.map(|value| Quantity::exact(value, unit)),
                pairs: count(effect.pairs),
                p: None,
                level: effect.level,
            });
        }
    }
    for (one, adjusted) in found.iter_mut().zip(multiple::holm(&raw)) {
        one.p = adjusted;
    }
    Ok(found)
}

/// A page that a browser showed without starting any process for it shared one with another page.
fn notes(arms: &[ScenarioArm]) -> Vec<String> {
    let of = |arm: &ScenarioArm| {
        let visits = arm.rounds.iter().flatten().flat_map(|round| &round.visits);
        let known: Vec<u32> = visits.filter_map(|visit| visit.children).collect();
        let without = known.iter().filter(|children| **children == 0).count();
        let name = &arm.name;
        (!known.is_empty()).then(|| {
            format!(
                "{name}: in {} of {} visits a process was started, {without} used processes that were there",
                known.len() - without,
                known.len()
            )
        })
    };
    arms.iter().filter_map(of).collect()
}
