//! A file of variables: `EnvironmentFile=` of systemd.exec(5), which a shell can read (`. FILE`) as well.

use super::fix_name::comments;
use super::refusal::Refusal;
use super::target_kind::{ContentKind, FileNeed, Input, Keeps, Rendered, TargetKind};
use super::variables::{plain_text, variables};
use crate::treatment::Treatment;

/// This kind.
pub static TARGET: TargetKind = TargetKind {
    name: "environment_file",
    option: "--environment-file PATH",
    title: "lines NAME=\"value\" in a file that systemd (EnvironmentFile=) or a shell reads",
    keeps: Keeps::Content(ContentKind { file: FileNeed::Any, makes_directories: false, refuses, render }),
};

fn refuses(treatment: &Treatment) -> Option<Refusal> {
    (!matches!(treatment, Treatment::Environment { .. })).then(|| {
        Refusal::new(
            "it is not an environment variable, and a file of variables starts no program",
            "--wrapper PATH, or --desktop-file PATH",
        )
    })
}

/// A value in double quotes, in which systemd and a shell take a backslash before `"`, `\`, `` ` `` and `$` for itself
/// (`SHELL_NEED_ESCAPE` in src/basic/escape.h of systemd), and everything else as it is.
pub fn quoted(value: &str) -> String {
    let mut out = String::from('"');
    for c in value.chars() {
        if matches!(c, '"' | '\\' | '`' | '$') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

fn render(input: &Input<'_>) -> Result<Rendered, Refusal> {
    let mut content = input.before.unwrap_or_default().to_vec();
    if content.last().is_some_and(|last| *last != b'\n') {
        content.push(b'\n');
    }
    content.extend_from_slice(comments(input.plan).as_bytes());
    let mut remarks = Vec::new();
    for (name, value) in variables(input.plan)? {
        content.extend_from_slice(format!("{name}={}\n", quoted(plain_text(name, value)?)).as_bytes());
        let sets = |line: &[u8]| {
            line.trim_ascii_start().strip_prefix(name.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
        };
        if input.before.is_some_and(|before| before.split(|byte| *byte == b'\n').any(sets)) {
            remarks.push(format!("the file already sets {name}; the last of two lines wins"));
        }
    }
    Ok(Rendered {
        content,
        mode: 0o644,
        remarks,
        then:
            "name it in EnvironmentFile= of the unit, or read it before the command (set -a; . FILE), and start again"
                .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample::{rendered, replay};
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;

    /// What systemd makes of it: the states of `parse_env_file_internal` (src/basic/env-file.c) for a value in double quotes.
    fn read(quoted: &str) -> Option<String> {
        let mut chars = quoted.strip_prefix('"')?.strip_suffix('"')?.chars();
        let mut out = String::new();
        while let Some(c) = chars.next() {
            match c {
                '"' => return None,
                '\\' => match chars.next()? {
                    c @ ('"' | '\\' | '`' | '$') => out.push(c),
                    '\n' => {}
                    c => out.extend(['\\', c]),
                },
                c => out.push(c),
            }
        }
        Some(out)
    }

    proptest! {
        #[test]
        fn systemd_reads_the_very_value(value in any::<String>()) {
            prop_assert_eq!(read(&quoted(&value)), Some(value));
        }
    }

    #[test]
    fn a_shell_reads_the_very_value_too() {
        let value = "a\"b\\c`d`$(e)\n%f 'g' \u{e4} \\n \\\\";
        let script = format!("A={}; printf %s \"$A\"", quoted(value));
        assert_eq!(Command::new("/bin/sh").arg("-c").arg(script).output().unwrap().stdout, value.as_bytes());
    }

    #[test]
    fn what_stands_in_the_file_stays_and_a_name_that_is_set_twice_is_said() {
        let made = rendered(&TARGET, Treatment::variable("A", "1"), &[], Some("B=2\nA=0")).unwrap();
        let text = String::from_utf8(made.content).unwrap();
        assert!(text.starts_with("B=2\nA=0\n# Written by") && text.ends_with("\nA=\"1\"\n"), "{text}");
        assert!(made.remarks[0].contains("already sets A"));
        let new = rendered(&TARGET, Treatment::variable("A", "1"), &[], None).unwrap();
        assert!(new.content.starts_with(b"# Written by") && new.remarks.is_empty());
    }

    #[test]
    fn what_systemd_would_drop_is_refused() {
        assert!(rendered(&TARGET, replay(), &[], None).is_err());
        assert!(rendered(&TARGET, Treatment::variable("A", "a\u{1}"), &[], None).is_err());
        let bytes = Treatment::Environment { variables: [("A".to_owned(), b"\xff"[..].into())].into() };
        assert!(rendered(&TARGET, bytes, &[], None).unwrap_err().reason.contains("not UTF-8"));
    }
}
