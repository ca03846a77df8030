//! `slowpath launch scenario`: pages visited in running browsers. Each round starts every browser once with a fresh profile,
//! visits all pages in one order (shuffled anew in each round, the same for all arms of it) and ends it.

mod measure;
mod round;
mod summary;

use super::arms::{self, LaunchArm};
use super::begin;
use crate::arguments::ScenarioArguments;
use crate::commands::print_json;
use crate::failure::{Failure, Kind};
use crate::interrupt;
use crate::progress::Progress;
use crate::recorded_launch;
use crate::target::launcher;
use crate::unprivileged::{Work, as_user};
use round::{Ended, Plan, Round};
use slowpath_browse::{Page, pages};
use slowpath_experiment::design;
use slowpath_report::terminal::{self, Style};
use slowpath_tables::Unavailable;
use slowpath_tables::missing::declared;
use slowpath_verify::benchmark;
use slowpath_verify::{Comparison, Measured, Sample, Witnesses, compare_until};
use std::ffi::OsStr;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Name of the profile in the fresh directory of a launch.
const PROFILE: &str = "profile";
/// What is added to the words of a browser.
const ADDED: [&str; 2] = ["--remote-debugging-port=0", "--user-data-dir={tmp}/profile"];
/// A page or a start that takes longer is given up, unless `--timeout` says otherwise.
const PATIENCE: Duration = Duration::from_secs(60);

/// All that was measured.
struct Measurements {
    comparison: Comparison,
    /// By arm and round; the last attempt of each.
    rounds: Vec<Vec<Option<Round>>>,
    why: String,
}

/// Runs the command.
pub fn run(arguments: &ScenarioArguments) -> Result<ExitCode, Failure> {
    let arms = begin(browsers(arguments)?);
    let first = arms.first().ok_or_else(|| Failure::new(Kind::Usage, "there is no browser"))?;
    // The list is the user's.
    let pages = as_user(&first.target.identity, &Work::reading("reading the list of pages"), || {
        pages::read(&arguments.pages).map_err(|error| {
            Failure::from_error(Kind::Usage, &error).hint(
                "PAGES is a directory whose sub-directories hold an index.html, or a file with a URL or a path a line; the \
                 browser's user must be able to read it",
            )
        })
    })?;
    let gaps = recorded_launch::gaps();
    let progress = Progress::new(arguments.quiet);
    let measured = measure_all(arguments, &arms, &pages, gaps.is_empty(), &progress)?;
    progress.done();
    let failures: usize = measured.comparison.results.iter().map(|result| result.failed.len()).sum();
    let scenario = summary::summarize(arguments, &arms, &pages, &measured, unavailable(gaps))?;
    if arguments.json {
        print_json(&scenario);
    } else {
        print!("{}", terminal::scenario(&scenario, &Style::detect(std::io::stdout().is_terminal())));
    }
    match failures {
        0 if interrupt::requested() => Ok(ExitCode::from(Kind::Interrupted as u8)),
        0 => Ok(ExitCode::SUCCESS),
        _ => {
            eprintln!("slowpath: {failures} rounds failed; they are counted and not timed");
            Ok(ExitCode::from(Kind::Target as u8))
        }
    }
}

fn unavailable(gaps: Vec<Unavailable>) -> Vec<Unavailable> {
    let of = |gap: Unavailable| declared::CHILD_LAUNCHES.of(&[&gap.what], gap.reason, gap.remedy);
    gaps.into_iter().map(of).collect()
}

/// The arms, with what lets them be driven.
fn browsers(arguments: &ScenarioArguments) -> Result<Vec<LaunchArm>, Failure> {
    let given =
        std::iter::once(&arguments.browser).chain(&arguments.vs).chain(arguments.arm.iter().map(|(_, words)| words));
    for words in given {
        for word in &words.0 {
            let text = word.to_string_lossy();
            if text.starts_with("--user-data-dir") || text.starts_with("--remote-debugging") {
                return Err(Failure::new(
                    Kind::Usage,
                    format!("{text}: the profile and the port are chosen for each round"),
                )
                .hint("leave it out; every round begins with a fresh profile"));
            }
        }
        let program = words.0.first().map(|word| base(word)).unwrap_or_default();
        if program.contains("firefox") {
            return Err(Failure::new(
                Kind::Machine,
                format!("{program}: unavailable: this version drives browsers through DevTools, which Firefox no longer has (removed in 129)"),
            )
            .hint("`slowpath launch --ready browser` compares its start with that of others"));
        }
    }
    arms::of_scenario(arguments, &ADDED.map(Into::into))
}

fn base(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    text.rsplit('/').next().unwrap_or_default().to_owned()
}

fn measure_all(
    arguments: &ScenarioArguments,
    arms: &[LaunchArm],
    pages: &[Page],
    record: bool,
    progress: &Progress,
) -> Result<Measurements, Failure> {
    let most = arguments.rounds as usize;
    // Permutations in which each page stands at each place equally often.
    let orders = design::schedule(pages.len(), most, arguments.seed);
    let limit = arguments.timeout.map_or(PATIENCE, Duration::from_secs_f64);
    let mut rounds: Vec<Vec<Option<Round>>> = arms.iter().map(|_| (0..most).map(|_| None).collect()).collect();
    let mut launcher = launcher();
    let witnesses = &mut Witnesses::new();
    let mut one = |arm: usize, block: usize, keep: &mut Option<Round>| -> Result<Sample, Failure> {
        let plan = Plan { pages, order: &orders[block], limit, record };
        let before = witnesses.look();
        let ended = round::round(&mut launcher, &arms[arm], &plan, benchmark::pad(arguments.seed, block))?;
        let around = |own: f64| witnesses.look().since(&before, own);
        Ok(match ended {
            Ended::Stopped => Sample::Stopped,
            Ended::Failed(reason) => Sample::Failed(reason),
            Ended::Whole(round) => {
                let measures = round.measures.clone();
                let own = measures.get(&slowpath_verify::Metric::Cpu).copied().unwrap_or(0.0);
                *keep = Some(*round);
                Sample::Measured(Measured { around: around(own), measures })
            }
        })
    };
    for (index, arm) in arms.iter().enumerate() {
        progress.step(format!("a first round of {}, which does not count", arm.name));
        match one(index, 0, &mut None)? {
            Sample::Failed(reason) => {
                return Err(Failure::new(Kind::Target, format!("{} failed in its first round: {reason}", arm.name)));
            }
            Sample::Stopped => return Err(Failure::new(Kind::Interrupted, "interrupted")),
            Sample::Measured(_) | Sample::Discarded(_) => {}
        }
    }
    let began = Instant::now();
    let width = arms.len().max(1);
    let comparison = compare_until(
        arms.iter().map(LaunchArm::described).collect(),
        most,
        arguments.seed,
        |arm, block| one(arm, block, &mut rounds[arm][block]),
        |done, _| {
            let number = done.div_ceil(width);
            progress.step(format!("round {number} of {most}: {done} browsers visited {} pages", pages.len()));
            !interrupt::requested()
        },
        |_, _| began.elapsed() >= arguments.max_time,
    )
    .map_err(|error| benchmark::comparison_failure(error, "`--timeout SECONDS` allows the start and each page more"))?;
    let why = match (comparison.stopped, comparison.blocks) {
        (true, blocks) => format!("it was interrupted after {blocks} rounds"),
        (false, blocks) if blocks < most => format!("the time was over after {blocks} rounds"),
        (false, blocks) => format!("{blocks} rounds were asked for"),
    };
    Ok(Measurements { comparison, rounds, why })
}
