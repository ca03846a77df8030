//! The arms of a benchmark, from the command line: the command after `--` first, then `--vs`, then `--arm`.

pub use slowpath_verify::benchmark::LaunchArm;

use crate::arguments::launch::{BenchmarkArguments, LadderArguments, ScenarioArguments, SelftestArguments};
use crate::arguments::target::InvocationArguments;
use crate::command_target;
use crate::failure::Failure;
use slowpath_verify::benchmark::arms::named;
use slowpath_verify::scenario::browsers;
use std::ffi::OsString;

/// The arms, after warnings of what the user should know of the first.
pub fn with_warnings(arms: Vec<LaunchArm>) -> Vec<LaunchArm> {
    arms.iter().take(1).for_each(|arm| command_target::warn(&arm.target));
    arms
}

/// All arms of the command line; the first is what the others are compared with.
pub fn of(arguments: &BenchmarkArguments) -> Result<Vec<LaunchArm>, Failure> {
    let mut commands: Vec<(Option<String>, Vec<OsString>)> = Vec::new();
    if !arguments.target.is_empty() {
        commands.push((None, arguments.target.clone()));
    }
    commands.extend(arguments.vs.iter().map(|words| (None, words.0.clone())));
    commands.extend(arguments.arm.iter().map(|(name, words)| (Some(name.clone()), words.0.clone())));
    named(commands, &(&arguments.options.invocation).into())
}

/// The base, and the base with each addition.
pub fn of_ladder(arguments: &LadderArguments) -> Result<Vec<LaunchArm>, Failure> {
    let base = || arguments.base.0.iter().cloned();
    let mut commands = vec![(Some("base".to_owned()), base().collect())];
    let added = arguments.add.iter();
    commands.extend(added.map(|(name, words)| (Some(name.clone()), base().chain(words.0.iter().cloned()).collect())));
    named(commands, &(&arguments.options.invocation).into())
}

/// The browsers of a scenario.
pub fn of_scenario(arguments: &ScenarioArguments) -> Result<Vec<LaunchArm>, Failure> {
    let plain = std::iter::once(&arguments.browser).chain(&arguments.vs).map(|words| (None, words.0.clone()));
    let all = plain.chain(arguments.arm.iter().map(|(name, words)| (Some(name.clone()), words.0.clone())));
    let invocation = InvocationArguments {
        timeout: arguments.timeout,
        ..InvocationArguments::until_exit(&arguments.user, &arguments.env)
    };
    browsers(all.collect(), &(&invocation).into())
}

/// The same command twice.
pub fn of_selftest(arguments: &SelftestArguments) -> Result<Vec<LaunchArm>, Failure> {
    let commands = ["A", "A again"].map(|name| (Some(name.to_owned()), arguments.target.clone()));
    named(commands.into(), &(&arguments.options.invocation).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Arguments;
    use crate::arguments::Command;
    use clap::Parser;

    fn names(words: &[&str]) -> Result<Vec<String>, String> {
        let all = ["slowpath", "launch"].iter().chain(words);
        let Command::Launch(arguments) = Arguments::try_parse_from(all).map_err(|error| error.to_string())?.command
        else {
            unreachable!("the command line names launch");
        };
        of(&arguments).map(|arms| arms.into_iter().map(|arm| arm.name).collect()).map_err(|failure| failure.to_string())
    }

    #[test]
    fn arms_have_the_name_given_or_that_of_their_program() {
        assert_eq!(
            names(&["--vs", "/bin/true -x", "--arm", "new=ls -l", "--", "/usr/bin/true"]).unwrap(),
            ["true", "true 2", "new"]
        );
    }

    #[test]
    fn no_command_and_equal_names_are_refused() {
        assert!(names(&[]).unwrap_err().contains("no command"));
        assert!(names(&["--arm", "a=ls", "--arm", "a=true"]).unwrap_err().contains("two arms"));
        assert!(names(&["--arm", "a="]).unwrap_err().contains("empty"));
    }
}
