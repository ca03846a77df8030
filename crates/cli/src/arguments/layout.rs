//! The command line of `slowpath layout`.

use super::launch::BenchmarkOptions;
use super::units::seconds;
use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, value_parser};
use slowpath_layout::order::{ALGORITHMS, FORMATS};
use slowpath_layout::repack::{MOST_HEADERS, USUAL_HEADERS};
use slowpath_layout::trial::variants::{USUAL, VARIANTS};
use std::ffi::OsString;
use std::path::PathBuf;

/// `slowpath layout`.
#[derive(Debug, Args)]
pub struct LayoutArguments {
    /// What to do.
    #[command(subcommand)]
    pub command: LayoutCommand,
}

/// What can be done about the order of code.
#[derive(Debug, Subcommand)]
pub enum LayoutCommand {
    /// Run a command and record which functions it uses, in order of first use. Needs no special build and no symbols. Exits with the
    /// command's status.
    Trace(LayoutTraceArguments),
    /// Make a linker order file from one or more traces.
    Order(LayoutOrderArguments),
    /// Predict how many pages and faults the traced work needs with the current and with other orders, without rebuilding.
    Score(LayoutScoreArguments),
    /// Show which sections of a binary cost how many pages at start, and which flag would reduce them.
    Why(LayoutWhyArguments),
    /// Copy a binary so that the pages a start needs stand together in the file, in order of use, without rebuilding: no address changes.
    Repack(LayoutRepackArguments),
    /// Build variants of a program (code in the order of a trace, packed relocations), launch them in blocks, cold and warm, and compare
    /// what their starts take.
    Try(Box<LayoutTryArguments>),
}

/// `slowpath layout trace`.
#[derive(Debug, Args)]
#[command(after_help = TRACE_AFTER_HELP)]
pub struct LayoutTraceArguments {
    /// The trace that is written.
    #[arg(short, long, value_name = "TRACE")]
    pub output: PathBuf,
    /// Trace shared objects too, including those loaded later, not just executables.
    #[arg(long)]
    pub all_objects: bool,
    /// Run the command as this user, a name or a uid (default: the user who called sudo, else the caller).
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// Set a variable in the command's environment. Repeatable.
    #[arg(long, value_name = "NAME=VALUE")]
    pub env: Vec<OsString>,
    /// End the trace after this time (30, 30s, 10m); the command keeps running.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub duration: Option<f64>,
    /// Print one JSON object; the command's standard output goes to standard error.
    #[arg(long)]
    pub json: bool,
    /// No summary.
    #[arg(long)]
    pub quiet: bool,
    /// The command.
    #[arg(last = true, required = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

const TRACE_AFTER_HELP: &str = "Examples:
  slowpath layout trace -o start.trace -- ./server --check
  slowpath layout trace --all-objects -o python.trace -- /usr/bin/python3 -c 'import json'

Children and threads are followed. Under a tracer set-user-ID programs run without privilege unless root traces, and nothing else can trace \
them (strace, gdb).";

/// `slowpath layout order`.
#[derive(Debug, Args)]
#[command(after_help = ORDER_AFTER_HELP)]
pub struct LayoutOrderArguments {
    /// Traces of `slowpath layout trace`, one for each kind of work.
    #[arg(required = true, value_name = "TRACE")]
    pub traces: Vec<PathBuf>,
    /// The linker that reads the order.
    #[arg(long = "for", value_name = "LINKER", value_parser = PossibleValuesParser::new(FORMATS.iter().map(|one| one.name)))]
    pub linker: String,
    /// The order that is written.
    #[arg(short, long, value_name = "ORDER")]
    pub output: PathBuf,
    /// The algorithm; `best` picks the one whose orders need the fewest pages for held-out traces.
    #[arg(long, value_name = "NAME", default_value = BEST,
        value_parser = PossibleValuesParser::new([BEST].into_iter().chain(ALGORITHMS.iter().map(|one| one.name))))]
    pub algorithm: String,
    /// The binary that is ordered, as the traces have it (default: the program of the first trace).
    #[arg(long, value_name = "PATH")]
    pub object: Option<PathBuf>,
    /// Use the symbol names of this build, where they differ from the traced one's only in compiler-generated suffixes.
    #[arg(long, value_name = "BINARY")]
    pub names_of: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// The choice of an algorithm by held-out work.
pub const BEST: &str = "best";

const ORDER_AFTER_HELP: &str = "Examples:
  slowpath layout order start.trace --for lld -o order
  slowpath layout order a.trace b.trace c.trace --for gold --algorithm balanced -o order

Compile with -ffunction-sections: a linker moves sections. The command says how its linker takes the order.";

