//! `slowpath context syscall-cost`: what system calls cost here, and what a filter costs.
//!
//! The file of a filter is foreign data: a child with the user's identity reads and compiles it, never root. Another one measures, whose
//! own system calls no filter of a sandbox may make slower. Only the filters of a running process are copied with the caller's privilege,
//! as they are.

use crate::arguments::SyscallCostArguments;
use crate::commands::{invoker, print_json};
use crate::failure::{Failure, Kind, failed};
use crate::foreign_file;
use crate::interrupt;
use crate::unprivileged::{Work, Worker, as_user};
use slowpath_process::Duty;
use slowpath_report::terminal::{self, Style};
use slowpath_seccomp::{FilterError, MOST_BYTES, Parsed, ProcessError, Program, built_in, of_process, parse};
use slowpath_syscall_cost::{Measured, Plan, ShownFilter, SyscallCost, calls, measure};
use std::ffi::OsStr;
use std::io::IsTerminal;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

/// Filters of `arguments:N` at most: what the kernel takes of them.
const MOST_STACKED: usize = 64;
/// How often it is looked whether the child is done.
const LOOK: Duration = Duration::from_millis(20);

/// Runs the command.
pub fn run(arguments: &SyscallCostArguments) -> Result<(), Failure> {
    let choice = Choice::of(&arguments.filter)?;
    let copied = match &choice {
        Choice::Process(pid) => of_process(*pid).map_err(|error| process_failure(&error))?,
        _ => Vec::new(),
    };
    let asked = arguments.filter.to_string_lossy().into_owned();
    let (max_time, seed) = (arguments.max_time, arguments.seed);
    let read = as_user(&invoker()?, &Work::reading("reading the filter"), move || {
        let Filter { programs, form, notes } = choice.filter(copied)?;
        Ok((programs.iter().map(Program::bytes).collect::<Vec<_>>(), form, notes))
    });
    let (programs, form, notes) = read?;
    let programs: Result<Vec<Program>, FilterError> = programs.iter().map(|one| Program::from_bytes(one)).collect();
    let plan = Plan { programs: programs.map_err(failed(Kind::Machine))?, max_time, seed };
    let instructions = plan.programs.iter().map(|one| one.instructions().len()).sum();
    // A process of its own also where the identity is the same: it stays on one processor, and its threads do not end.
    let what = Work::new("measuring system calls", Duty::Measure);
    let mut worker = Worker::start(&invoker()?, &what, move || {
        measure(&plan, &interrupt::requested).map_err(failed(Kind::Machine))
    })?;
    let measured: Measured = loop {
        match worker.poll() {
            Some(told) => break told?,
            None if interrupt::requested() => return Err(Failure::new(Kind::Interrupted, "interrupted")),
            None => std::thread::sleep(LOOK),
        }
    };
    let filter = ShownFilter { asked, form, programs: measured.programs, instructions, notes };
    let cost = SyscallCost::new(&measured, filter);
    if arguments.json {
        print_json(&cost);
    } else {
        print!("{}", terminal::syscall_cost(&cost, &Style::detect(std::io::stdout().is_terminal())));
    }
    Ok(())
}

/// Which filter.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Choice {
    AllowList,
    Arguments(usize),
    Process(u32),
    /// A file, and which of its filters.
    File(PathBuf, Option<String>),
}

/// A filter that is to be installed.
struct Filter {
    programs: Vec<Program>,
    form: String,
    notes: Vec<String>,
}

impl Choice {
    fn of(word: &OsStr) -> Result<Self, Failure> {
        let text = word.to_string_lossy();
        let wrong = |hint: String| Failure::new(Kind::Usage, format!("--filter {text} names no filter")).hint(hint);
        if text == "allow-list" {
            return Ok(Self::AllowList);
        }
        if let Some(number) = text.strip_prefix("arguments:") {
            let number = number.parse().ok().filter(|number| (1..=MOST_STACKED).contains(number));
            return number
                .map(Self::Arguments)
                .ok_or_else(|| wrong(format!("arguments:N, with N from 1 to {MOST_STACKED}")));
        }
        if let Some(pid) = text.strip_prefix("pid:") {
            return pid
                .parse()
                .map(Self::Process)
                .map_err(|_| wrong("pid:PID, with the number of a process".to_owned()));
        }
        Ok(Self::File(PathBuf::from(word), None))
    }

