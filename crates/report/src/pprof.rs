//! Call stacks as a profile for pprof (`go tool pprof`): one value for each number that was recorded.
//!
//! Owns which rows become which values. The messages are those of pprof's `profile.proto`, where field numbers never change. Functions
//! have their final names: pprof looks nothing up. Each stack is labelled with its process.

use crate::gaps;
use crate::recording_exports::{ExportOptions, Exported, NotExported, RecordingExport, Work, first_weight};
use crate::stack_sums::StackSums;
use crate::stack_weight::Weight;
use prost::Message;
use slowpath_analysis::stacks::call_stacks::{CallStacks, FramePlace};
use slowpath_recording::Tables;
use std::collections::HashMap;

/// The declaration.
pub const EXPORT: RecordingExport = RecordingExport {
    name: "pprof",
    title: "Call stacks for go tool pprof, a value for each number that was recorded",
    what: "Call stacks with totals: CPU samples, time off the CPU, page faults, time in page faults, mapped bytes; the process is a label.",
    lacks: "Times, threads and everything that has no call stack.",
    read_by: "go tool pprof, speedscope, Grafana Pyroscope",
    is_text: false,
    takes: None,
    of_diagnosis: None,
    files: None,
    prepare,
};

fn prepare<'a>(tables: &'a Tables, _: &ExportOptions) -> Result<Work<'a>, NotExported> {
    first_weight(tables)?;
    Ok(Box::new(move |out, to| {
        let notes = gaps::notes(&tables.manifest);
        out.write_all(&profile(tables, &notes).encode_to_vec())?;
        Ok(Exported { notes, next: format!("go tool pprof {}", to.name) })
    }))
}

/// `Profile`.
#[derive(Clone, PartialEq, Message)]
struct Profile {
    #[prost(message, repeated, tag = "1")]
    sample_type: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    sample: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    mapping: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    function: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    time_nanos: i64,
    #[prost(int64, tag = "10")]
    duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    period: i64,
    #[prost(int64, repeated, tag = "13")]
    comment: Vec<i64>,
}

/// `ValueType`: places in the string table.
#[derive(Clone, PartialEq, Message)]
struct ValueType {
    #[prost(int64, tag = "1")]
    r#type: i64,
    #[prost(int64, tag = "2")]
    unit: i64,
}

/// `Sample`; the innermost location is first.
#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(uint64, repeated, tag = "1")]
    location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    label: Vec<Label>,
}

/// `Label`.
#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(int64, tag = "1")]
    key: i64,
    #[prost(int64, tag = "2")]
    str: i64,
}

/// `Mapping`: a file.
#[derive(Clone, PartialEq, Message)]
struct Mapping {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "5")]
    filename: i64,
    #[prost(int64, tag = "6")]
    build_id: i64,
    #[prost(bool, tag = "7")]
    has_functions: bool,
}

/// `Location`; the innermost line is first.
#[derive(Clone, PartialEq, Message)]
struct Location {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(uint64, tag = "2")]
    mapping_id: u64,
    #[prost(message, repeated, tag = "4")]
    line: Vec<Line>,
}

/// `Line`.
#[derive(Clone, PartialEq, Message)]
struct Line {
    #[prost(uint64, tag = "1")]
    function_id: u64,
    #[prost(int64, tag = "2")]
    line: i64,
}

/// `Function`.
#[derive(Clone, PartialEq, Message)]
struct Function {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(int64, tag = "2")]
    name: i64,
    #[prost(int64, tag = "3")]
    system_name: i64,
    #[prost(int64, tag = "4")]
    filename: i64,
}

/// Texts by number; the first is empty, as pprof demands.
struct Texts {
    numbers: HashMap<String, i64>,
    all: Vec<String>,
}

impl Texts {
    fn new() -> Self {
        Self { numbers: HashMap::from([(String::new(), 0)]), all: vec![String::new()] }
    }

