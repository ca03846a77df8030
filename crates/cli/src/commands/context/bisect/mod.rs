//! `slowpath context bisect`: which difference of two contexts makes the same command slower.

mod arms;
mod told;
mod ways;

use crate::arguments::ContextBisectArguments;
use crate::commands::context::run::unprepared;
use crate::commands::print_json;
use crate::failure::{Failure, Kind};
use crate::interrupt;
use crate::progress::Progress;
use crate::target::{PATIENCE, Target};
use arms::Arms;
use slowpath_context::Weight;
use slowpath_context::toggles::{self, Here, Plan};
use slowpath_launch::{EndPolicy, StdioPolicy};
use slowpath_report::terminal::{self, Style};
use slowpath_verify::bisection::{self, Bench, Bisection, BisectionError, Expected, MARGIN, Settings, Suspect};
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use ways::Ways;

/// A launch that takes a larger share of the time than one of so many leaves none for the least that is needed: it is given up, unless
/// `--timeout` says otherwise. So what hangs with one of the differences does not take the time of all others.
const LEAST_LAUNCHES: u32 = 10;
/// It is not given up before.
const LEAST_PATIENCE: Duration = Duration::from_secs(5);

/// Runs the command.
pub fn run(arguments: &ContextBisectArguments) -> Result<ExitCode, Failure> {
    let patience = (arguments.max_time / LEAST_LAUNCHES).max(LEAST_PATIENCE).min(PATIENCE).min(arguments.max_time);
    let target = Target::of(&arguments.invocation, arguments.command.clone(), Some(patience))?;
    for warning in &target.warnings {
        eprintln!("slowpath: warning: {warning}");
    }
    let progress = Progress::new(arguments.quiet);
    progress.step("reading the two contexts");
    let ways = Ways::read(arguments)?;
    let here = Here::for_target(&target.identity, arguments.trust.trust_context);
    let plan = toggles::plan(&ways.fast.context, &ways.slow.context, &here);
    let found = bisected(arguments, &target, &ways, &plan, &progress)?;
    progress.done();
    let told = told::of(arguments, &ways, &plan, &found);
    if arguments.json {
        print_json(&told);
    } else {
        print!("{}", terminal::context_bisection(&told, &Style::detect(std::io::stdout().is_terminal())));
    }
    Ok(if interrupt::requested() { ExitCode::from(Kind::Interrupted as u8) } else { ExitCode::SUCCESS })
}

fn bisected(
    arguments: &ContextBisectArguments,
    target: &Target,
    ways: &Ways,
    plan: &Plan,
    progress: &Progress,
) -> Result<Bisection, Failure> {
    let (base, _fresh) = target.spec(EndPolicy::KillTree, StdioPolicy::Capture)?;
    let prepared = plan.prepare(&base).map_err(|error| unprepared(&error))?;
    let mut arms = Arms::new(target, ways, plan, &prepared, base.env, arguments.seed)?;
    let suspects: Vec<Suspect> = plan.candidates.iter().map(suspect).collect();
    let settings = Settings {
        metric: arguments.metric,
        max_time: arguments.max_time,
        seed: arguments.seed,
        given: ways.are_given(),
        margin: MARGIN.ln_1p(),
    };
    let began = Instant::now();
    let bench = Bench {
        launch: &mut |treatment, block| arms.one(treatment, block),
        elapsed: &|| began.elapsed(),
        progress: &mut |now| {
            progress.step(format!("{}: {} launches, {} s", now.phase, now.launches, now.elapsed.as_secs()));
            !interrupt::requested()
        },
    };
    bisection::bisect(&suspects, &settings, bench).map_err(failure)
}

fn suspect(candidate: &toggles::Candidate) -> Suspect {
    let expected = match candidate.known.weight {
        Weight::Heavy => Expected::Heavy,
        Weight::Moderate => Expected::Moderate,
        Weight::Light | Weight::Unknown | Weight::Harmless => Expected::Little,
    };
    Suspect { expected, counters: candidate.counters.to_vec() }
}

fn failure(error: BisectionError<Failure>) -> Failure {
    match error {
        BisectionError::Launch(failure) => failure,
        BisectionError::Stopped => Failure::new(Kind::Interrupted, "interrupted"),
        error @ BisectionError::TooLong => Failure::from_error(Kind::Usage, &error)
            .hint("`--max-time T` allows more; some 30 launches of each way are the least"),
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
