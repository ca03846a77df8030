//! Whether limits are kept: counts and sizes exactly, times by their intervals. Pure: numbers in, verdicts out.
//!
//! Owns the rules. **Counts and sizes**: a limit is exceeded when one launch exceeded it. **Times**: launches are looked
//! at as [`slowpath_experiment::looks`] plans it, and a limit is exceeded when the whole interval of the median (or
//! quantile) lies above it, within when the whole interval lies at or below it. All looks at all limits on times together
//! miss with at most 5 %, so a verdict that was reached stays. Leaves launching, and the clock, to its callers.

use crate::{Limit, Subject};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_experiment::looks::Looks;
use slowpath_experiment::{Estimate, Level, quantile};
use slowpath_verify::Metric;

/// Launches at most while limits on times are undecided, unless the budget says otherwise.
const MOST: u32 = 40;
/// No default asks for more launches than this, whatever a quantile takes.
const MOST_FOR_QUANTILES: usize = 2000;

/// What became of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is kept.
    Within,
    /// It is exceeded.
    Exceeded,
    /// The launches do not show it.
    Undecided,
    /// It could not be measured here.
    Unavailable,
}

impl Verdict {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Within => "within",
            Self::Exceeded => "exceeded",
            Self::Undecided => "undecided",
            Self::Unavailable => "unavailable",
        }
    }

    /// Of all limits together: what was exceeded stands before what is not known.
    pub fn overall(all: impl IntoIterator<Item = Self>) -> Self {
        let rank = |verdict: &Self| match verdict {
            Self::Within => 0,
            Self::Undecided => 1,
            Self::Unavailable => 2,
            Self::Exceeded => 3,
        };
        all.into_iter().max_by_key(rank).unwrap_or(Self::Within)
    }
}

/// A limit, judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The verdict.
    pub verdict: Verdict,
    /// The median or quantile of a time, with its interval.
    pub estimate: Option<Estimate>,
    /// Level of that interval.
    pub level: Option<f64>,
    /// The smallest and the largest value of a launch.
    pub range: Option<(f64, f64)>,
    /// Launches above the limit.
    pub above: usize,
    /// Launches with a value.
    pub launches: usize,
    /// What else a reader must know.
    pub reason: Option<String>,
}

impl Judged {
    fn of(verdict: Verdict, values: &[f64], budget: f64) -> Self {
        let smallest = values.iter().copied().reduce(f64::min);
        let largest = values.iter().copied().reduce(f64::max);
        Self {
            verdict,
            estimate: None,
            level: None,
            range: smallest.zip(largest),
            above: values.iter().filter(|value| **value > budget).count(),
            launches: values.len(),
            reason: None,
        }
    }

    fn because(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// With what the values may lack: what is then enough for an excess cannot be little enough.
    pub fn doubted(self, doubt: Option<&str>) -> Self {
        match doubt {
            Some(doubt) if self.verdict == Verdict::Within => {
                Self { verdict: Verdict::Undecided, ..self }.because(doubt)
            }
            Some(doubt) => self.because(doubt),
            None => self,
        }
    }

    /// A limit that could not be measured.
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Self::of(Verdict::Unavailable, &[], 0.0).because(reason)
    }
}

/// Judges a count or a size by all launches: no statistics.
pub fn exact(budget: f64, values: &[f64]) -> Judged {
    if values.is_empty() {
        return Judged::unavailable("no launch has such a number");
    }
    let above = values.iter().any(|value| *value > budget);
    Judged::of(if above { Verdict::Exceeded } else { Verdict::Within }, values, budget)
}

/// The count or size of one recorded launch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// The number.
    pub number: u64,
    /// Why it may be too small.
    pub doubt: Option<String>,
    /// Why it could not be recorded at all.
    pub missing: Option<String>,
}

impl Counted {
    /// Whether it is this number, and no more.
    pub fn is_known_to_be(&self, number: u64) -> bool {
        self.number == number && self.doubt.is_none() && self.missing.is_none()
    }
}

/// Judges the count or size of one recorded launch. Where the recording may lack some of it, it shows the least that there was, which can
/// be too much and cannot be little enough.
pub fn recorded(budget: f64, counted: &Counted) -> Judged {
    match &counted.missing {
        Some(why) => Judged::unavailable(why.clone()),
        None => exact(budget, &[counted.number as f64]).doubted(counted.doubt.as_deref()),
    }
}

/// The limits on times, which are decided while launches are made.
pub struct Times {
    limits: Vec<(Limit, Metric, f64)>,
    judged: Vec<Judged>,
    looks: Looks,
    base: Level,
    fewest: usize,
    /// Launches at most.
    pub most: usize,
}