    fn number(&mut self, text: &str) -> i64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.all.len() as i64;
        self.all.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

/// Type and unit of a weight, by pprof's own words where it has one.
fn value_type(weight: Weight) -> (&'static str, &'static str) {
    match weight {
        Weight::Cpu => ("samples", "count"),
        Weight::OffCpu => ("off_cpu", "nanoseconds"),
        Weight::Faults => ("page_faults", "count"),
        Weight::FaultTime => ("page_fault_time", "nanoseconds"),
        Weight::Allocations => ("mapped_space", "bytes"),
    }
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn profile(tables: &Tables, notes: &[String]) -> Profile {
    let stacks = CallStacks::new(tables);
    let sums = StackSums::new(tables, &stacks);
    let mut texts = Texts::new();
    let mut mappings: HashMap<i64, u64> = HashMap::new();
    let mut functions: HashMap<(i64, i64), u64> = HashMap::new();
    let mut found = Profile::default();
    for (number, frame) in (1u64..).zip(stacks.frames()) {
        let file = texts.number(&frame.place.name());
        let mapping_id = *mappings.entry(file).or_insert_with(|| {
            let id = found.mapping.len() as u64 + 1;
            let build_id = match frame.place {
                FramePlace::File { file: Some(file), .. } => file.build_id.as_deref().unwrap_or_default(),
                _ => "",
            };
            let build_id = texts.number(build_id);
            found.mapping.push(Mapping { id, filename: file, build_id, has_functions: true });
            id
        });
        let line = frame.functions.iter().map(|function| {
            let name = texts.number(&function.name);
            let filename = texts.number(function.source_file.unwrap_or_default());
            let function_id = *functions.entry((name, filename)).or_insert_with(|| {
                let id = found.function.len() as u64 + 1;
                found.function.push(Function { id, name, system_name: name, filename });
                id
            });
            Line { function_id, line: function.source_line.map_or(0, i64::from) }
        });
        let line = line.collect();
        found.location.push(Location { id: number, mapping_id, line });
    }
    let key = texts.number("process");
    let names: Vec<i64> = sums.names.iter().map(|name| texts.number(name)).collect();
    for ((process, path), values) in &sums.sums {
        let mut location_id: Vec<u64> = path.map_or_else(Vec::new, |path| {
            stacks.outermost_first(path).into_iter().map(|frame| u64::from(frame) + 1).collect()
        });
        location_id.reverse();
        let label = vec![Label { key, str: names[*process as usize] }];
        found.sample.push(Sample { location_id, value: values.iter().copied().map(signed).collect(), label });
    }
    for weight in &sums.weights {
        let (kind, unit) = value_type(*weight);
        found.sample_type.push(ValueType { r#type: texts.number(kind), unit: texts.number(unit) });
    }
    if let Some(rate @ 1..) = tables.manifest.cpu_sample_hz() {
        found.period_type = Some(ValueType { r#type: texts.number("cpu"), unit: texts.number("nanoseconds") });
        found.period = signed(1_000_000_000 / rate);
    }
    let manifest = &tables.manifest;
    let began =
        i128::from(manifest.clock.realtime) + i128::from(manifest.started.0) - i128::from(manifest.clock.monotonic.0);
    found.time_nanos = i64::try_from(began).unwrap_or(0).max(0);
    found.duration_nanos = manifest.ended.map_or(0, |ended| signed((ended - manifest.started).0));
    found.comment = notes.iter().map(|note| texts.number(note)).collect();
    found.string_table = texts.all;
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_in_a_profile_leads_to_what_it_names_and_values_are_the_rows() {
        let text = "== manifest\n{\"started\": 5, \"ended\": 105, \"counters\": {\"cpu_sample_hz\": 1000}}\n\
            == execs\nts pid start filename command_line\n1 7 1 /bin/app app\n\
            == stacks\nid parent frame\n0 - 0\n1 0 1\n\
            == frames\nid kind dev ino offset\n0 file 1 5 16\n1 file 1 5 32\n\
            == files\ndev ino path build_id\n1 5 /bin/app 00ff\n\
            == symbols\nframe level function\n0 0 main\n1 0 inner\n1 1 outer\n\
            == cpu_samples\nts pid start stack\n1 7 1 1\n2 7 1 1\n3 7 1 -\n\
            == memory_calls\nts pid start call length shrinks result stack\n1 7 1 mmap 4096 false 0 0\n";
        let tables = Tables::from_text(text).unwrap();
        let bytes = profile(&tables, &["a note".to_owned()]).encode_to_vec();
        let read = Profile::decode(bytes.as_slice()).unwrap();
        let word = |at: i64| read.string_table[at as usize].as_str();
        let types: Vec<_> = read.sample_type.iter().map(|one| (word(one.r#type), word(one.unit))).collect();
        assert_eq!(types, [("samples", "count"), ("mapped_space", "bytes")]);
        let names = |sample: &Sample| {
            let lines = sample.location_id.iter().flat_map(|id| &read.location[*id as usize - 1].line);
            lines.map(|line| word(read.function[line.function_id as usize - 1].name)).collect::<Vec<_>>()
        };
        let found: Vec<_> = read.sample.iter().map(|sample| (names(sample), sample.value.clone())).collect();
        assert_eq!(found[0], (vec![], vec![1, 0]));
        assert!(found.contains(&(vec!["inner", "outer", "main"], vec![2, 0])), "{found:?}");
        assert!(found.contains(&(vec!["main"], vec![0, 4096])), "{found:?}");
        assert_eq!((read.string_table[0].as_str(), read.period, read.duration_nanos), ("", 1_000_000, 100));
        assert_eq!(read.comment.iter().map(|at| word(*at)).collect::<Vec<_>>(), ["a note"]);
        assert!(read.mapping.iter().any(|mapping| word(mapping.build_id) == "00ff"));
    }
}
