//! The arguments of `slowpath ipc`. Options of the field's own tests keep their names, with one dash too.

use clap::{Args, Subcommand, ValueEnum};
use slowpath_ipc::throughput::sizes;
use slowpath_ipc::transport::choice::Asked;
use slowpath_ipc::transport::{ALL, Transport, named};
use std::ffi::OsString;
use std::path::PathBuf;

/// `slowpath ipc`.
#[derive(Debug, Args)]
pub struct IpcArguments {
    /// What to do.
    #[command(subcommand)]
    pub command: IpcCommand,
}

/// What can be asked of IPC.
#[derive(Debug, Subcommand)]
pub enum IpcCommand {
    /// Measure round trips with growing payloads, in Google Benchmark's format.
    Throughput(ThroughputArguments),
    /// Measure pairs of processes: latency of real-time and normal callers, priority inheritance, missed deadlines and their
    /// trace. Exit code 1 where priority is not inherited, a pair ended early, or a miss stopped the trace.
    #[command(after_help = AFTER_HELP_OF_LATENCY)]
    Latency(LatencyArguments),
    /// Compare transports in counterbalanced blocks.
    Compare(IpcCompareArguments),
    /// Show which transports work here, whether callers can be real-time, whether a miss can be traced, and conditions on
    /// this machine that affect results.
    Doctor {
        /// Print one JSON object.
        #[arg(long)]
        json: bool,
    },
}

/// Formats of Google Benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum BenchmarkFormat {
    /// A table.
    Console,
    /// One JSON object.
    Json,
    /// Comma-separated values.
    Csv,
}

fn transports(text: &str) -> Result<Asked, String> {
    match text {
        "all" => Ok(Asked::All),
        name => one_transport(name).map(Asked::One),
    }
}

fn one_transport(name: &str) -> Result<&'static Transport, String> {
    named(name).ok_or_else(|| {
        let names: Vec<_> = ALL.iter().map(|transport| transport.name).collect();
        format!("no such transport; there are: {}", names.join(", "))
    })
}

/// Payload sizes.
#[derive(Clone, Debug)]
pub struct Sizes(pub Vec<usize>);

fn payloads(text: &str) -> Result<Sizes, String> {
    sizes(text).map(Sizes)
}

fn payload(text: &str) -> Result<usize, String> {
    match sizes(text)?.as_slice() {
        [one] => Ok(*one),
        _ => Err("one size, such as 4 or 64k".to_owned()),
    }
}

/// Seconds, as Google Benchmark takes them: `0.5` or `0.5s`.
fn seconds(text: &str) -> Result<f64, String> {
    match text.strip_suffix('s').unwrap_or(text).parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err("seconds above zero, such as 0.5 or 0.5s".to_owned()),
    }
}

/// A rate: `200` or `200Hz`.
fn hertz(text: &str) -> Result<f64, String> {
    match text.strip_suffix("Hz").unwrap_or(text).parse::<f64>() {
        Ok(number) if (0.001..=1e6).contains(&number) => Ok(number),
        _ => Err("a rate from 0.001 to 1000000, such as 200 or 200Hz".to_owned()),
    }
}

/// `slowpath ipc throughput`.
#[derive(Debug, Args)]
pub struct ThroughputArguments {
    /// Transport, or all that work here; may be repeated or separated by commas.
    #[arg(long, value_name = "T", value_parser = transports, value_delimiter = ',', default_value = "all")]
    pub transport: Vec<Asked>,
    /// Payloads: a range by powers of two, or a list.
    #[arg(long, value_name = "SIZES", value_parser = payloads, default_value = "4..64k")]
    pub size: Sizes,
    /// Form of the output.
    #[arg(long = "benchmark_format", value_name = "FORM", default_value = "console")]
    pub benchmark_format: BenchmarkFormat,
    /// Minimum run time of a benchmark in seconds.
    #[arg(long = "benchmark_min_time", value_name = "SECONDS", value_parser = seconds, default_value = "0.1")]
    pub benchmark_min_time: f64,
    /// Runs of each benchmark; with several, aggregates are shown.
    #[arg(long = "benchmark_repetitions", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000),
          default_value_t = 1)]
    pub benchmark_repetitions: u32,
    /// Also print what the original documentation calls bandwidth; it is too large by a factor of the iterations.
    #[arg(long)]
    pub reference: bool,
    /// The same as --benchmark_format=json.
    #[arg(long)]
    pub json: bool,
}

impl ThroughputArguments {
    /// The form that was asked for.
    pub fn format(&self) -> BenchmarkFormat {
        if self.json { BenchmarkFormat::Json } else { self.benchmark_format }
    }
}

