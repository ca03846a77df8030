//! Call stacks for speedscope (speedscope.app), one profile for each number that was recorded.
//!
//! Owns the form: speedscope's own file format, whose schema speedscope publishes. A profile holds totals by process and stack and not
//! the order of events. Times are nanoseconds.

use crate::gaps;
use crate::recording_exports::{ExportOptions, Exported, NotExported, RecordingExport, Work, first_weight};
use crate::stack_sums::StackSums;
use crate::stack_weight::Weight;
use serde::Serialize;
use slowpath_analysis::stacks::call_stacks::CallStacks;
use slowpath_recording::Tables;
use slowpath_tables::escape_json;
use std::collections::HashMap;

/// The declaration.
pub const EXPORT: RecordingExport = RecordingExport {
    name: "speedscope",
    title: "Call stacks for speedscope.app, one profile for each number that was recorded",
    what: "Call stacks with totals: CPU samples, time off the CPU, page faults, time in page faults, mapped bytes; each a profile.",
    lacks: "Times, threads and everything that has no call stack.",
    read_by: "speedscope",
    is_text: true,
    takes: None,
    of_diagnosis: None,
    files: None,
    prepare,
};

fn prepare<'a>(tables: &'a Tables, _: &ExportOptions) -> Result<Work<'a>, NotExported> {
    first_weight(tables)?;
    Ok(Box::new(move |out, to| {
        let profile = profile(tables);
        let json = serde_json::to_string(&profile)?;
        // On a terminal a name must not move the cursor; in a file the escapes mean the same.
        out.write_all(escape_json(&json).as_bytes())?;
        out.write_all(b"\n")?;
        let next = format!("open {} in https://www.speedscope.app", to.name);
        Ok(Exported { notes: gaps::notes(&tables.manifest), next })
    }))
}

/// The file, as speedscope's schema has it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct File {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: String,
    name: String,
    active_profile_index: usize,
    shared: Shared,
    profiles: Vec<Profile>,
}

#[derive(Debug, Serialize)]
struct Shared {
    frames: Vec<Frame>,
}

#[derive(Debug, PartialEq, Serialize)]
struct Frame {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Profile {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'static str,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    samples: Vec<Vec<u32>>,
    weights: Vec<u64>,
}

/// Name of a profile, and speedscope's unit of the weight, in which [`Weight::rows`] has it.
fn named(weight: Weight) -> (&'static str, &'static str) {
    match weight {
        Weight::Cpu => ("CPU samples", "none"),
        Weight::OffCpu => ("Off-CPU time", "nanoseconds"),
        Weight::Faults => ("Page faults", "none"),
        Weight::FaultTime => ("Time in page faults", "nanoseconds"),
        Weight::Allocations => ("Mapped memory", "bytes"),
    }
}

fn profile(tables: &Tables) -> File {
    let stacks = CallStacks::new(tables);
    let sums = StackSums::new(tables, &stacks);
    let mut frames: Vec<Frame> = Vec::new();
    let mut function_frames: Vec<Vec<u32>> = Vec::with_capacity(stacks.frames().len());
    for frame in stacks.frames() {
        let file = frame.place.name().into_owned();
        // The innermost is first there; here the outermost.
        let numbers = frame.functions.iter().rev().map(|function| {
            let file = function.source_file.map_or_else(|| file.clone(), str::to_owned);
            frames.push(Frame { name: function.name.to_string(), file: Some(file), line: function.source_line });
            frames.len() as u32 - 1
        });
        function_frames.push(numbers.collect());
    }
    let mut process_frames: HashMap<&str, u32> = HashMap::new();
    let mut profiles = Vec::with_capacity(sums.weights.len());
    let mut processes = Vec::with_capacity(sums.names.len());
    for name in &sums.names {
        processes.push(*process_frames.entry(name.as_str()).or_insert_with(|| {
            frames.push(Frame { name: name.clone(), file: None, line: None });
            frames.len() as u32 - 1
        }));
    }
    frames.push(Frame { name: "[no stack]".to_owned(), file: None, line: None });
    let no_stack = frames.len() as u32 - 1;
    for (at, weight) in sums.weights.iter().enumerate() {
        let (mut samples, mut weights, mut end) = (Vec::new(), Vec::new(), 0u64);
        for ((process, path), values) in sums.sums.iter().filter(|(_, values)| values[at] > 0) {
            let mut sample = vec![processes[*process as usize]];
            match path {
                Some(path) => {
                    let numbers = stacks.outermost_first(*path);
                    sample.extend(numbers.iter().flat_map(|frame| &function_frames[*frame as usize]));
                }
                None => sample.push(no_stack),
            }
            samples.push(sample);
            weights.push(values[at]);
            end = end.saturating_add(values[at]);
        }
        let (name, unit) = named(*weight);
        profiles.push(Profile { kind: "sampled", name, unit, start_value: 0, end_value: end, samples, weights });
    }
    File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        exporter: format!("slowpath {}", env!("CARGO_PKG_VERSION")),
        name: tables.manifest.command.join(" "),
        active_profile_index: 0,
        shared: Shared { frames },
        profiles,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STACKS: &str = "== execs\nts pid start filename command_line\n1 7 1 /bin/app app\n\
        == stacks\nid parent frame\n0 - 0\n1 0 1\n\
        == frames\nid kind dev ino offset\n0 file 1 5 16\n1 file 1 5 32\n\
        == files\ndev ino path\n1 5 /bin/app\n\
        == symbols\nframe level function\n0 0 main\n1 0 \"a</script>\\u001b\\u202e\\\"b\"\n1 1 outer\n\
        == cpu_samples\nts pid start stack\n1 7 1 1\n2 7 1 1\n3 7 1 -\n\
        == off_cpu\nts duration pid start reason stack\n1 400 7 1 futex 0\n";

    #[test]
    fn each_number_is_a_profile_whose_weights_add_up() {
        let file = profile(&Tables::from_text(STACKS).unwrap());
        let found: Vec<_> = file.profiles.iter().map(|one| (one.unit, one.end_value, one.weights.clone())).collect();
        assert_eq!(found, [("none", 3, vec![1, 2]), ("nanoseconds", 400, vec![400])]);
        let names = |sample: &Vec<u32>| {
            sample.iter().map(|at| file.shared.frames[*at as usize].name.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(names(&file.profiles[0].samples[0]), ["app", "[no stack]"]);
        assert_eq!(names(&file.profiles[0].samples[1]), ["app", "main", "outer", "a</script>\u{1b}\u{202e}\"b"]);
    }

    #[test]
    fn a_hostile_name_stays_a_string_and_nothing_without_numbers_is_written() {
        let tables = Tables::from_text(STACKS).unwrap();
        let mut out = Vec::new();
        let to = crate::recording_exports::Destination { name: "x".to_owned(), is_terminal: false };
        prepare(&tables, &ExportOptions::default()).unwrap()(&mut out, &to).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(!text.contains('\u{1b}') && !text.contains('\u{202e}'), "{text}");
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(
            value["shared"]["frames"]
                .as_array()
                .unwrap()
                .iter()
                .any(|frame| frame["name"] == "a</script>\u{1b}\u{202e}\"b")
        );
        assert!(prepare(&Tables::default(), &ExportOptions::default()).is_err());
    }
}