    /// The filter; in the child.
    fn filter(self, copied: Vec<Program>) -> Result<Filter, Failure> {
        let built = |made: Result<Program, FilterError>| made.map_err(failed(Kind::Machine));
        let notes = Vec::new();
        Ok(match self {
            Self::AllowList => {
                let form = "allows the calls that are measured by their numbers".to_owned();
                Filter { programs: vec![built(built_in::allow_list(&calls()))?], form, notes }
            }
            Self::Arguments(number) => {
                let form = "each compares all six arguments".to_owned();
                let program = built(built_in::checks_arguments(&calls()))?;
                Filter { programs: vec![program; number], form, notes }
            }
            Self::Process(pid) => {
                let (programs, form) = (copied, format!("of the first thread of process {pid}"));
                Filter { programs, form, notes }
            }
            Self::File(path, name) => of_file(path, name)?,
        })
    }
}

fn of_file(path: PathBuf, name: Option<String>) -> Result<Filter, Failure> {
    let (path, name) = match name {
        None if !path.exists() => chosen(path),
        name => (path, name),
    };
    let shown = path.display();
    let wrong = |why: String| {
        Failure::new(Kind::Usage, format!("{shown} holds no filter: {why}")).hint(
            "a profile of a container runtime, JSON of seccompiler, or raw `struct sock_filter`; allow-list, arguments:N and pid:PID need no file",
        )
    };
    let bytes = foreign_file::read(&path, MOST_BYTES).map_err(|error| wrong(error.to_string()))?;
    let Parsed { program, form, notes } = parse(&bytes, name.as_deref()).map_err(|error| wrong(error.to_string()))?;
    Ok(Filter { programs: vec![program], form: form.to_owned(), notes })
}

/// A file of several filters, and the name of one behind a `#`.
fn chosen(word: PathBuf) -> (PathBuf, Option<String>) {
    let bytes = word.as_os_str().as_bytes();
    let Some(place) = bytes.iter().rposition(|byte| *byte == b'#') else { return (word, None) };
    let name = String::from_utf8_lossy(&bytes[place + 1..]).into_owned();
    (PathBuf::from(OsStr::from_bytes(&bytes[..place])), Some(name))
}

fn process_failure(error: &ProcessError) -> Failure {
    let (kind, hint) = match error {
        ProcessError::NoProcess(_) => (Kind::Usage, "`ps` lists the processes"),
        ProcessError::NoFilter(_) => {
            (Kind::Usage, "`slowpath context show PID` tells of its threads which have filters")
        }
        ProcessError::Privilege(_) => {
            (Kind::Machine, "run it with sudo, outside of a container or service that has a filter itself")
        }
        ProcessError::Traced(_) => (
            Kind::Machine,
            "run it with sudo; end a debugger or strace of the process; where it is forbidden altogether, use the profile that the filter was \
             made from: --filter FILE",
        ),
        ProcessError::Busy(..) => (Kind::Machine, "try again: it waits for a device now"),
        ProcessError::NotShown(_) => (
            Kind::Machine,
            "a kernel with CONFIG_CHECKPOINT_RESTORE, or the profile that the filter was made from: --filter FILE",
        ),
        ProcessError::System { .. } | ProcessError::Filter(_) => {
            (Kind::Machine, "use the profile that the filter was made from: --filter FILE")
        }
    };
    Failure::from_error(kind, error).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(word: &str) -> Result<Choice, Failure> {
        Choice::of(OsStr::new(word))
    }

    #[test]
    fn a_filter_is_a_word_with_its_number_or_a_file() {
        assert_eq!(choice("allow-list").unwrap(), Choice::AllowList);
        assert_eq!(choice("arguments:7").unwrap(), Choice::Arguments(7));
        assert_eq!(choice("pid:12").unwrap(), Choice::Process(12));
        assert_eq!(choice("a.json").unwrap(), Choice::File(PathBuf::from("a.json"), None));
        for bad in ["arguments:0", "arguments:65", "arguments:", "pid:x", "pid:-1"] {
            assert_eq!(choice(bad).unwrap_err().kind(), Kind::Usage, "{bad}");
        }
    }

    #[test]
    fn a_name_stands_behind_the_last_number_sign() {
        let (path, name) = chosen(PathBuf::from("/a#b/c.json#vmm"));
        assert_eq!((path, name.as_deref()), (PathBuf::from("/a#b/c.json"), Some("vmm")));
        assert_eq!(chosen(PathBuf::from("c.json")), (PathBuf::from("c.json"), None));
    }
}
