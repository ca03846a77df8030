//! Rows of evidence that findings about memory have in common.

use super::allocating_stack::AllocatingStack;
use super::fault_sums::FaultSums;
use super::materiality::CostShare;
use crate::finding::{Evidence, Row, milliseconds, row};
use crate::fix_inputs::FixInputs;
use crate::memory::memory_fixes::MallocSettings;
use crate::stacks::function_weights::FunctionWeights;
use serde_json::Value;
use slowpath_tables::{Nanos, ProcessKey};
use std::collections::{BTreeMap, BTreeSet};

/// Functions of a stack, and processes, at most.
const MOST_ROWS: usize = 30;
/// Functions that touch, at most.
pub(crate) const MOST_FUNCTIONS: usize = 10;

/// A number with so many digits behind the point.
pub(crate) fn rounded(value: f64, digits: i32) -> Value {
    let scale = 10f64.powi(digits);
    Value::from((value * scale).round() / scale)
}

/// Parts of a cost (ns), the largest first, then their sum.
pub(crate) fn parts(text: &str, parts: &[(&str, f64)], operations: f64) -> Evidence {
    let part = |name: &str, nanos: f64| {
        row([
            ("part", Value::from(name)),
            ("total_ms", rounded(nanos / 1e6, 3)),
            ("mean_per_operation_us", rounded(nanos / operations.max(1.0) / 1e3, 1)),
        ])
    };
    let mut rows: Vec<Row> = parts.iter().map(|(name, nanos)| part(name, *nanos)).collect();
    let total = |row: &Row| row["total_ms"].as_f64().unwrap_or_default();
    rows.sort_by(|a, b| total(b).total_cmp(&total(a)));
    rows.push(part("sum", parts.iter().map(|(_, nanos)| nanos).sum()));
    Evidence { text: text.to_owned(), rows }
}

/// What is known of faults, as columns of the row about operations.
pub(crate) fn add_faults(shown: &mut Row, faults: &FaultSums, operations: f64) {
    shown.extend(row([
        ("faults", Value::from(faults.count)),
        ("faults_per_operation", rounded(faults.count as f64 / operations.max(1.0), 1)),
        ("fault_median_us", rounded(faults.median / 1e3, 3)),
        ("faults_by_kernel", Value::from(faults.by_kernel)),
        ("major_faults", Value::from(faults.major)),
        ("untimed_faults", Value::from(faults.untimed)),
    ]));
    add_off_cpu(shown, "faults_off_cpu_ms", faults.off_cpu);
}

/// What threads did not run and is not in the cost, where there is any.
pub(crate) fn add_off_cpu(shown: &mut Row, column: &str, time: Nanos) {
    if time.0 > 0 {
        shown.insert(column.to_owned(), milliseconds(time));
    }
}

/// The functions of a stack, the innermost first.
pub(crate) fn stack(text: &str, stack: &AllocatingStack) -> Evidence {
    let rows = stack.callers.iter().take(MOST_ROWS).enumerate().map(|(number, caller)| {
        let mut shown = row([
            ("function", Value::from(caller.function.as_str())),
            ("file", Value::from(caller.file.as_str())),
            ("asked", Value::from(Some(number) == stack.asked)),
        ]);
        if let Some((source, line)) = &caller.source {
            shown.insert("source_file".to_owned(), Value::from(source.as_str()));
            shown.insert("source_line".to_owned(), line.map_or(Value::Null, Value::from));
        }
        shown
    });
    Evidence { text: text.to_owned(), rows: rows.collect() }
}

/// Who took the faults; nothing where faults have no stacks.
pub(crate) fn touching(text: &str, touching: Option<&FunctionWeights>) -> Evidence {
    let functions = touching.into_iter().flat_map(|weights| &weights.functions);
    let rows = functions.map(|one| {
        row([
            ("function", one.function.as_deref().map_or(Value::Null, Value::from)),
            ("file", Value::from(one.place.as_str())),
            ("fault_ms", milliseconds(Nanos(one.weight))),
        ])
    });
    Evidence { text: text.to_owned(), rows: rows.collect() }
}

