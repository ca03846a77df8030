//! The command line of `slowpath launch`.

use super::choice::choice;
use super::device::DeviceArguments;
use super::later::Later;
use super::target::InvocationArguments;
use clap::builder::TypedValueParser;
use clap::{Args, Subcommand};
use slowpath_report::exports::{self, BenchmarkExport};
use slowpath_tables::written::{duration, percent, quantile};
use slowpath_verify::Metric;
use slowpath_verify::benchmark::BenchmarkSettings;
use slowpath_verify::benchmark::words::{Words, named_command, named_words, words};
pub use slowpath_verify::conditions::Coldness;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// `slowpath launch`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, after_help = AFTER_HELP)]
pub struct BenchmarkArguments {
    /// Other measurements.
    #[command(subcommand)]
    pub command: Option<LaunchCommand>,
    /// How.
    #[command(flatten)]
    pub options: BenchmarkOptions,
    /// Another arm: its name and command, quoted as in a shell (no shell is started).
    #[arg(long, value_name = "NAME=CMD", value_parser = named_command)]
    pub arm: Vec<(String, Words)>,
    /// Another arm without a name, compared with the first.
    #[arg(long, value_name = "CMD", value_parser = words)]
    pub vs: Vec<Words>,
    /// The first arm; `{tmp}` in any command becomes a fresh empty directory for each launch.
    #[arg(last = true, value_name = "CMD")]
    pub target: Vec<OsString>,
}

const AFTER_HELP: &str = "Arms are launched in counterbalanced blocks and compared with the first one by pairs of the \
same block. Without --blocks it goes on until every comparison is decided, or --max-blocks or --max-time are reached; the \
intervals allow for that. A launch that fails is counted and never timed, and the exit code is then 4.";

/// Forms of `slowpath launch`.
#[derive(Debug, Subcommand)]
pub enum LaunchCommand {
    /// Measure what each addition to a command costs, cold and warm: one arm for the base, one for the base with each addition.
    Ladder(Later<LadderArguments>),
    /// Measure how far comparisons can be trusted on this machine now, by comparing a command with itself repeatedly.
    Selftest(Later<SelftestArguments>),
    /// Measure page loads in a running browser: visits a list of pages in each arm, round after round.
    Scenario(Later<ScenarioArguments>),
    /// Show how long child processes of recorded launches take to become ready: by kind, first and later ones, new processes and
    /// forks of a running one.
    Children(Later<ChildrenArguments>),
}

/// `slowpath launch ladder`.
#[derive(Debug, Args)]
pub struct LadderArguments {
    /// The command without any addition, quoted as in a shell.
    #[arg(long, value_name = "CMD", value_parser = words)]
    pub base: Words,
    /// A name, and the words to append to the base for this arm.
    #[arg(long, value_name = "NAME=ARGS", required = true, value_parser = named_words)]
    pub add: Vec<(String, Words)>,
    /// How.
    #[command(flatten)]
    pub options: BenchmarkOptions,
}

/// `slowpath launch selftest`.
#[derive(Debug, Args)]
pub struct SelftestArguments {
    /// Comparisons of the command with itself.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub comparisons: u32,
    /// How; `--blocks` is the number of blocks of each comparison (default 8).
    #[command(flatten)]
    pub options: BenchmarkOptions,
    /// The command.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub target: Vec<OsString>,
}

/// `slowpath launch scenario`.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP_OF_SCENARIO)]
pub struct ScenarioArguments {
    /// The pages: a directory whose sub-directories hold an index.html (or whose files are *.html), or a file with a URL
    /// or path per line, optionally preceded by a name and a space.
    #[arg(value_name = "PAGES")]
    pub pages: PathBuf,
    /// The browser command (Chromium family), quoted as in a shell.
    #[arg(long, value_name = "CMD", value_parser = words)]
    pub browser: Words,
    /// Another browser, or the same with other options, compared with the first.
    #[arg(long, value_name = "CMD", value_parser = words)]
    pub vs: Vec<Words>,
    /// The same with a name.
    #[arg(long, value_name = "NAME=CMD", value_parser = named_command)]
    pub arm: Vec<(String, Words)>,
    /// Rounds; in each, every browser visits every page once.
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub rounds: u32,
    /// The smallest difference that matters, in percent of the first browser.
    #[arg(long, alias = "detect", value_name = "P", value_parser = percent, default_value = "2%")]
    pub min_effect: f64,
    /// Time limit, such as 30s, 10m or 1h; the current round is finished.
    #[arg(long, value_name = "T", value_parser = duration, default_value = "30m")]
    pub max_time: Duration,
    /// Abort a start or a page load after this many seconds.
    #[arg(long, value_name = "TIME", value_parser = super::units::seconds)]
    pub timeout: Option<f64>,
    /// Who the browsers run as: a name or a uid (default: the user who called sudo, else the caller).
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Set a variable in the browsers' environment; `{tmp}` is a fresh directory, which holds the profile too.
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<OsString>,
    /// Seed of all orders.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print one JSON object with all visits.
    #[arg(long)]
    pub json: bool,
    /// No progress.
    #[arg(long)]
    pub quiet: bool,
}

