//! A shell script that starts the program with the fix.

use super::fix_name::comments;
use super::refusal::Refusal;
use super::target_kind::{ContentKind, FileNeed, Input, Keeps, Rendered, TargetKind};
use super::variables::{no_nul, variables};
use crate::treatment::Treatment;
use crate::word::Word;
use std::os::unix::ffi::OsStrExt;

/// This kind.
pub static TARGET: TargetKind = TargetKind {
    name: "wrapper",
    option: "--wrapper PATH",
    title: "a script that starts the command with the fix",
    keeps: Keeps::Content(ContentKind { file: FileNeed::New, makes_directories: false, refuses: |_| None, render }),
};

/// What helps where the words of a diagnosis are not those that a script can start.
const OTHER_COMMAND: &str = "give the command for the script behind `--`, with an absolute path";

/// A word that a POSIX shell takes as it is, whatever its bytes: in single quotes, of which one in the word ends them for a moment.
pub fn quoted(word: &[u8]) -> Vec<u8> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./:,+@%".contains(byte);
    if !word.is_empty() && word.iter().all(is_plain) {
        return word.to_vec();
    }
    let mut out = vec![b'\''];
    for byte in word {
        match byte {
            b'\'' => out.extend_from_slice(b"'\\''"),
            byte => out.push(*byte),
        }
    }
    out.push(b'\'');
    out
}

fn render(input: &Input<'_>) -> Result<Rendered, Refusal> {
    let command = command(input.command)?;
    let mut script = b"#!/bin/sh\n".to_vec();
    script.extend_from_slice(comments(input.plan).as_bytes());
    for (name, value) in variables(input.plan)? {
        script.extend_from_slice(name.as_bytes());
        script.push(b'=');
        script.extend_from_slice(&quoted(value));
        script.extend_from_slice(format!("\nexport {name}\n").as_bytes());
    }
    if let Treatment::PreloadPlan { .. } = input.plan.treatment {
        let program = quoted(input.replay.path.as_os_str().as_bytes());
        let words = std::iter::once(program.as_slice()).chain(input.replay.words.iter().map(|word| word.as_bytes()));
        let replay = words.collect::<Vec<_>>().join(&b' ');
        let plan = quoted(input.plan_file.as_os_str().as_bytes());
        // Without that program or the plan the command starts as it did before.
        let lines: [&[u8]; 10] = [
            b"if [ -x ",
            &program,
            b" ] && [ -r ",
            &plan,
            b" ]; then\n    exec ",
            &replay,
            b" ",
            &plan,
            b" -- ",
            &command,
        ];
        script.extend_from_slice(&lines.concat());
        script.extend_from_slice(b" \"$@\"\nfi\n");
    }
    script.extend_from_slice(&[b"exec ", command.as_slice(), b" \"$@\"\n"].concat());
    Ok(Rendered {
        content: script,
        mode: 0o755,
        remarks: vec!["arguments of the script are passed on to the command, after those of the diagnosis".to_owned()],
        then: "start the script instead of the command".to_owned(),
    })
}

/// The words of the command, quoted.
fn command(words: &[Word]) -> Result<Vec<u8>, Refusal> {
    let Some(program) = words.first().map(Word::as_bytes).filter(|program| !program.is_empty()) else {
        return Err(Refusal::new("the diagnosis names no command", OTHER_COMMAND));
    };
    if program.contains(&b'/') && !program.starts_with(b"/") {
        return Err(Refusal::new(
            "the diagnosed command is a path relative to a directory that is not known",
            OTHER_COMMAND,
        ));
    }
    if program.starts_with(b"-") {
        return Err(Refusal::new("the diagnosed command begins with a dash", OTHER_COMMAND));
    }
    for word in words {
        no_nul(word.as_bytes())?;
        if word.as_bytes().windows(5).any(|part| part == b"{tmp}") {
            return Err(Refusal::new(
                "the diagnosed command has {tmp}, a fresh directory for each launch",
                OTHER_COMMAND,
            ));
        }
        if matches!(word, Word::Text(text) if text.contains(char::REPLACEMENT_CHARACTER)) {
            return Err(Refusal::new(
                "the diagnosed command has words that are not UTF-8, which a diagnosis cannot hold",
                OTHER_COMMAND,
            ));
        }
    }
    Ok(words.iter().map(|word| quoted(word.as_bytes())).collect::<Vec<_>>().join(&b' '))
}

#[cfg(test)]
mod tests {
    use super::super::sample::{rendered, replay};
    use super::*;
    use proptest::prelude::*;
    use std::ffi::OsStr;
    use std::process::Command;

    /// What a shell makes of quoted words.
    fn in_a_shell(words: &[Vec<u8>]) -> Vec<u8> {
        let quoted: Vec<Vec<u8>> = words.iter().map(|word| quoted(word)).collect();
        let script = [&b"printf '%s\\0' "[..], &quoted.join(&b' ')].concat();
        Command::new("/bin/sh").arg("-c").arg(OsStr::from_bytes(&script)).output().unwrap().stdout
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_shell_reads_the_very_bytes(words in prop::collection::vec(prop::collection::vec(1u8..=255, 0..40), 1..8)) {
            let expected: Vec<u8> = words.iter().flat_map(|word| [word.as_slice(), b"\0"].concat()).collect();
            prop_assert_eq!(in_a_shell(&words), expected);
        }
    }

    #[test]
    fn every_byte_and_what_a_shell_obeys_pass_as_they_are() {
        let every: Vec<u8> = (1..=255).collect();
        let words: Vec<Vec<u8>> =
            ["", "'", "a'b", "$(reboot)", "`x`", "\\", "\n", "%s", "~", "*", "#x", "-n", "a=b", "\u{e4}"]
                .iter()
                .map(|text| text.as_bytes().to_vec())
                .chain([every])
                .collect();
        let expected: Vec<u8> = words.iter().flat_map(|word| [word.as_slice(), b"\0"].concat()).collect();
        assert_eq!(in_a_shell(&words), expected);
    }

    #[test]
    fn the_script_sets_the_variable_and_becomes_the_command() {
        let made = rendered(&TARGET, Treatment::variable("A", "it's $x"), &["/bin/sh", "-c", "printf %s \"$A\""], None);
        let made = made.unwrap();
        let text = String::from_utf8(made.content.clone()).unwrap();
        assert!(text.contains("\nA='it'\\''s $x'\nexport A\nexec /bin/sh -c 'printf %s \"$A\"' \"$@\"\n"), "{text}");
        assert_eq!(made.mode, 0o755);
        let said = Command::new("/bin/sh").arg("-c").arg(text).output().unwrap();
        assert_eq!(said.stdout, b"it's $x");
    }

    #[test]
    fn a_plan_is_replayed_where_it_and_slowpath_are_there() {
        let text = String::from_utf8(rendered(&TARGET, replay(), &["cat", "a b"], None).unwrap().content).unwrap();
        let run = "    exec /usr/bin/slowpath preload run '/home/u/my plans/x.plan' -- cat 'a b' \"$@\"\nfi\nexec cat 'a b' \"$@\"\n";
        assert!(text.ends_with(run), "{text}");
    }

    #[test]
    fn commands_that_would_not_be_the_diagnosed_one_are_refused_with_a_remedy() {
        for command in [&["./a"][..], &["a", "{tmp}/b"], &["-x"], &[], &[""], &["a", "\u{fffd}"]] {
            let refused = rendered(&TARGET, Treatment::variable("A", "1"), command, None).unwrap_err();
            assert!(refused.remedy.contains("behind `--`"), "{command:?}");
        }
    }
}
