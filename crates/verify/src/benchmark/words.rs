//! Commands as one text each: quoted as in a shell, which is not started, and with a name where an arm has one.

use std::ffi::OsString;

/// Words of a command, in a type of their own: a command line takes a bare list for repeated values.
#[derive(Clone, Debug)]
pub struct Words(pub Vec<OsString>);

fn split(text: &str) -> Result<Vec<OsString>, String> {
    let words = shlex::split(text).ok_or_else(|| format!("a quote in {text:?} does not end"))?;
    Ok(words.into_iter().map(OsString::from).collect())
}

/// The words of a command, quoted as in a shell.
///
/// # Errors
/// A quote does not end, or there is no program.
pub fn words(text: &str) -> Result<Words, String> {
    let words = split(text)?;
    if words.first().is_none_or(|program| program.is_empty()) {
        return Err("the command is empty".to_owned());
    }
    Ok(Words(words))
}

fn named(text: &str) -> Result<(String, &str), String> {
    match text.split_once('=') {
        Some(("", _)) => Err("the name is empty".to_owned()),
        Some((name, rest)) => Ok((name.to_owned(), rest)),
        None => Err("expected NAME=CMD".to_owned()),
    }
}

/// `NAME=CMD`.
///
/// # Errors
/// There is no name, or as [`words`].
pub fn named_command(text: &str) -> Result<(String, Words), String> {
    let (name, command) = named(text)?;
    Ok((name, words(command)?))
}

/// `NAME=ARGS`.
///
/// # Errors
/// There is no name, or nothing behind it.
pub fn named_words(text: &str) -> Result<(String, Words), String> {
    let (name, arguments) = named(text)?;
    match split(arguments)? {
        none if none.is_empty() => Err("no words stand behind the name".to_owned()),
        some => Ok((name, Words(some))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_split_as_a_shell_would_without_expanding() {
        let (name, command) = named_command("b=sh -c 'sleep 1; echo \"$x\"' a\\ b").unwrap();
        assert_eq!(name, "b");
        assert_eq!(command.0, ["sh", "-c", "sleep 1; echo \"$x\"", "a b"]);
        for bad in ["", "=ls", "b=", "b=''", "b='ls", "ls"] {
            assert!(named_command(bad).is_err(), "{bad:?}");
        }
    }
}
