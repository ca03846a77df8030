//! A command against itself, here and now. How often is a difference seen where there is none, and how small a difference could be
//! seen with so much noise?

use super::stopping::Stopping;
use super::{BenchmarkSettings, LaunchArm, compared};
use crate::conditions::{Coldness, Conditions};
use crate::printed::quantity;
use crate::{ArmResult, Metric};
use schemars::JsonSchema;
use serde::Serialize;
use slowpath_experiment::{Level, Outcome, effect, median, outcome, power, proportion};
use slowpath_session::Progress;
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_tables::{Quantity, Unit};

/// Version of what `slowpath launch selftest --json` prints.
const SCHEMA: &str = "slowpath-launch-selftest/1";

/// What `slowpath launch selftest --json` prints: what comparing a command with itself showed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Selftest {
    /// `slowpath-launch-selftest/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: &'static str,
    /// Command line.
    pub command: Vec<String>,
    /// How warm or cold the launches were.
    pub conditions: Vec<String>,
    /// What was compared.
    pub metric: Metric,
    /// Comparisons of the command with itself.
    pub comparisons: u32,
    /// Blocks of each.
    pub blocks: u32,
    /// Comparisons that saw a difference. There was none.
    pub flagged: u32,
    /// Their share with its 95 % interval; 5 % are to be expected at most.
    pub share: Quantity,
    /// Median of all launches.
    pub median: Quantity,
    /// What benchmarks of other sizes could see with this noise.
    pub detectable: Vec<Detectable>,
}

/// What a benchmark of a size could see.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Detectable {
    /// Blocks.
    pub blocks: u32,
    /// The smallest difference that it shows in 80 % of repetitions.
    pub effect: Quantity,
    /// The same as a share of the median.
    pub share: Quantity,
}

/// Blocks of a comparison, unless the settings say otherwise.
const BLOCKS: u32 = 8;
/// Sizes of benchmarks for which the detectable difference is reported.
const SIZES: [u32; 5] = [10, 20, 40, 80, 160];

/// What the comparisons saw.
#[derive(Default)]
struct Seen {
    done: u32,
    flagged: u32,
    /// Of the pairs, in the unit of the metric.
    differences: Vec<f64>,
    values: Vec<f64>,
}

/// Compares two arms of one command so many times, by the first metric.
///
/// # Errors
/// As [`super::run`]; what was compared before ctrl-C counts, if anything was.
pub fn run(
    settings: &BenchmarkSettings,
    arms: &[LaunchArm],
    cold: Option<Coldness>,
    comparisons: u32,
    progress: &dyn Progress,
) -> Result<Selftest, Failure> {
    let blocks = settings.blocks.unwrap_or(BLOCKS);
    let metric = settings.metrics.first().copied().unwrap_or(Metric::Wall);
    let targets = arms.iter().map(|arm| &arm.target);
    let mut conditions = Conditions::prepare(settings.device, cold, targets, progress)?;
    let seen = compared_again(settings, arms, &mut conditions, (metric, blocks, comparisons), progress)?;
    let unit = metric.unit();
    let median = median::median(&seen.values, Level::P95)
        .ok_or_else(|| Failure::new(Kind::Target, format!("no launch has a value for {}", metric.name())))?;
    let sigma = power::robust_sigma(&seen.differences);
    let detectable = SIZES.into_iter().filter_map(|blocks| {
        let effect = power::effect_of(sigma?, blocks as usize)?;
        let share = Quantity::exact(effect / median.value * 100.0, Unit::Percent);
        Some(Detectable { blocks, effect: Quantity::exact(effect, unit), share })
    });
    let share = proportion::interval(u64::from(seen.flagged), u64::from(seen.done), Level::P95);
    Ok(Selftest {
        schema: SCHEMA,
        command: arms.first().map(|arm| arm.target.words()).unwrap_or_default(),
        conditions: conditions.words(),
        metric,
        comparisons: seen.done,
        blocks,
        flagged: seen.flagged,
        share: Quantity {
            value: f64::from(seen.flagged) / f64::from(seen.done.max(1)),
            low: share.map(|(low, _)| low),
            high: share.map(|(_, high)| high),
            unit: Unit::Ratio,
        },
        median: quantity(median, unit),
        detectable: detectable.collect(),
    })
}

fn compared_again(
    settings: &BenchmarkSettings,
    arms: &[LaunchArm],
    conditions: &mut Conditions,
    (metric, blocks, comparisons): (Metric, u32, u32),
    progress: &dyn Progress,
) -> Result<Seen, Failure> {
    let mut seen = Seen::default();
    let began = std::time::Instant::now();
    while seen.done < comparisons && (seen.done == 0 || began.elapsed() < settings.max_time) {
        progress.count("comparing the command with itself", seen.done as usize, comparisons as usize);
        let mut stopping = Stopping::after(Some(blocks), settings, arms.len());
        // Each comparison has an order of its own.
        let seed = settings.seed.wrapping_add(u64::from(seen.done));
        let enough = |results: &[ArmResult], blocks| stopping.enough(results, blocks);
        let compared = match compared(arms, conditions, blocks as usize, seed, progress, enough) {
            // What was compared before ctrl-C counts.
            Ok(compared) if compared.stopped && seen.done > 0 => break,
            Err(failure) if failure.is_interruption() && seen.done > 0 => break,
            Ok(compared) if compared.stopped => return Err(Failure::new(Kind::Interrupted, "interrupted")),
            compared => compared?,
        };
        let samples = compared.samples(metric);
        let found = effect::paired(&samples, 0, 1, Level::P95).map_err(failed(Kind::Machine))?;
        if matches!(outcome::judge(&found, 0.0), Outcome::Helps | Outcome::Hurts) {
            seen.flagged += 1;
        }
        let pairs = samples.complete([0, 1]).map_err(failed(Kind::Machine))?;
        seen.differences.extend(pairs.rows.iter().map(|[one, other]| other - one));
        seen.values.extend(pairs.rows.iter().flatten());
        seen.done += 1;
    }
    Ok(seen)
}