const AFTER_HELP_OF_SCENARIO: &str = "Every round starts each browser with a fresh profile, visits all \
pages in one tab, and ends it. Local pages are served on loopback, each from an address of its own. As root it also \
records the browsers' child processes: from fork until the main thread first waits for events.";

/// `slowpath launch children`.
#[derive(Debug, Args)]
pub struct ChildrenArguments {
    /// Recordings made with `slowpath record --child-startup`, each of one run of the same program.
    #[arg(required = true, value_name = "DIR")]
    pub recordings: Vec<PathBuf>,
    /// Print one JSON object with all launches.
    #[arg(long)]
    pub json: bool,
}

/// How launches are made, compared and shown.
#[derive(Debug, Args)]
pub struct BenchmarkOptions {
    /// Launch cold: in a private lab (proved cold page by page), after evicting the files that the command uses, or after
    /// dropping all caches of this machine (which affects everything running on it).
    #[arg(long, value_parser = coldness(), value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "lab",
          conflicts_with = "warm")]
    pub cold: Option<Coldness>,
    /// Launch warm (the default): one unmeasured launch of each arm first.
    #[arg(long)]
    pub warm: bool,
    /// What is compared: wall, cpu, user, system, minor_faults, major_faults, bytes_read, peak_rss, pss, switches,
    /// processes. Several, separated by commas, share one error rate.
    #[arg(long, value_name = "METRIC", value_delimiter = ',', default_value = "wall")]
    pub metric: Vec<Metric>,
    /// Also print these quantiles and compare them, in percent, such as 50,95.
    #[arg(long, value_name = "Q", value_delimiter = ',', value_parser = quantile)]
    pub quantile: Vec<f64>,
    /// The smallest difference that matters, in percent of the first arm.
    #[arg(long, alias = "detect", value_name = "P", value_parser = percent, default_value = "2%")]
    pub min_effect: f64,
    /// Exactly this many blocks, instead of stopping when every comparison is decided.
    #[arg(long, alias = "runs", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub blocks: Option<u32>,
    /// Maximum number of blocks.
    #[arg(long, alias = "max-runs", value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(1..=10_000), conflicts_with = "blocks")]
    pub max_blocks: u32,
    /// Time limit, such as 30s, 10m or 1h; the current block is finished.
    #[arg(long, value_name = "T", value_parser = duration, default_value = "10m")]
    pub max_time: Duration,
    /// Seed of the order of the launches and of the size of their environment.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print one JSON object with all launches.
    #[arg(long)]
    pub json: bool,
    /// Also write the result in this form.
    #[arg(long, value_parser = choice(exports::ALL.iter().map(|one| (one.name, one.title, one))), value_name = "FORM",
          requires = "output")]
    pub export: Option<&'static BenchmarkExport>,
    /// Where to write it.
    #[arg(short, long, value_name = "FILE", requires = "export")]
    pub output: Option<PathBuf>,
    /// No progress.
    #[arg(long)]
    pub quiet: bool,
    /// Conditions of the lab.
    #[command(flatten)]
    pub device: DeviceArguments,
    /// How the arms are launched.
    #[command(flatten)]
    pub invocation: InvocationArguments,
}

impl BenchmarkOptions {
    /// What a benchmark is asked for.
    pub fn settings(&self) -> BenchmarkSettings {
        BenchmarkSettings {
            metrics: self.metric.clone(),
            quantiles: self.quantile.clone(),
            min_effect: self.min_effect,
            blocks: self.blocks,
            max_blocks: self.max_blocks,
            max_time: self.max_time,
            seed: self.seed,
            device: self.device.settings(),
        }
    }
}

/// The words for [`Coldness`], which budgets have too.
fn coldness() -> impl TypedValueParser<Value = Coldness> {
    choice([
        ("lab", "In a private lab", Coldness::Lab),
        (
            "evict",
            "The command's files are evicted from the page cache, as far as nobody else maps them",
            Coldness::Evict,
        ),
        ("drop", "All caches of the machine are dropped", Coldness::Drop),
    ])
}