impl Times {
    /// The rule, fixed before the first launch: `runs` launches at least, and at most `max_runs`, or as many as the
    /// intervals of the quantiles take.
    pub fn new(limits: &[Limit], runs: u32, max_runs: Option<u32>) -> Self {
        let limits = limits.iter().filter_map(|limit| match limit.subject {
            Subject::Time { metric, quantile } => Some((limit.clone(), metric, quantile)),
            _ => None,
        });
        let limits: Vec<(Limit, Metric, f64)> = limits.collect();
        let base = Level::P95.shared_by(limits.len());
        let most = match max_runs {
            _ if limits.is_empty() => runs as usize,
            Some(most) => most as usize,
            None => limits.iter().fold(runs.max(MOST) as usize, |most, (_, _, at)| enough_for(*at, most, base)),
        };
        let judged = limits.iter().map(|_| Judged::of(Verdict::Undecided, &[], 0.0)).collect();
        Self { limits, judged, looks: Looks::new(most, base), base, fewest: runs as usize, most }
    }

    /// Asked after every launch, with the values of a metric so far; true ends the check. `last` says that there is no time
    /// for more.
    pub fn is_enough(&mut self, values: impl Fn(Metric) -> Vec<f64>, launches: usize, last: bool) -> bool {
        let last = last || launches >= self.most;
        let level = match self.looks.at(launches) {
            // A level always exists unless all of the error was spent, which happens at the last look only.
            None if last => Some(self.looks.last(launches).unwrap_or(self.base)),
            planned => planned,
        };
        if let Some(level) = level {
            for ((limit, metric, at), judged) in self.limits.iter().zip(&mut self.judged) {
                if judged.verdict == Verdict::Undecided {
                    *judged = look(limit.budget, *at, &values(*metric), level);
                }
            }
        }
        let decided = self.judged.iter().all(|judged| judged.verdict != Verdict::Undecided);
        last || (launches >= self.fewest && decided)
    }

    /// Whether no time is limited.
    pub fn is_empty(&self) -> bool {
        self.limits.is_empty()
    }

    /// What was found of a limit; `None` for one that is not on a time.
    pub fn judged(&self, name: &str) -> Option<&Judged> {
        self.limits.iter().zip(&self.judged).find(|((limit, ..), _)| limit.name == name).map(|(_, judged)| judged)
    }
}

/// Launches with which the last look has an interval of the quantile, `most` at least.
fn enough_for(at: f64, most: usize, base: Level) -> usize {
    let mut most = most;
    while most < MOST_FOR_QUANTILES {
        let level = Looks::new(most, base).at(most).unwrap_or(base);
        match quantile::needed(at, level) {
            Some(needed) if needed > most => most = needed.min(MOST_FOR_QUANTILES),
            _ => break,
        }
    }
    most
}

