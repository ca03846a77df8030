//! The browsers of a scenario as arms, with what lets them be driven.

use crate::benchmark::LaunchArm;
use crate::benchmark::arms::named;
use slowpath_session::failure::{Failure, Kind};
use slowpath_session::target::Invocation;
use std::ffi::{OsStr, OsString};

/// What is added to the words of a browser.
pub(super) const ADDED: [&str; 2] = ["--remote-debugging-pipe", "--user-data-dir={tmp}/profile"];

/// Arms from commands, each with a name where it was given one.
///
/// # Errors
/// A command chooses its own profile or its own connection to DevTools, or cannot be driven.
pub fn browsers(
    mut commands: Vec<(Option<String>, Vec<OsString>)>,
    invocation: &Invocation,
) -> Result<Vec<LaunchArm>, Failure> {
    for (_, words) in &commands {
        for word in words {
            let text = word.to_string_lossy();
            // A port would let every user of the machine drive the browser.
            let name = text.trim_start_matches('-');
            if text != name && (name.starts_with("user-data-dir") || name.starts_with("remote-debugging")) {
                return Err(Failure::new(
                    Kind::Usage,
                    format!("{text}: the profile and the connection to DevTools are slowpath's"),
                )
                .hint("leave it out; every round begins with a fresh profile"));
            }
        }
        let program = words.first().map(|word| base(word)).unwrap_or_default();
        if program.contains("firefox") {
            return Err(Failure::new(
                Kind::Machine,
                format!("{program}: unavailable: this version drives browsers through DevTools, which Firefox no longer has (removed in 129)"),
            )
            .hint("`slowpath launch --ready browser` compares its start with that of others"));
        }
    }
    commands.iter_mut().for_each(|(_, words)| words.extend(ADDED.map(Into::into)));
    named(commands, invocation)
}

fn base(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    text.rsplit('/').next().unwrap_or_default().to_owned()
}
