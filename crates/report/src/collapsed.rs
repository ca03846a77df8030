//! Call stacks in the folded form of Brendan Gregg's flame graph scripts: `process;outermost;...;innermost weight`, a
//! line for each way to an innermost function.
//!
//! Owns how names stay in their place. Leaves what rows weigh to [`crate::stack_weight`], and drawing to
//! `flamegraph.pl`, `inferno-flamegraph`, speedscope and others that read the form. A stack that is damaged is
//! `[unknown]`, a row without one `[no stack]`.

use crate::gaps;
use crate::recording_exports::{ExportOptions, Exported, NotExported, OwnOption, RecordingExport, Work};
use crate::stack_weight::Weight;
use slowpath_analysis::processes::Processes;
use slowpath_analysis::stacks::call_stacks::{CallStacks, StackPath, UNKNOWN};
use slowpath_recording::Tables;
use slowpath_tables::{ProcessKey, is_dangerous};
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, Write};

/// The declaration.
pub const EXPORT: RecordingExport = RecordingExport {
    name: "collapsed",
    title: "Call stacks with a number each, for flamegraph.pl, inferno and speedscope",
    what: "Call stacks with one number each, which `--weight` chooses: the first that was recorded without it.",
    lacks: "Times, threads and everything that has no call stack.",
    read_by: "flamegraph.pl, inferno-flamegraph, speedscope",
    is_text: true,
    takes: Some(OwnOption::Weight),
    of_diagnosis: None,
    files: None,
    prepare,
};

fn prepare<'a>(tables: &'a Tables, options: &ExportOptions) -> Result<Work<'a>, NotExported> {
    let weight = options.recorded_weight(tables)?;
    Ok(Box::new(move |mut out, to| {
        let written = write(tables, weight, &mut out)?;
        let next = format!(
            "{}: {} stacks with {}; flamegraph.pl, inferno-flamegraph and speedscope read it",
            to.name,
            written.lines,
            weight.unit()
        );
        Ok(Exported { notes: written.notes, next })
    }))
}

/// What was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// Lines.
    pub lines: u64,
    /// What a reader must know, one sentence each.
    pub notes: Vec<String>,
}