/// One look at a time.
fn look(budget: f64, at: f64, values: &[f64], level: Level) -> Judged {
    let Some(estimate) = quantile::quantile(values, at, level) else {
        return Judged::of(Verdict::Undecided, values, budget).because("no launch has such a number");
    };
    let verdict = match estimate.interval() {
        Some((low, _)) if low > budget => Verdict::Exceeded,
        Some((_, high)) if high <= budget => Verdict::Within,
        _ => Verdict::Undecided,
    };
    let mut judged = Judged::of(verdict, values, budget);
    judged.reason = match estimate.interval() {
        None => Some(match quantile::needed(at, level) {
            Some(needed) => format!("an interval takes {needed} launches"),
            None => "no number of launches gives an interval".to_owned(),
        }),
        Some(_) if verdict == Verdict::Undecided => Some("the interval holds the limit".to_owned()),
        Some(_) => None,
    };
    judged.estimate = Some(estimate);
    judged.level = Some(level.fraction());
    judged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file;

    fn limits(text: &str) -> Vec<Limit> {
        file::parse(&format!("[limits]\n{text}")).unwrap().limits
    }

    /// Launches of `value(number)` ms until enough; the number of launches and the verdict on `name`.
    fn run(limits_text: &str, name: &str, max_runs: Option<u32>, value: impl Fn(usize) -> f64) -> (usize, Judged) {
        let mut times = Times::new(&limits(limits_text), 10, max_runs);
        let mut values = Vec::new();
        for launches in 1.. {
            values.push(value(launches));
            if times.is_enough(|_| values.clone(), launches, false) {
                return (launches, times.judged(name).unwrap().clone());
            }
        }
        unreachable!("a check ends")
    }

    #[test]
    fn one_launch_above_a_count_exceeds_it_and_one_at_it_does_not() {
        let judged = exact(3.0, &[1.0, 4.0, 3.0]);
        assert_eq!((judged.verdict, judged.range, judged.above), (Verdict::Exceeded, Some((1.0, 4.0)), 1));
        assert_eq!(exact(4.0, &[1.0, 4.0]).verdict, Verdict::Within);
        assert_eq!(exact(4.0, &[]).verdict, Verdict::Unavailable);
    }

    #[test]
    fn a_recording_with_losses_can_show_too_much_and_never_little_enough() {
        let of = |number: u64, doubt: Option<&str>, missing: Option<&str>| {
            let [doubt, missing] = [doubt, missing].map(|text| text.map(str::to_owned));
            recorded(0.0, &Counted { number, doubt, missing })
        };
        assert_eq!(of(0, None, None).verdict, Verdict::Within);
        assert_eq!(of(0, Some("3 opens were lost"), None).verdict, Verdict::Undecided);
        assert_eq!(of(0, None, Some("nobody asked")).verdict, Verdict::Unavailable);
        let judged = of(1, Some("3 opens were lost"), None);
        assert_eq!((judged.verdict, judged.reason.is_some()), (Verdict::Exceeded, true));
    }

    #[test]
    fn clear_times_are_decided_at_the_first_look() {
        let noise = |launch: usize| 100.0 + (launch * 7 % 10) as f64;
        let (launches, judged) = run("wall = \"200ms\"", "wall", None, noise);
        assert_eq!((launches, judged.verdict), (12, Verdict::Within));
        let (launches, judged) = run("wall = \"50ms\"", "wall", None, noise);
        assert_eq!((launches, judged.verdict, judged.above), (12, Verdict::Exceeded, 12));
        let (low, high) = judged.estimate.unwrap().interval().unwrap();
        assert!(50.0 < low && low <= high && judged.level.unwrap() > 0.95);
    }

    #[test]
    fn a_median_at_its_limit_stays_undecided_up_to_the_most_launches() {
        let around = |launch: usize| if launch.is_multiple_of(2) { 99.0 } else { 101.0 };
        let (launches, judged) = run("wall = \"100ms\"", "wall", None, around);
        assert_eq!((launches, judged.verdict), (40, Verdict::Undecided));
        assert!(judged.reason.unwrap().contains("holds the limit"));
        // All values at the limit: the interval lies at it, and that is within.
        assert_eq!(run("wall = \"100ms\"", "wall", None, |_| 100.0).1.verdict, Verdict::Within);
    }

    #[test]
    fn too_few_launches_for_an_interval_are_undecided_and_say_how_many_it_takes() {
        let (launches, judged) = run("wall = \"1s\"", "wall", Some(10), |_| 1.0);
        assert_eq!((launches, judged.verdict), (10, Verdict::Within));
        let mut times = Times::new(&limits("wall = \"1s\""), 3, Some(3));
        assert!(times.is_enough(|_| vec![1.0; 3], 3, false));
        let judged = times.judged("wall").unwrap();
        assert_eq!(judged.verdict, Verdict::Undecided);
        assert!(judged.reason.as_ref().unwrap().contains("takes 6 launches"), "{judged:?}");
    }

    #[test]
    fn a_high_quantile_raises_the_most_launches_to_what_its_interval_takes() {
        let times = Times::new(&limits("wall_p95 = \"1s\""), 10, None);
        assert!((72..200).contains(&times.most), "{}", times.most);
        let (launches, judged) = run("wall_p95 = \"1s\"", "wall_p95", None, |launch| launch as f64);
        assert!(launches <= times.most && judged.verdict == Verdict::Within, "{launches} {judged:?}");
        let (_, judged) = run("wall_p95 = \"1s\"", "wall_p95", Some(20), |_| 1.0);
        assert_eq!(judged.verdict, Verdict::Undecided);
    }

    #[test]
    fn without_a_limit_on_times_no_launch_is_made_beyond_those_asked_for() {
        let mut times = Times::new(&limits("major_faults = 1"), 10, Some(40));
        assert_eq!(times.most, 10);
        assert!(!times.is_enough(|_| Vec::new(), 9, false) && times.is_enough(|_| Vec::new(), 10, false));
    }

    #[test]
    fn a_time_that_is_over_is_a_last_look() {
        let mut times = Times::new(&limits("wall = \"1s\""), 10, None);
        assert!(times.is_enough(|_| vec![1.0; 7], 7, true));
        assert_eq!(times.judged("wall").unwrap().verdict, Verdict::Within);
    }

    #[test]
    fn what_was_exceeded_stands_before_what_is_not_known() {
        use Verdict::*;
        assert_eq!(Verdict::overall([Within, Undecided, Exceeded, Unavailable]), Exceeded);
        assert_eq!(Verdict::overall([Within, Unavailable, Undecided]), Unavailable);
        assert_eq!(Verdict::overall([Undecided, Within]), Undecided);
        assert_eq!(Verdict::overall([Within]), Within);
    }
}
