//! The arms of a benchmark, from commands: each with a name of its own.

use crate::{Arm, Role};
use slowpath_session::failure::{Failure, Kind};
use slowpath_session::target::{Invocation, PATIENCE, Target};
use std::collections::BTreeSet;
use std::ffi::OsString;

/// An arm.
pub struct LaunchArm {
    /// Name, unique in the benchmark.
    pub name: String,
    /// What is launched.
    pub target: Target,
}

impl LaunchArm {
    /// As a comparison knows it.
    pub fn described(&self) -> Arm {
        Arm { name: self.name.clone(), title: self.target.words().join(" "), role: Role::Fix, sham: None }
    }
}

/// A command alone.
///
/// # Errors
/// As [`Target::of`].
pub fn one(invocation: &Invocation, command: Vec<OsString>) -> Result<LaunchArm, Failure> {
    let name = program(&command);
    Ok(LaunchArm { name, target: Target::of(invocation.clone(), command, Some(PATIENCE))? })
}

/// Arms of one invocation, each with its name or else that of its program.
///
/// # Errors
/// There is none, two have one name, or as [`Target::of`].
pub fn named(
    commands: Vec<(Option<String>, Vec<OsString>)>,
    invocation: &Invocation,
) -> Result<Vec<LaunchArm>, Failure> {
    if commands.is_empty() {
        return Err(Failure::new(Kind::Usage, "there is no command to launch")
            .hint("put it after `--`, or name several with --arm NAME='CMD'"));
    }
    let mut taken = BTreeSet::new();
    let mut arms = Vec::new();
    for (given, command) in commands {
        let name = match given {
            Some(name) => {
                if !taken.insert(name.clone()) {
                    return Err(Failure::new(Kind::Usage, format!("there are two arms with the name {name:?}")));
                }
                name
            }
            None => unused(&program(&command), &mut taken),
        };
        let target = Target::of(invocation.clone(), command, Some(PATIENCE))?;
        arms.push(LaunchArm { name, target });
    }
    Ok(arms)
}

/// The last part of the program's path.
fn program(command: &[OsString]) -> String {
    let words = command.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    words.rsplit('/').find(|part| !part.is_empty()).unwrap_or("command").to_owned()
}

/// `name`, with a number behind it where it is taken.
fn unused(name: &str, taken: &mut BTreeSet<String>) -> String {
    let candidates = std::iter::once(name.to_owned()).chain((2..).map(|number| format!("{name} {number}")));
    for candidate in candidates {
        if taken.insert(candidate.clone()) {
            return candidate;
        }
    }
    name.to_owned()
}