/// Writes the stacks of a recording with their weights.
///
/// # Errors
/// Those of `out`.
pub fn write(tables: &Tables, weight: Weight, out: &mut impl Write) -> io::Result<Written> {
    let stacks = CallStacks::new(tables);
    let tree = NameTree::new(&stacks);
    let processes = Processes::new(&tables.forks, &tables.execs, &tables.exits);
    let mut names = Names::default();
    let mut number_of_process: HashMap<ProcessKey, u32> = HashMap::new();
    let mut sums: HashMap<(u32, u32), u64> = HashMap::new();
    let (mut without, mut damaged) = (0u64, 0u64);
    for (process, stack, amount) in weight.rows(tables) {
        let process = *number_of_process.entry(process).or_insert_with(|| names.number(&processes.name(process)));
        let path = stacks.path(stack);
        without += u64::from(path.is_none());
        damaged += u64::from(path == Some(UNKNOWN));
        let sum = sums.entry((process, tree.place(path))).or_default();
        *sum = sum.saturating_add(amount);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_unstable_by(|((process, place), _), ((other, at), _)| {
        names.0[*process as usize].cmp(&names.0[*other as usize]).then(place.cmp(at))
    });
    let mut written = Written { lines: 0, notes: gaps::notes(&tables.manifest) };
    let mut small = 0u64;
    for ((process, place), sum) in sums {
        let scale = weight.scale();
        let rounded = sum / scale + u64::from(sum % scale >= scale.div_ceil(2) && scale > 1);
        if rounded == 0 {
            small += 1;
            continue;
        }
        out.write_all(names.0[process as usize].as_bytes())?;
        tree.write(place, out)?;
        writeln!(out, " {rounded}")?;
        written.lines += 1;
    }
    let counts = [
        (without, "rows have no call stack: [no stack]."),
        (damaged, "rows have a damaged call stack: [unknown]."),
        (small, "stacks of less than half a microsecond are left out."),
    ];
    written.notes.extend(counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")));
    Ok(written)
}

/// Text by number, escaped.
#[derive(Default)]
struct Names(Vec<String>, HashMap<String, u32>);

impl Names {
    fn number(&mut self, name: &str) -> u32 {
        let name = escape(name);
        if let Some(number) = self.1.get(name.as_ref()) {
            return *number;
        }
        let number = self.0.len() as u32;
        self.0.push(name.clone().into_owned());
        self.1.insert(name.into_owned(), number);
        number
    }
}

/// Stacks by the names of their functions only: two places in one function are one.
struct NameTree {
    names: Names,
    /// Caller and name of each place in the tree; the caller's number is smaller.
    places: Vec<(Option<u32>, u32)>,
    place_of_path: Vec<u32>,
}

/// Place of rows without a stack.
const NO_STACK: u32 = 0;

impl NameTree {
    fn new(stacks: &CallStacks) -> Self {
        let mut names = Names::default();
        let mut places = vec![(None, names.number("[no stack]"))];
        let mut known: HashMap<(Option<u32>, u32), u32> = HashMap::new();
        let names_of_frame: Vec<Vec<u32>> = stacks
            .frames()
            .iter()
            .map(|frame| frame.functions.iter().rev().map(|function| names.number(&function.name)).collect())
            .collect();
        let mut place_of_path: Vec<u32> = Vec::with_capacity(stacks.len());
        for path in 0..stacks.len() as StackPath {
            let mut caller = stacks.caller(path).map(|caller| place_of_path[caller as usize]);
            for name in &names_of_frame[stacks.frame_number(path) as usize] {
                let place = *known.entry((caller, *name)).or_insert_with(|| {
                    places.push((caller, *name));
                    places.len() as u32 - 1
                });
                caller = Some(place);
            }
            place_of_path.push(caller.unwrap_or(NO_STACK));
        }
        Self { names, places, place_of_path }
    }

    fn place(&self, path: Option<StackPath>) -> u32 {
        path.map_or(NO_STACK, |path| self.place_of_path[path as usize])
    }

    /// Writes the names up to `place`, each after a semicolon.
    fn write(&self, place: u32, out: &mut impl Write) -> io::Result<()> {
        let outwards = std::iter::successors(Some(place), |place| self.places[*place as usize].0);
        let mut names: Vec<u32> = outwards.map(|place| self.places[place as usize].1).collect();
        names.reverse();
        for name in names {
            out.write_all(b";")?;
            out.write_all(self.names.0[name as usize].as_bytes())?;
        }
        Ok(())
    }
}

/// A name that ends neither its frame nor its line: semicolons, backslashes and what a terminal obeys become `\u{3b}` and so
/// on, as does a blank at the end, before which the weight would begin.
pub(crate) fn escape(name: &str) -> Cow<'_, str> {
    let must = |c: char| c == ';' || c == '\\' || is_dangerous(c);
    if !name.contains(must) && !name.ends_with(' ') && !name.is_empty() {
        return Cow::Borrowed(name);
    }
    let mut escaped = String::with_capacity(name.len() + 8);
    let last = name.len().saturating_sub(1);
    for (at, c) in name.char_indices() {
        if must(c) || (c == ' ' && at == last) { escaped.extend(c.escape_unicode()) } else { escaped.push(c) }
    }
    if escaped.is_empty() {
        escaped.push_str("[unnamed]");
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn folded(tables: &Tables, weight: Weight) -> (String, Written) {
        let mut out = Vec::new();
        let written = write(tables, weight, &mut out).unwrap();
        (String::from_utf8(out).unwrap(), written)
    }

    const STACKS: &str = "== execs\nts pid start filename command_line\n1 7 1 /bin/app app\n\
        == stacks\nid parent frame\n0 - 0\n1 0 1\n2 0 2\n3 77 0\n\
        == frames\nid kind dev ino offset\n0 file 1 5 16\n1 file 1 5 32\n2 file 1 5 48\n\
        == symbols\nframe level function\n0 0 main\n1 0 \"fold(a; b)\"\n2 0 \"fold(a; b)\"\n";

    #[test]
    fn samples_of_one_function_are_one_line_whatever_the_place_in_it() {
        let samples = "== cpu_samples\nts pid start stack\n1 7 1 1\n2 7 1 2\n3 7 1 0\n4 9 1 0\n5 7 1 -\n6 7 1 3\n";
        let mut tables = Tables::from_text(&format!("{STACKS}{samples}")).unwrap();
        tables.manifest.losses.add("ring_buffer", 4);
        let (text, written) = folded(&tables, Weight::Cpu);
        assert_eq!(text, "app;[no stack] 1\napp;[unknown] 1\napp;main 1\napp;main;fold(a\\u{3b} b) 2\npid 9;main 1\n");
        assert_eq!(written.lines, 5);
        let notes = [
            "4 events were lost: ring_buffer.",
            "1 rows have no call stack: [no stack].",
            "1 rows have a damaged call stack: [unknown].",
        ];
        assert_eq!(written.notes, notes);
    }

    #[test]
    fn times_are_added_in_ns_and_written_in_us() {
        let text = format!(
            "{STACKS}== off_cpu\nts duration pid start reason stack\n1 400 7 1 futex 0\n2 400 7 1 futex 0\n3 400 7 1 futex 1\n\
             == faults\nts duration pid start kind stack\n1 1500 7 1 major 1\n2 - 7 1 minor 1\n"
        );
        let tables = Tables::from_text(&text).unwrap();
        let (text, written) = folded(&tables, Weight::OffCpu);
        assert_eq!(text, "app;main 1\n");
        assert_eq!(written.notes, ["1 stacks of less than half a microsecond are left out."]);
        assert_eq!(folded(&tables, Weight::FaultTime).0, "app;main;fold(a\\u{3b} b) 2\n");
        assert_eq!(folded(&tables, Weight::Faults).0, "app;main;fold(a\\u{3b} b) 2\n");
        assert_eq!(Weight::first_of(&tables), Some(Weight::OffCpu));
        assert!(!Weight::Cpu.has_rows(&tables) && !Weight::Allocations.has_rows(&tables));
    }

    #[test]
    fn allocations_are_what_calls_that_succeeded_added() {
        let text = format!(
            "{STACKS}== memory_calls\nts pid start call length old_length shrinks result stack\n\
             1 7 1 mmap 4096 - false 0 0\n2 7 1 mmap 4096 - false -12 0\n3 7 1 munmap 4096 - false 0 0\n\
             4 7 1 mremap 8192 4096 false 0 0\n5 7 1 mremap 4096 8192 false 0 0\n6 7 1 brk 100 - false 0 0\n\
             7 7 1 brk 100 - true 0 0\n8 7 1 madvise 50 - false 0 0\n"
        );
        let tables = Tables::from_text(&text).unwrap();
        assert_eq!(folded(&tables, Weight::Allocations).0, "app;main 8292\n");
    }

    #[test]
    fn inlined_functions_are_frames_of_their_own() {
        let mut tables = Tables::from_text(STACKS).unwrap();
        tables.symbols.extend(Tables::from_text("== symbols\nframe level function\n0 1 start\n").unwrap().symbols);
        tables.cpu_samples = Tables::from_text("== cpu_samples\nts pid start stack\n1 7 1 0\n").unwrap().cpu_samples;
        assert_eq!(folded(&tables, Weight::Cpu).0, "app;start;main 1\n");
    }

    proptest! {
        #[test]
        fn a_name_never_ends_its_frame_or_line(name in any::<String>()) {
            let escaped = escape(&name);
            prop_assert!(!escaped.contains(|c: char| c == ';' || c.is_control()));
            prop_assert!(!escaped.is_empty() && !escaped.ends_with(' '));
        }

        #[test]
        fn weights_add_up_to_the_rows(stacks in proptest::collection::vec(proptest::option::of(0u32..5), 0..40)) {
            let mut tables = Tables::from_text(STACKS).unwrap();
            let sample = Tables::from_text("== cpu_samples\nts pid start\n1 7 1\n").unwrap().cpu_samples.remove(0);
            tables.cpu_samples =
                stacks.iter().map(|stack| slowpath_tables::CpuSample { stack: *stack, ..sample.clone() }).collect();
            let (text, _) = folded(&tables, Weight::Cpu);
            let sum: usize = text.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<usize>().unwrap()).sum();
            prop_assert_eq!(sum, stacks.len());
        }
    }
}