/// `slowpath layout score`.
#[derive(Debug, Args)]
#[command(after_help = SCORE_AFTER_HELP)]
pub struct LayoutScoreArguments {
    /// The binary.
    #[arg(value_name = "BINARY")]
    pub binary: PathBuf,
    /// Traces of it.
    #[arg(required = true, value_name = "TRACE")]
    pub traces: Vec<PathBuf>,
    /// Score this order too.
    #[arg(long, value_name = "ORDER")]
    pub order: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

const SCORE_AFTER_HELP: &str = "Examples:
  slowpath layout score ./server start.trace query.trace
  slowpath layout score ./server start.trace --order order --json

`held out`: each trace is scored in an order made from all others. Only code pages are counted, not pages that the run-time linker \
writes.";

/// `slowpath layout why`.
#[derive(Debug, Args)]
pub struct LayoutWhyArguments {
    /// The binary.
    #[arg(value_name = "BINARY")]
    pub binary: PathBuf,
    /// Traces of it.
    #[arg(required = true, value_name = "TRACE")]
    pub traces: Vec<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// `slowpath layout repack`.
#[derive(Debug, Args)]
#[command(after_help = REPACK_AFTER_HELP)]
pub struct LayoutRepackArguments {
    /// The binary or shared object.
    #[arg(value_name = "BINARY")]
    pub binary: PathBuf,
    /// A preload plan (all pages a cold start needs) or a trace of `layout trace` (code only). Repeatable.
    #[arg(long, required_unless_present = "prelink", value_name = "FILE")]
    pub order: Vec<PathBuf>,
    /// Do the relocations of a position-independent program in the copy, which has one address then, as with `-no-pie`.
    #[arg(long)]
    pub prelink: bool,
    /// Most program headers of the copy, 1100 at most: more of them leave more of what is not needed where it is, which helps on slow
    /// storage; each costs its mapping at every start.
    #[arg(long, value_name = "N", default_value_t = USUAL_HEADERS as u16, value_parser = value_parser!(u16).range(..=MOST_HEADERS as i64))]
    pub max_headers: u16,
    /// The copy that is written.
    #[arg(short, long, value_name = "COPY")]
    pub output: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

const REPACK_AFTER_HELP: &str = "Examples:
  sudo slowpath diagnose --cold -o DIR -- ./server --check
  slowpath preload plan DIR -o PLAN
  slowpath layout repack ./server --order PLAN -o server.repacked
  sudo slowpath launch --cold --vs './server.repacked --check' -- ./server --check
  slowpath layout repack ./server --prelink -o server.prelinked

Sections, symbols and build-id stay. Symbols of perf are wrong for moved pages; those of gdb and slowpath are right.";

/// `slowpath layout try`.
#[derive(Debug, Args)]
#[command(after_help = TRY_AFTER_HELP)]
pub struct LayoutTryArguments {
    /// The command that builds a variant, for a shell: it passes $SLOWPATH_CFLAGS to its compiler and $SLOWPATH_LDFLAGS to its link, and
    /// writes the binary to $SLOWPATH_OUTPUT.
    #[arg(long, value_name = "CMD")]
    pub build: OsString,
    /// Variants to compare with the baseline, separated by commas.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values = USUAL,
        value_parser = PossibleValuesParser::new(VARIANTS.iter().map(|one| one.name)))]
    pub variants: Vec<String>,
    /// The linker of all variants, where one of them is ordered: GNU ld, gold or lld.
    #[arg(long, value_name = "LINKER", default_value = "bfd", value_parser = PossibleValuesParser::new(["bfd", "gold", "lld"]))]
    pub linker: String,
    /// Make the order of these traces (default: of one launch of the baseline).
    #[arg(long, value_name = "TRACE")]
    pub trace: Vec<PathBuf>,
    /// How variants are launched; default: warm, and cold if this machine can have a lab.
    #[command(flatten)]
    pub options: BenchmarkOptions,
    /// The command; `{binary}` in it is the binary of each variant.
    #[arg(last = true, required = true, value_name = "RUN")]
    pub command: Vec<OsString>,
}

const TRY_AFTER_HELP: &str = "Examples:
  slowpath layout try --build 'cc $SLOWPATH_CFLAGS -O2 main.c $SLOWPATH_LDFLAGS -o $SLOWPATH_OUTPUT' -- {binary} --version
  slowpath layout try --build './build.sh' --variants relr,no-pie,lazy --warm -- {binary} --check

Builds run as the user of the launches, one after the other, in the current directory. $SLOWPATH_VARIANT is the name of the variant, \
$SLOWPATH_ORDER_FILE its order file. Without --metric, cold launches are compared by wall, bytes_read and peak_rss, warm ones by \
wall, minor_faults and peak_rss.";
