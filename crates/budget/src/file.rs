//! The budget file of `slowpath check`: its form, and what is wrong with one that has another.
//!
//! Owns names, units and defaults of a budget. Leaves opening the file, and what a limit means, to the command.
//!
//! ```toml
//! [launch]              # all of it optional
//! cold = "lab"          # or "evict", "drop"; warm without it
//! runs = 10             # launches at least
//! max_runs = 40         # launches at most, while limits on times are undecided
//! ready = "exit"        # as `--ready`, which wins
//! [limits]
//! wall = "300ms"        # times: the median; wall_p95 is that quantile
//! minor_faults = 2500   # counts
//! bytes_read = "12MB"   # sizes
//! ```

use serde::{Deserialize, Serialize};
use slowpath_launch::ReadyWhen;
use slowpath_tables::{FileProblem, Unit};
use slowpath_verify::Metric;
use slowpath_verify::conditions::Coldness;
use std::collections::BTreeMap;
use toml::{Spanned, Value};

/// Launches at least, unless the budget says otherwise or only a recording shows what it limits.
const RUNS: u32 = 10;
/// No budget asks for more launches.
const MOST_RUNS: u32 = 10_000;

/// Times whose median or quantile can be limited.
const TIMES: [Metric; 4] = [Metric::Wall, Metric::Cpu, Metric::User, Metric::System];
/// Counts and sizes that no launch may exceed.
const LARGEST: [Metric; 4] = [Metric::MinorFaults, Metric::MajorFaults, Metric::BytesRead, Metric::PeakRss];
/// Limit on processes.
pub const PROCESSES: &str = "processes";
/// Limit on opens that were refused.
pub const DENIED_OPENS: &str = "denied_opens";
/// Limit on bytes that entered the page cache.
pub const COLD_BYTES: &str = "cold_bytes";

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Subject {
    /// A quantile of a time over launches, in ms.
    Time {
        /// The time.
        metric: Metric,
        /// The quantile, between 0 and 1; 0.5 is the median.
        quantile: f64,
    },
    /// A count or a size that every launch keeps.
    Largest(Metric),
    /// Processes of the tree, the command's own among them, from a recording: [`Metric::Processes`] lacks those that
    /// another process of the tree waited for.
    Processes,
    /// Opens refused with `EACCES` or `EPERM`, from a recording.
    DeniedOpens,
    /// Bytes of files inserted into the page cache, from a recording.
    ColdBytes,
}

impl Subject {
    /// Unit of its values.
    pub fn unit(self) -> Unit {
        match self {
            Self::Time { metric, .. } | Self::Largest(metric) => metric.unit(),
            Self::Processes | Self::DeniedOpens => Unit::Count,
            Self::ColdBytes => Unit::Bytes,
        }
    }

    /// Whether only a recording shows its value.
    pub fn needs_recording(self) -> bool {
        matches!(self, Self::Processes | Self::DeniedOpens | Self::ColdBytes)
    }
}

/// One limit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// Its key in the file.
    pub name: String,
    /// Its value as written.
    pub written: String,
    /// Its value in the unit of the subject.
    pub budget: f64,
    /// What is limited.
    pub subject: Subject,
}

/// A budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// How launches are made cold; `None` for warm ones.
    pub cold: Option<Coldness>,
    /// Launches at least.
    pub runs: u32,
    /// Launches at most, where the file says so.
    pub max_runs: Option<u32>,
    /// When the target is ready, where the file says so.
    pub ready: Option<ReadyWhen>,
    /// The limits, in the order of the file.
    pub limits: Vec<Limit>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    #[serde(default)]
    launch: LaunchTable,
    #[serde(default)]
    limits: BTreeMap<String, Spanned<Value>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LaunchTable {
    cold: Option<Coldness>,
    runs: Option<Spanned<u32>>,
    max_runs: Option<Spanned<u32>>,
    ready: Option<Spanned<String>>,
}