/// Where the program runs in several processes, those with most of the cost of operations.
pub(crate) fn processes(operations: impl Iterator<Item = (ProcessKey, Nanos)>) -> Evidence {
    let mut sums: BTreeMap<_, (u64, Nanos)> = BTreeMap::new();
    for (process, time) in operations {
        let sum = sums.entry(process).or_default();
        *sum = (sum.0 + 1, sum.1 + time);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by_key(|(process, (_, time))| (std::cmp::Reverse(*time), *process));
    let rows = sums.iter().filter(|_| sums.len() > 1).take(MOST_ROWS).map(|(process, (operations, time))| {
        row([
            ("pid", Value::from(process.pid)),
            ("operations", Value::from(*operations)),
            ("total_ms", milliseconds(*time)),
        ])
    });
    Evidence { text: "The processes with most of it.".to_owned(), rows: rows.collect() }
}

/// A fix that applies.
pub(crate) struct Remedy {
    /// Its name ([`crate::memory::memory_fixes`]).
    pub fix: &'static str,
    /// What is to be done.
    pub how: String,
    /// The setting for malloc.
    pub settings: Option<MallocSettings>,
    /// Whether the finding's predicted saving is what this fix saves, for fixes that do not end every cost they are named for.
    pub is_predicted: bool,
}

impl Remedy {
    /// One without settings of malloc.
    pub fn new(fix: &'static str, how: String) -> Self {
        Self { fix, how, settings: None, is_predicted: false }
    }
}

/// What would end it, row by row.
pub(crate) fn remedy_rows(remedies: &[Remedy]) -> Evidence {
    let rows = remedies
        .iter()
        .map(|remedy| row([("fix", Value::from(remedy.fix)), ("how", Value::from(remedy.how.as_str()))]));
    Evidence { text: "What would end it, or make it cheaper.".to_owned(), rows: rows.collect() }
}

/// What the fixes of these need to know.
pub(crate) fn fix_inputs(remedies: &[Remedy]) -> FixInputs {
    let predicted = remedies.iter().filter(|remedy| remedy.is_predicted);
    FixInputs {
        malloc: remedies.iter().filter_map(|remedy| remedy.settings).reduce(MallocSettings::with),
        predicted_for: predicted.map(|remedy| remedy.fix.to_owned()).collect(),
        ways: remedies.iter().map(|remedy| (remedy.fix.to_owned(), remedy.how.clone())).collect(),
        ..FixInputs::default()
    }
}

/// What every finding about memory is about: program, stack, function, share of the time.
pub(crate) fn subject(
    program: &str,
    processes: &BTreeSet<ProcessKey>,
    stack: &AllocatingStack,
    share: &CostShare,
) -> BTreeMap<String, Value> {
    let mut subject = row([
        ("process", Value::from(program)),
        ("stack", Value::from(stack.folded())),
        ("share", rounded(share.share, 4)),
        ("share_of", Value::from(share.of())),
    ]);
    if let Some(caller) = stack.who_asked() {
        subject.insert("function".to_owned(), Value::from(caller.function.as_str()));
        subject.insert("file".to_owned(), Value::from(caller.file.as_str()));
    }
    if let (Some(process), 1) = (processes.first(), processes.len()) {
        subject.insert("pid".to_owned(), Value::from(process.pid));
    }
    subject
}

/// The processes as an option of `perf`.
pub(crate) fn perf_target(processes: &BTreeSet<ProcessKey>) -> String {
    match (processes.first(), processes.len()) {
        (Some(process), 1) => format!("-p {}", process.pid),
        _ => "-p PID".to_owned(),
    }
}

/// Who asked, for a title: ` in copy_frame`; of a function without a name its file and the nearest caller that has one, which shows
/// apart what a library without symbols does for several: ` in _multiarray_umath for PyNumber_Add`. Nothing where it is not known.
pub(crate) fn in_function(stack: &AllocatingStack) -> String {
    match (stack.who_asked(), stack.named_caller()) {
        (None, _) => String::new(),
        (Some(caller), _) if caller.is_named => format!(" in {}", short(&caller.function)),
        (Some(caller), Some(above)) => format!(" in {} for {}", library(&caller.file), short(&above.function)),
        (Some(caller), None) => format!(" in {}", library(&caller.file)),
    }
}

/// What to show a reader who looks for the line.
pub(crate) fn unnamed(stack: &AllocatingStack) -> Option<String> {
    let asked = stack.who_asked().filter(|caller| !caller.is_named)?;
    Some(format!(
        "the symbols of {} do not name the function that asked: with its debug symbols installed, a new recording does",
        asked.file
    ))
}

/// The name of a shared library without what follows it: versions, the interpreter that it is for.
fn library(file: &str) -> String {
    let stem = file.split('.').next().filter(|stem| !stem.is_empty() && file.contains(".so"));
    short(stem.unwrap_or(file))
}

/// A name that can stand in a line: without parameters, which with templates fill screens.
pub fn short(name: &str) -> String {
    const MOST: usize = 48;
    let name = name.replace("(anonymous namespace)::", "");
    let bare = name.split('(').next().filter(|bare| !bare.is_empty() && !bare.ends_with("operator")).unwrap_or(&name);
    match bare.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}...", &bare[..at]),
        None => bare.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::allocating_stack::Caller;

    #[test]
    fn who_has_no_name_is_named_by_the_library_and_by_who_called_it() {
        let caller = |function: &str, file: &str, is_named| Caller {
            function: function.to_owned(),
            is_named,
            file: file.to_owned(),
            source: None,
        };
        let file = "_multiarray_umath.cpython-311-x86_64-linux-gnu.so";
        let mut stack = AllocatingStack {
            callers: vec![
                caller("malloc", "libc.so.6", true),
                caller("x.so+0x1", file, false),
                caller("x.so+0x2", file, false),
                caller("PyNumber_Add", "python3.11", true),
                caller("main", "python3.11", true),
            ],
            asked: Some(1),
            ..AllocatingStack::default()
        };
        assert_eq!(in_function(&stack), " in _multiarray_umath for PyNumber_Add");
        assert!(unnamed(&stack).unwrap().contains(file));
        stack.callers.truncate(3);
        assert_eq!(in_function(&stack), " in _multiarray_umath");
        stack.callers[1] = caller("python3.11+0x1", "python3.11", false);
        assert_eq!(in_function(&stack), " in python3.11");
        stack.callers[1] = caller("copy(int)", "program", true);
        assert_eq!((in_function(&stack).as_str(), unnamed(&stack)), (" in copy", None));
        stack.asked = None;
        assert_eq!((in_function(&stack).as_str(), unnamed(&stack)), ("", None));
    }

    #[test]
    fn names_are_shown_without_their_parameters_and_cut() {
        assert_eq!(short("(anonymous namespace)::copy_frame(unsigned char const*)"), "copy_frame");
        assert_eq!(short("video::Sink::operator()(Frame&)"), "video::Sink::operator()(Frame&)");
        assert_eq!(short("copy"), "copy");
        assert_eq!(short(&"\u{e9}".repeat(60)), format!("{}...", "\u{e9}".repeat(48)));
    }
}