/// `slowpath ipc latency`.
#[derive(Debug, Args)]
pub struct LatencyArguments {
    /// Iterations of each client, each of two transactions (default 100; with -w calls of each worker, default 10000).
    #[arg(short, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub iterations: Option<u32>,
    /// Pairs of a client and a server process.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub pair: u32,
    /// Deadline of a transaction in us.
    #[arg(long = "deadline_us", value_name = "US", default_value_t = 2500)]
    pub deadline_us: u64,
    /// Print tid, CPU, policy and priority of client and server of every transaction, on standard error.
    #[arg(short)]
    pub verbose: bool,
    /// Record the kernel's trace, stop it at the first missed deadline of a real-time caller, and explain that
    /// transaction. Needs root.
    #[arg(long)]
    pub trace: bool,
    /// Write the trace of the miss as a recording into this directory, for `slowpath analyze`, `report` and `export`. Without a miss
    /// nothing is written.
    #[arg(short, long, value_name = "DIR", requires = "trace")]
    pub output: Option<PathBuf>,
    /// Transport.
    #[arg(long, value_name = "T", value_parser = one_transport, default_value = "pipe")]
    pub transport: &'static Transport,
    /// Transactions per second and pair, timed from their scheduled start (default: each starts when the previous one ends).
    #[arg(long, value_name = "HZ", value_parser = hertz)]
    pub rate: Option<f64>,
    /// Additional CPU-bound processes of normal priority.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1024))]
    pub load: u32,
    /// Use a worker pool instead of pairs: N workers that call each other at random.
    #[arg(short = 'w', value_name = "N",
          conflicts_with_all = ["pair", "deadline_us", "verbose", "trace", "output", "rate", "load"])]
    pub workers: Option<u32>,
    /// Payload of the worker pool in bytes.
    #[arg(short = 's', value_name = "BYTES", default_value_t = 0, requires = "workers")]
    pub payload: u32,
    /// Split the workers into clients and servers.
    #[arg(short = 'p', requires = "workers")]
    pub split: bool,
    /// Maximum expected latency in us; slower calls are counted.
    #[arg(short = 'm', value_name = "US", requires = "workers")]
    pub most_us: Option<u64>,
    /// Run a training round first, and expect at most twice its worst latency.
    #[arg(short = 't', requires = "workers", conflicts_with = "most_us")]
    pub training: bool,
    /// Print one JSON object: the keys of the original (schd-dbg, libhwbinder_latency) and additional ones.
    #[arg(long)]
    pub json: bool,
}

const AFTER_HELP_OF_LATENCY: &str = "The options -pair, -deadline_us and -trace may be written with one dash, as in the \
original. Real-time callers need root or RLIMIT_RTPRIO (`ulimit -r 99`); without it their transactions are left out, and \
the result says so.";

/// `slowpath ipc compare`.
#[derive(Debug, Args)]
pub struct IpcCompareArguments {
    /// Transports; the others are compared with the first. `all`: all that work here.
    #[arg(long, value_name = "T,T,...", value_parser = transports, value_delimiter = ',', required = true)]
    pub transports: Vec<Asked>,
    /// Payload.
    #[arg(long, value_name = "SIZE", value_parser = payload, default_value = "4")]
    pub size: usize,
    /// Blocks, each with one burst of every transport.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(6..=10_000))]
    pub blocks: u32,
    /// Seed of the order.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// The words of a command line with the original's one-dash options of `ipc latency` spelt with two.
pub fn with_two_dashes(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    if words.get(1).is_some_and(|word| word == "ipc") && words.get(2).is_some_and(|word| word == "latency") {
        for word in &mut words[3..] {
            if ["-pair", "-deadline_us", "-trace"].iter().any(|option| word == option) {
                let mut two = OsString::from("-");
                two.push(&*word);
                *word = two;
            }
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::super::{Arguments, Command};
    use super::*;
    use clap::Parser;

    fn latency(words: &str) -> Result<LatencyArguments, clap::Error> {
        let words = format!("slowpath ipc latency {words}");
        let parsed = Arguments::try_parse_from(with_two_dashes(words.split_whitespace().map(OsString::from)))?;
        let Command::Ipc(ipc) = parsed.command else { panic!("{parsed:?}") };
        match ipc.into_inner().command {
            IpcCommand::Latency(arguments) => Ok(arguments),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn options_of_the_original_have_its_defaults_and_one_dash_too() {
        let default = latency("").unwrap();
        assert_eq!((default.iterations, default.pair, default.deadline_us), (None, 1, 2500));
        let given = latency("-i 5 -pair 3 -deadline_us 100 -v -trace").unwrap();
        assert_eq!((given.iterations, given.pair, given.deadline_us), (Some(5), 3, 100));
        assert!(given.verbose && given.trace);
        assert_eq!(latency("-trace -o miss").unwrap().output.as_deref(), Some(std::path::Path::new("miss")));
        assert!(latency("-o miss").is_err(), "a recording of no trace");
        assert_eq!(latency("--pair 3").unwrap().pair, 3);
    }

    #[test]
    fn rates_are_in_hertz_and_within_what_a_clock_can_do() {
        for (given, rate) in [("200", 200.0), ("200Hz", 200.0), ("0.001", 0.001), ("1e6", 1e6)] {
            assert_eq!(latency(&format!("--rate {given}")).unwrap().rate, Some(rate));
        }
        for wrong in ["0", "-1", "1e-11", "0.0009", "1000001", "inf", "NaN", "5s", "5HzHz", "Hz", ""] {
            assert!(latency(&format!("--rate={wrong}")).is_err(), "{wrong}");
        }
        assert_eq!((seconds("0.5"), seconds("0.5s")), (Ok(0.5), Ok(0.5)));
        for wrong in ["5sss", "s", "0", "-1", "inf", "5Hz", ""] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn options_of_the_worker_pool_belong_to_it() {
        let pool = latency("-w 4 -i 10 -s 16 -p -t").unwrap();
        assert_eq!((pool.workers, pool.payload, pool.split, pool.training), (Some(4), 16, true, true));
        for wrong in ["-s 16", "-p", "-m 5", "-t", "-w 4 -pair 2", "-w 4 -t -m 5", "-pair 0", "-i 0"] {
            assert!(latency(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn dashes_of_other_commands_are_left_alone() {
        let words = ["slowpath", "launch", "--", "-trace"].map(OsString::from);
        assert_eq!(with_two_dashes(words.clone().into_iter()), words);
    }
}