/// Reads a budget from the text of its file.
///
/// # Errors
/// The first thing that is wrong, with its line.
pub fn parse(text: &str) -> Result<Budget, FileProblem> {
    let at = |offset: usize, words: String| FileProblem::at(text, offset, words);
    let document: Document = toml::from_str(text)
        .map_err(|error| FileProblem::of_parser(text, error.span().map(|span| span.start), error.message()))?;
    let number = |given: &Option<Spanned<u32>>, key: &str| match given {
        Some(value) if !(1..=MOST_RUNS).contains(value.get_ref()) => {
            Err(at(value.span().start, format!("{key} must be between 1 and {MOST_RUNS}")))
        }
        given => Ok(given.as_ref().map(|value| *value.get_ref())),
    };
    let runs = number(&document.launch.runs, "runs")?;
    let max_runs = number(&document.launch.max_runs, "max_runs")?;
    if let (Some(most), Some(spanned)) = (max_runs, &document.launch.max_runs)
        && most < runs.unwrap_or(1)
    {
        return Err(at(spanned.span().start, "max_runs is less than runs".to_owned()));
    }
    let ready = document.launch.ready.as_ref().map(|ready| {
        let when = ready.get_ref().parse::<ReadyWhen>();
        when.map_err(|error| at(ready.span().start, format!("ready: {error}")))
    });
    let mut entries: Vec<(&String, &Spanned<Value>)> = document.limits.iter().collect();
    entries.sort_by_key(|(_, value)| value.span().start);
    let limits = entries
        .into_iter()
        .map(|(name, value)| limit(name, value.get_ref()).map_err(|words| at(value.span().start, words)));
    let limits = limits.collect::<Result<Vec<Limit>, FileProblem>>()?;
    if limits.is_empty() {
        let words = format!("there is nothing to check: [limits] names no limit; known are {}", known());
        return Err(FileProblem::whole(words));
    }
    // What only a recording shows takes no further launch; the one that is made says whether the target starts.
    let usual = if limits.iter().all(|limit| limit.subject.needs_recording()) { 1 } else { RUNS };
    Ok(Budget {
        cold: document.launch.cold,
        runs: runs.unwrap_or(usual.min(max_runs.unwrap_or(usual))),
        max_runs,
        ready: ready.transpose()?,
        limits,
    })
}

fn known() -> String {
    let times = TIMES.map(Metric::name).join(", ");
    let others = LARGEST.map(Metric::name).join(", ");
    format!("{times} (with _pNN for a quantile, such as wall_p95), {others}, {PROCESSES}, {DENIED_OPENS}, {COLD_BYTES}")
}

fn subject(name: &str) -> Option<Subject> {
    let named = |all: &[Metric], name: &str| all.iter().copied().find(|metric| metric.name() == name);
    if let Some(metric) = named(&TIMES, name) {
        return Some(Subject::Time { metric, quantile: 0.5 });
    }
    if let Some(metric) = named(&LARGEST, name) {
        return Some(Subject::Largest(metric));
    }
    match name {
        PROCESSES => return Some(Subject::Processes),
        DENIED_OPENS => return Some(Subject::DeniedOpens),
        COLD_BYTES => return Some(Subject::ColdBytes),
        _ => {}
    }
    let (time, percent) = name.rsplit_once("_p")?;
    if !percent.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let percent = percent.parse::<u8>().ok().filter(|percent| (1..=99).contains(percent))?;
    Some(Subject::Time { metric: named(&TIMES, time)?, quantile: f64::from(percent) / 100.0 })
}

fn limit(name: &str, value: &Value) -> Result<Limit, String> {
    let subject = subject(name).ok_or_else(|| format!("there is no limit {name:?}; known are {}", known()))?;
    let (budget, written) = match (subject.unit(), value) {
        (Unit::Count, Value::Integer(count)) if *count >= 0 => (*count as f64, count.to_string()),
        (Unit::Count, _) => return Err(format!("{name} is a count: write a whole number from 0 on, without quotes")),
        (Unit::Bytes, Value::String(text)) => (measure(text, &SIZE_UNITS).map_err(in_(name))?, text.clone()),
        (Unit::Bytes, _) => return Err(format!("{name} is a size: write it as \"12MB\" ({})", units(&SIZE_UNITS))),
        (_, Value::String(text)) => (measure(text, &TIME_UNITS).map_err(in_(name))?, text.clone()),
        (_, _) => return Err(format!("{name} is a time: write it as \"300ms\" ({})", units(&TIME_UNITS))),
    };
    Ok(Limit { name: name.to_owned(), written, budget, subject })
}

fn in_(name: &str) -> impl Fn(String) -> String {
    move |problem| format!("{name}: {problem}")
}

/// Units of times, in ms.
const TIME_UNITS: [(&str, f64); 3] = [("us", 1e-3), ("ms", 1.0), ("s", 1e3)];
/// Units of sizes, in bytes.
const SIZE_UNITS: [(&str, f64); 7] = [
    ("B", 1.0),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
];

