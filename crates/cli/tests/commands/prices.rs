//! Prices of findings, held against what runs that nobody records take with and without the work that is priced.
//!
//! They are compared as shares of a child's CPU time, each in a run of its own: where others use the host, the same work takes half as
//! long again a second later, in milliseconds, and its share of a run stays.

use crate::recorded_case::{RecordedCase, row};
use crate::running::*;
use std::process::Command;

/// Pairs of unrecorded runs.
const PAIRS: usize = 5;
/// How far the predicted share may be from the measured one, as a part of it: what reading an artifact costs is not taken off a price, and
/// recording makes a start dearer. A fifth is asked for where nothing else runs.
const MARGIN: f64 = 0.3;

/// What a recorded run says a child pays, and what a child of that run took, in ms of CPU time.
pub struct Price {
    each: f64,
    child: f64,
}

impl Price {
    /// Of the only finding.
    #[track_caller]
    pub fn of(recorded: &RecordedCase) -> Self {
        let finding = recorded.one();
        let each = row(finding, "cpu_ms_each");
        let number = |name: &str| each[name].as_f64().unwrap_or_else(|| panic!("no {name} in {each:#}"));
        Self { each: number("cpu_ms_each"), child: recorded.number("cpu_ms") }
    }
}

/// CPU time of one child in ms, in a run that nobody records.
pub fn unrecorded(user: &str, target: &[String]) -> f64 {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", user, "--regid", user, "--clear-groups"]).args(target).current_dir("/");
    let done = run(&mut command);
    done.succeeds();
    done.stdout.trim().strip_prefix("cpu_ms=").unwrap().parse().unwrap()
}

/// The median: of five, the third.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// How often a price is held against runs: `SLOWPATH_PRICE_ROUNDS`, which `bench/accept/artifact-findings` sets to nine.
pub fn rounds() -> usize {
    let rounds = std::env::var("SLOWPATH_PRICE_ROUNDS").map_or(1, |text| text.parse().unwrap());
    assert!(rounds == 1 || rounds >= 9, "fewer than nine rounds have no interval at 95 %");
    rounds
}

/// The price is what `pair` differs by: CPU times of a child with the work, and without it. Of several [`rounds`], each of which records with
/// `again`, the whole interval is within a fifth.
#[track_caller]
pub fn assert_priced(first: Price, again: &dyn Fn() -> Price, pair: &dyn Fn() -> (f64, f64)) {
    let rounds = rounds();
    let mut ratios = Vec::new();
    let mut price = Some(first);
    for _ in 0..rounds {
        let price = price.take().unwrap_or_else(again);
        let pairs: Vec<(f64, f64)> = (0..PAIRS).map(|_| pair()).collect();
        let measured = median(pairs.iter().map(|(work, none)| 1.0 - none / work).collect());
        let predicted = price.each / price.child;
        let (work, none) = pairs[0];
        println!(
            "a child: predicted {:.1} of {:.1} ms, {predicted:.3}; measured {measured:.3} ({work:.1} ms with, {none:.1} without)",
            price.each, price.child
        );
        let ratio = predicted / measured;
        assert!(rounds > 1 || (ratio - 1.0).abs() <= MARGIN, "predicted {predicted}, measured {measured}");
        ratios.push(ratio);
    }
    if rounds > 1 {
        // From the second smallest to the second largest: of nine, an interval of the median at 96 % whatever the distribution.
        ratios.sort_by(f64::total_cmp);
        let (low, high) = (ratios[1], ratios[ratios.len() - 2]);
        println!("a child: predicted / measured {:.3} ({low:.3} to {high:.3})", median(ratios));
        assert!(low >= 0.8 && high <= 1.2, "not within a fifth: {low} to {high}");
    }
}
