//! Which difference of two execution contexts makes the same command slower: launches for [`crate::bisection`].
//!
//! Owns reading the two sides, turning choices of candidates into launches, and the JSON of what came of it ([`printed`]). Leaves which
//! choices are launched, and what they show, to `bisection`; contexts and what of them a launch can have to `context`; words for the
//! reader to `report`.

mod arms;
mod from_launches;
pub mod printed;
mod sides;

pub use from_launches::printed_of;
pub use sides::{GivenSide, Sides};

use crate::Metric;
use crate::bisection::{self, Bench, Bisection, BisectionError, Candidate, Expected, MARGIN, Settings};
use arms::Arms;
use slowpath_context::Weight;
use slowpath_context::toggles::{self, Here, Plan};
use slowpath_launch::{EndPolicy, StdioPolicy};
use slowpath_session::failure::{Failure, Kind};
use slowpath_session::target::{Invocation, PATIENCE, Target};
use slowpath_session::{Progress, interrupt};
use std::ffi::OsString;
use std::time::{Duration, Instant};

/// A launch that takes a larger share of the time than one of so many leaves none for the least that is needed: it is given up, unless
/// the user says how long it may take. So what hangs with one of the differences does not take the time of all others.
const LEAST_LAUNCHES: u32 = 10;
/// It is not given up before.
const LEAST_PATIENCE: Duration = Duration::from_secs(5);

/// What is compared, and how.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The side that is fast: a process, a saved context, or words that run the command behind them.
    pub fast: OsString,
    /// The side that is slow.
    pub slow: OsString,
    /// The command.
    pub command: Vec<OsString>,
    /// How it is launched.
    pub invocation: Invocation,
    /// Whether launches get what the user may not do, where a context has it.
    pub trust_context: bool,
    /// What is compared; less is better.
    pub metric: Metric,
    /// Time at most.
    pub max_time: Duration,
    /// Seed of the order of the launches and of the size of their environment.
    pub seed: u64,
}

/// What came of it.
#[derive(Debug)]
pub struct ContextBisected {
    /// The two sides.
    pub sides: Sides,
    /// Their differences.
    pub plan: Plan,
    /// What the launches show.
    pub found: Bisection,
}

/// How long a launch may take in a bisection of this length.
pub fn patience(max_time: Duration) -> Duration {
    (max_time / LEAST_LAUNCHES).max(LEAST_PATIENCE).min(PATIENCE).min(max_time)
}

/// Reads both contexts and finds which of their differences make the command slower.
///
/// # Errors
/// A side names nothing, the command is never ready, the time is too short, or this machine cannot launch it.
pub fn run(wanted: &Wanted, target: &Target, progress: &dyn Progress) -> Result<ContextBisected, Failure> {
    progress.step("reading the two contexts");
    let sides = Sides::read(&wanted.fast, &wanted.slow, &wanted.command, &wanted.invocation)?;
    let here = Here::for_target(&target.identity, wanted.trust_context);
    let plan = toggles::plan(&sides.fast.context, &sides.slow.context, &here);
    let found = bisected(wanted, target, &sides, &plan, progress)?;
    Ok(ContextBisected { sides, plan, found })
}

fn bisected(
    wanted: &Wanted,
    target: &Target,
    sides: &Sides,
    plan: &Plan,
    progress: &dyn Progress,
) -> Result<Bisection, Failure> {
    let (base, _fresh) = target.spec(EndPolicy::KillTree, StdioPolicy::Capture)?;
    let prepared = plan.prepare(&base).map_err(|error| Failure::from(&error))?;
    let mut arms = Arms::new(target, sides, plan, &prepared, base.env, wanted.seed)?;
    let candidates: Vec<Candidate> = plan.candidates.iter().map(candidate).collect();
    let settings = Settings {
        metric: wanted.metric,
        max_time: wanted.max_time,
        seed: wanted.seed,
        given: sides.are_given(),
        margin: MARGIN.ln_1p(),
    };
    let began = Instant::now();
    let bench = Bench {
        launch: &mut |choice, block| arms.one(choice, block),
        elapsed: &|| began.elapsed(),
        progress: &mut |now| {
            progress.step(&format!("{}: {} launches, {} s", now.phase, now.launches, now.elapsed.as_secs()));
            !interrupt::requested()
        },
    };
    bisection::bisect(&candidates, &settings, bench).map_err(failure)
}

fn candidate(candidate: &toggles::Candidate) -> Candidate {
    let expected = match candidate.known.weight {
        Weight::Heavy => Expected::Heavy,
        Weight::Moderate => Expected::Moderate,
        Weight::Light | Weight::Unknown | Weight::Harmless => Expected::Little,
    };
    Candidate { expected, counters: candidate.counters.to_vec() }
}

fn failure(error: BisectionError<Failure>) -> Failure {
    match error {
        BisectionError::Launch(failure) => failure,
        BisectionError::Stopped => Failure::new(Kind::Interrupted, "interrupted"),
        error @ BisectionError::TooLong => Failure::from_error(Kind::Usage, &error)
            .hint("`--max-time T` allows more; some 30 launches of each side are the least"),
        error @ BisectionError::NeverReady(_) => Failure::from_error(Kind::Target, &error).hint(
            "`--ready WHEN` says what ready means, `--timeout SECONDS` how long it may take (a tenth of `--max-time` unless given)",
        ),
        BisectionError::NoValue { ref others, .. } => {
            let others: Vec<&str> = others.iter().map(|metric| metric.name()).collect();
            let hint = format!("`--metric METRIC` with one that all launches have: {}", others.join(", "));
            Failure::from_error(Kind::Usage, &error).hint(hint)
        }
    }
}
