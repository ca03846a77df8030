//! Arguments of a command that are declared to clap only when that command is the one that was asked for.
//!
//! All commands have several hundred options. Declaring those of one command instead of all saves each start of
//! `slowpath` some 200 page faults, and a benchmark is a start too.

use clap::{ArgMatches, Args, Command, FromArgMatches};
use std::ops::Deref;

/// The arguments of one command.
#[derive(Debug)]
pub struct Later<T>(Box<T>);

#[cfg(test)]
impl<T> Later<T> {
    /// The arguments themselves.
    pub fn into_inner(self) -> T {
        *self.0
    }
}

impl<T> Deref for Later<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: FromArgMatches> FromArgMatches for Later<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        T::from_arg_matches(matches).map(|arguments| Self(Box::new(arguments)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<T: Args> Args for Later<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(augmented::<T>)
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(augmented::<T>)
    }
}

/// The command with its arguments. What it is for stands where the commands are listed, not at the type of its arguments.
fn augmented<T: Args>(command: Command) -> Command {
    let (about, long_about) = (command.get_about().cloned(), command.get_long_about().cloned());
    let mut command = T::augment_args(command).long_about(None);
    if let Some(about) = about {
        command = command.about(about);
    }
    match long_about {
        Some(long_about) => command.long_about(long_about),
        None => command,
    }
}