fn units(units: &[(&str, f64)]) -> String {
    units.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// A number with one of the units.
fn measure(text: &str, known: &[(&str, f64)]) -> Result<f64, String> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let factor = known.iter().find(|(name, _)| *name == unit.trim()).map(|(_, factor)| factor);
    match (digits.parse::<f64>(), factor) {
        (Ok(value), Some(factor)) if value.is_finite() => Ok(value * factor),
        (Ok(_), None) => Err(format!("{text:?} has no unit that is known here; there are {}", units(known))),
        _ => Err(format!("{text:?} is no number with a unit ({})", units(known))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        parse(text).expect_err(text).to_string()
    }

    #[test]
    fn a_whole_budget_is_read_in_the_order_of_its_lines() {
        let budget = parse(
            "# for CI\n[launch]\ncold = \"evict\"\nruns = 12\nmax_runs = 50\nready = \"line:^up$\"\n[limits]\n\
             wall = \"0.3s\"\ncpu_p95 = \"450 ms\"\nminor_faults = 2_500\nbytes_read = \"12MB\"\npeak_rss = \"1.5KiB\"\n\
             denied_opens = 0\ncold_bytes = \"1GB\"\n",
        )
        .unwrap();
        assert_eq!((budget.cold, budget.runs, budget.max_runs), (Some(Coldness::Evict), 12, Some(50)));
        assert_eq!(budget.ready, Some(ReadyWhen::Line("^up$".to_owned())));
        let read: Vec<(&str, f64, Unit)> =
            budget.limits.iter().map(|limit| (limit.name.as_str(), limit.budget, limit.subject.unit())).collect();
        assert_eq!(
            read,
            [
                ("wall", 300.0, Unit::Ms),
                ("cpu_p95", 450.0, Unit::Ms),
                ("minor_faults", 2500.0, Unit::Count),
                ("bytes_read", 12e6, Unit::Bytes),
                ("peak_rss", 1536.0, Unit::Bytes),
                ("denied_opens", 0.0, Unit::Count),
                ("cold_bytes", 1e9, Unit::Bytes),
            ]
        );
        assert_eq!(budget.limits[1].subject, Subject::Time { metric: Metric::Cpu, quantile: 0.95 });
        assert_eq!(budget.limits[1].written, "450 ms");
    }

    #[test]
    fn launches_have_a_default_that_the_most_allowed_keeps() {
        let budget = parse("[limits]\nwall = \"1s\"").unwrap();
        assert_eq!((budget.cold, budget.runs, budget.max_runs, budget.ready), (None, RUNS, None, None));
        assert_eq!(parse("[launch]\nmax_runs = 3\n[limits]\nwall = \"1s\"").unwrap().runs, 3);
        assert_eq!(parse("[limits]\ndenied_opens = 0\nprocesses = 1").unwrap().runs, 1);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line_and_with_what_there_is() {
        let cases = [
            ("[limits]\nwall = \"1s\"\nwal = \"1s\"", "line 3: there is no limit \"wal\"; known are wall, cpu"),
            ("[limits]\nwall_p0 = \"1s\"", "line 2: there is no limit"),
            ("[limits]\npeak_rss_p95 = \"1MB\"", "there is no limit"),
            ("[limits]\nwall_p+5 = \"1s\"", "line 2:"),
            ("[limits]\n\nwall = \"3 minutes\"", "line 3: wall: \"3 minutes\" has no unit that is known here"),
            ("[limits]\nwall = \"12MB\"", "there are us, ms, s"),
            ("[limits]\nwall = 300", "wall is a time"),
            ("[limits]\nwall = \"-3ms\"", "no number with a unit"),
            ("[limits]\npeak_rss = \"3ms\"", "there are B, KB"),
            ("[limits]\npeak_rss = 3", "peak_rss is a size"),
            ("[limits]\nminor_faults = \"3\"", "minor_faults is a count"),
            ("[limits]\nminor_faults = -1", "minor_faults is a count"),
            ("[limits]\nprocesses = 1.5", "processes is a count"),
            ("[limits]", "nothing to check"),
            ("", "nothing to check"),
            ("[limit]\nwall = \"1s\"", "line 1: unknown field `limit`, expected `launch` or `limits`"),
            ("[launch]\ncolds = 1\n[limits]\nwall = \"1s\"", "line 2: unknown field `colds`, expected one of `cold`"),
            ("[launch]\ncold = \"ice\"\n", "line 2: unknown variant `ice`, expected one of `lab`, `evict`, `drop`"),
            ("[launch]\nruns = 0\n", "line 2: runs must be between 1 and"),
            ("[launch]\nruns = 9\nmax_runs = 8\n", "line 3: max_runs is less than runs"),
            ("[launch]\nready = \"never\"\n[limits]\nwall = \"1s\"", "line 2: ready:"),
            ("[limits]\nwall = \"1s\"\nwall = \"2s\"", "line 3: duplicate key"),
            ("[limits\n", "line 1:"),
        ];
        for (text, words) in cases {
            let said = refused(text);
            assert!(said.contains(words), "{text:?}: {said}");
            assert!(!said.contains('\n'), "{said}");
        }
    }
}
