//! `slowpath-preload PLAN -- CMD...`: what `slowpath preload run` does, in a program of its own that is small.
//!
//! Where neither is in memory, the program that replays a plan is read before the command, so its size is part of the start's time.
//! Leaves everything to [`slowpath_fix::preload_plan::beside`], and making and checking plans to `slowpath preload`.

use slowpath_fix::preload_plan::beside::{line, run_beside};
use slowpath_fix::preload_plan::replay::ReplayLimits;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
Start CMD while a prefetcher reads the plan's files ahead. Needs no privilege

Usage: slowpath-preload [--report FILE] [--network] PLAN -- CMD...

The same as `slowpath preload run`, in a small program: what is read before a cold CMD counts.

  --report FILE  write what the prefetcher did there, as JSON
  --network      read from network file systems too
  --help         print this
  --version      print the version
";

/// Exit codes of `slowpath`.
const USAGE: u8 = 2;
const TARGET: u8 = 4;

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Help,
    Version,
    Run { plan: PathBuf, report: Option<PathBuf>, network: bool, command: Vec<OsString> },
}

/// The words behind the program's name.
fn asked(words: impl IntoIterator<Item = OsString>) -> Option<Asked> {
    let (mut plan, mut report, mut network) = (None, None, false);
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("--") => {
                let command: Vec<OsString> = words.collect();
                return (!command.is_empty()).then_some(Asked::Run { plan: plan?, report, network, command });
            }
            Some("--help" | "-h") => return Some(Asked::Help),
            Some("--version" | "-V") => return Some(Asked::Version),
            Some("--report") => report = Some(words.next()?.into()),
            Some("--network") => network = true,
            Some(given) if given.starts_with("--report=") => {
                report = given.split_once('=').map(|(_, file)| file.into())
            }
            Some(option) if option.starts_with('-') => return None,
            _ if plan.is_none() => plan = Some(PathBuf::from(word)),
            _ => return None,
        }
    }
    None
}

fn main() -> ExitCode {
    match asked(std::env::args_os().skip(1)) {
        Some(Asked::Help) => print!("{HELP}"),
        Some(Asked::Version) => println!("slowpath-preload {}", env!("CARGO_PKG_VERSION")),
        Some(Asked::Run { plan, report, network, command }) => {
            let limits = ReplayLimits { network, ..ReplayLimits::default() };
            let Err(error) = run_beside(&plan, &limits, report.as_deref(), &command);
            eprintln!("slowpath-preload: {}", line(&error));
            return ExitCode::from(TARGET);
        }
        None => {
            eprintln!("slowpath-preload: a plan is needed, then `--` and a command");
            eprint!("{HELP}");
            return ExitCode::from(USAGE);
        }
    }
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Option<Asked> {
        asked(words.iter().map(OsString::from))
    }

    #[test]
    fn words_behind_the_dashes_are_the_commands_whatever_they_are() {
        let expected = Asked::Run {
            plan: "a.plan".into(),
            report: Some("r".into()),
            network: true,
            command: ["cat", "--help", "--"].map(OsString::from).into(),
        };
        assert_eq!(
            of(&["--network", "a.plan", "--report", "r", "--", "cat", "--help", "--"]).as_ref(),
            Some(&expected)
        );
        assert_eq!(of(&["--report=r", "a.plan", "--network", "--", "cat", "--help", "--"]), Some(expected));
    }

    #[test]
    fn what_is_incomplete_or_unknown_is_no_run() {
        for words in [
            &["a.plan"][..],
            &["a.plan", "--"],
            &["--", "cat"],
            &["a", "b", "--", "cat"],
            &["--x", "a", "--", "cat"],
            &[],
        ] {
            assert_eq!(of(words), None, "{words:?}");
        }
    }
}
