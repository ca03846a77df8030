//! Which filter a word of the user means, and reading it.

use crate::calls;
use slowpath_seccomp::{FilterError, MOST_BYTES, Parsed, ProcessError, Program, built_in, of_process, parse};
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_session::foreign_file;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Filters of `arguments:N` at most: what the kernel takes of them.
const MOST_STACKED: usize = 64;

/// Which filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// One that allows the calls that are measured, by number.
    AllowList,
    /// So many that compare arguments.
    Arguments(usize),
    /// Those of a running process.
    Process(u32),
    /// A file, and which of its filters.
    File(PathBuf, Option<String>),
}

/// A filter that is to be installed.
pub struct Filter {
    /// Its programs.
    pub programs: Vec<Program>,
    /// What it is, in words.
    pub form: String,
    /// What the user must know of it.
    pub notes: Vec<String>,
}

impl Choice {
    /// What a word names.
    ///
    /// # Errors
    /// It names nothing.
    pub fn of(word: &OsStr) -> Result<Self, Failure> {
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

    /// The filters of the process, where it is one; with the privilege of the caller.
    ///
    /// # Errors
    /// There is no such process, or its filters cannot be copied.
    pub fn copied(&self) -> Result<Vec<Program>, Failure> {
        match self {
            Self::Process(pid) => of_process(*pid).map_err(|error| process_failure(&error)),
            _ => Ok(Vec::new()),
        }
    }

    /// The filter; `copied` is of a process. Files are foreign: to be called as the user whose they are.
    ///
    /// # Errors
    /// The file holds no filter.
    pub fn filter(self, copied: Vec<Program>) -> Result<Filter, Failure> {
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
            (Kind::Usage, "`slowpath context show PID` shows which of its threads have filters")
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
