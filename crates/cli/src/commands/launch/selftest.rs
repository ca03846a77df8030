//! `slowpath launch selftest`: a command against itself, here and now. How often is a difference seen where there is none,
//! and how small a difference could be seen with so much noise?

use super::stopping::Stopping;
use super::{arms, begin};
use crate::arguments::{SelftestArguments, settings};
use crate::commands::print_json;
use crate::failure::{Failure, Kind, failed};
use crate::progress::Progress;
use schemars::JsonSchema;
use serde::Serialize;
use slowpath_experiment::{Level, Outcome, effect, outcome, power, proportion};
use slowpath_report::quantity;
use slowpath_tables::{Quantity, Unit};
use slowpath_verify::benchmark;
use slowpath_verify::conditions::Conditions;
use slowpath_verify::{ArmResult, Metric};
use std::process::ExitCode;

/// What `slowpath launch selftest --json` prints.
#[derive(Serialize, JsonSchema)]
pub struct Selftest {
    /// `slowpath-launch-selftest/1`.
    schema: &'static str,
    /// Command line.
    command: Vec<String>,
    /// How warm or cold the launches were.
    conditions: Vec<String>,
    /// What was compared.
    metric: Metric,
    /// Comparisons of the command with itself.
    comparisons: u32,
    /// Blocks of each.
    blocks: u32,
    /// Comparisons that saw a difference. There was none.
    flagged: u32,
    /// Their share with its 95 % interval; 5 % are to be expected at most.
    share: Quantity,
    /// Median of all launches.
    median: Quantity,
    /// What benchmarks of other sizes could see with this noise.
    detectable: Vec<Detectable>,
}

/// What a benchmark of a size could see.
#[derive(Serialize, JsonSchema)]
pub struct Detectable {
    /// Blocks.
    blocks: u32,
    /// The smallest difference that it shows in 80 % of repetitions.
    effect: Quantity,
    /// The same as a share of the median.
    share: Quantity,
}

/// Blocks of a comparison, unless `--blocks` says otherwise.
const BLOCKS: u32 = 8;
/// Sizes of benchmarks for which the detectable difference is told.
const SIZES: [u32; 5] = [10, 20, 40, 80, 160];

/// Runs the command.
pub fn run(arguments: &SelftestArguments) -> Result<ExitCode, Failure> {
    let options = &arguments.options;
    if options.export.is_some() || !options.quantile.is_empty() || options.metric.len() > 1 {
        return Err(Failure::new(Kind::Usage, "a selftest compares one metric, and has neither quantiles nor exports")
            .hint("`--json` prints all that it found"));
    }
    let blocks = options.blocks.unwrap_or(BLOCKS);
    let arms = begin(arms::of_selftest(arguments)?);
    let progress = Progress::new(options.quiet);
    let mut conditions =
        Conditions::prepare(settings(&options.device), options.cold, arms.iter().map(|arm| &arm.target), &progress)?;
    let metric = options.metric.first().copied().unwrap_or(Metric::Wall);
    let (mut flagged, mut differences, mut values) = (0, Vec::new(), Vec::new());
    let began = std::time::Instant::now();
    let mut done = 0;
    while done < arguments.comparisons && (done == 0 || began.elapsed() < options.max_time) {
        progress.count("comparing the command with itself", done as usize, arguments.comparisons as usize);
        let mut stopping = Stopping::after(Some(blocks), options, arms.len());
        // Each comparison has an order of its own.
        let seed = options.seed.wrapping_add(u64::from(done));
        let enough = |results: &[ArmResult], blocks| stopping.enough(results, blocks);
        let compared = match benchmark::compared(&arms, &mut conditions, blocks as usize, seed, &progress, enough) {
            // What was compared before ctrl-C counts.
            Ok(compared) if compared.stopped && done > 0 => break,
            Err(failure) if failure.is_interruption() && done > 0 => break,
            Ok(compared) if compared.stopped => return Err(Failure::new(Kind::Interrupted, "interrupted")),
            compared => compared?,
        };
        let samples = compared.samples(metric);
        let found = effect::paired(&samples, 0, 1, Level::P95).map_err(failed(Kind::Machine))?;
        if matches!(outcome::judge(&found, 0.0), Outcome::Helps | Outcome::Hurts) {
            flagged += 1;
        }
        let pairs = samples.complete([0, 1]).map_err(failed(Kind::Machine))?;
        differences.extend(pairs.rows.iter().map(|[one, other]| other - one));
        values.extend(pairs.rows.iter().flatten());
        done += 1;
    }
    progress.done();
    let unit = metric.unit();
    let median = slowpath_experiment::median::median(&values, Level::P95)
        .ok_or_else(|| Failure::new(Kind::Target, format!("no launch has a value for {}", metric.name())))?;
    let sigma = power::robust_sigma(&differences);
    let detectable = SIZES.into_iter().filter_map(|blocks| {
        let effect = power::effect_of(sigma?, blocks as usize)?;
        let share = Quantity::exact(effect / median.value * 100.0, Unit::Percent);
        Some(Detectable { blocks, effect: Quantity::exact(effect, unit), share })
    });
    let share = proportion::interval(u64::from(flagged), u64::from(done), Level::P95);
    let selftest = Selftest {
        schema: "slowpath-launch-selftest/1",
        command: arms.first().map(|arm| arm.target.words()).unwrap_or_default(),
        conditions: conditions.words(),
        metric,
        comparisons: done,
        blocks,
        flagged,
        share: Quantity {
            value: f64::from(flagged) / f64::from(done.max(1)),
            low: share.map(|(low, _)| low),
            high: share.map(|(_, high)| high),
            unit: Unit::Ratio,
        },
        median: quantity(median, unit),
        detectable: detectable.collect(),
    };
    if options.json {
        print_json(&selftest);
    } else {
        print!("{}", selftest.text());
    }
    let is_cut = crate::interrupt::requested();
    Ok(if is_cut { ExitCode::from(Kind::Interrupted as u8) } else { ExitCode::SUCCESS })
}

impl Selftest {
    fn text(&self) -> String {
        let percent = |share: Option<f64>| share.map_or("?".to_owned(), |share| format!("{:.0}", share * 100.0));
        let mut text = format!(
            "{} of {} comparisons of the command with itself saw a difference that is not there: {} % ({} to {}); 5 % are \
             to be expected at most.\n",
            self.flagged,
            self.comparisons,
            percent(Some(self.share.value)),
            percent(self.share.low),
            percent(self.share.high)
        );
        text.push_str("With this noise a benchmark sees, in 80 % of its repetitions:\n");
        for one in &self.detectable {
            text.push_str(&format!("{:6} blocks: {:.1} %\n", one.blocks, one.share.value));
        }
        for condition in &self.conditions {
            text.push_str(&format!("  {condition}\n"));
        }
        text
    }
}
