//! The `Exec` lines of a desktop file (Desktop Entry Specification 1.5): what stands there is started with the fix.

use super::refusal::Refusal;
use super::target_kind::{ContentKind, FileNeed, Input, Keeps, Rendered, TargetKind};
use super::variables::{plain_text, variables};
use crate::treatment::Treatment;
use std::os::unix::ffi::OsStrExt;

/// This kind.
pub static TARGET: TargetKind = TargetKind {
    name: "desktop_file",
    option: "--desktop-file PATH",
    title: "the Exec lines of an existing desktop file",
    keeps: Keeps::Content(ContentKind {
        file: FileNeed::Existing,
        makes_directories: false,
        refuses: |_| None,
        render,
    }),
};

/// A word of an `Exec` line: in double quotes with `"`, `` ` ``, `$` and `\` behind a backslash, field codes doubled; and then, as
/// every value of such a file, with backslashes, line feeds and tabs escaped once more.
pub fn quoted(word: &str) -> String {
    let mut argument = String::from('"');
    for c in word.chars() {
        match c {
            '"' | '`' | '$' | '\\' => argument.extend(['\\', c]),
            '%' => argument.push_str("%%"),
            c => argument.push(c),
        }
    }
    argument.push('"');
    argument.replace('\\', "\\\\").replace('\n', "\\n").replace('\t', "\\t").replace('\r', "\\r")
}

/// What comes before the command of a line.
fn prefix(input: &Input<'_>) -> Result<String, Refusal> {
    if let Treatment::PreloadPlan { .. } = input.plan.treatment {
        let word = |name: &str, bytes: &[u8]| plain_text(name, bytes).map(quoted);
        let mut words =
            vec![word("the path of the program that replays plans", input.replay.path.as_os_str().as_bytes())?];
        words.extend(input.replay.words.iter().map(|word| (*word).to_owned()));
        let plan = word("the path of the plan", input.plan_file.as_os_str().as_bytes())?;
        return Ok(format!("{} {plan} -- ", words.join(" ")));
    }
    let mut words = vec!["env".to_owned()];
    for (name, value) in variables(input.plan)? {
        words.push(quoted(&format!("{name}={}", plain_text(name, value)?)));
    }
    Ok(format!("{} ", words.join(" ")))
}

fn render(input: &Input<'_>) -> Result<Rendered, Refusal> {
    let before = input.before.unwrap_or_default();
    let prefix = prefix(input)?;
    let (mut content, mut is_command, mut changed, mut activated) = (Vec::new(), false, 0, false);
    for line in before.split_inclusive(|byte| *byte == b'\n') {
        let text = line.trim_ascii();
        if text.starts_with(b"[") {
            is_command = text == b"[Desktop Entry]" || text.starts_with(b"[Desktop Action ");
        }
        let value = value_of(line, b"Exec").filter(|_| is_command);
        activated |= value_of(line, b"DBusActivatable").is_some_and(|at| line[at..].trim_ascii() == b"true");
        match value {
            Some(at) if !line[at..].trim_ascii().is_empty() => {
                content.extend_from_slice(&line[..at]);
                content.extend_from_slice(prefix.as_bytes());
                content.extend_from_slice(&line[at..]);
                changed += 1;
            }
            _ => content.extend_from_slice(line),
        }
    }
    if changed == 0 {
        return Err(Refusal::new(
            "the file has no Exec line in [Desktop Entry]",
            "name a desktop file of an application",
        ));
    }
    let remarks = activated.then(|| {
        "DBusActivatable=true: desktops that start it through D-Bus do not read Exec; --systemd-unit can name its service".to_owned()
    });
    Ok(Rendered {
        content,
        mode: 0o644,
        remarks: remarks.into_iter().collect(),
        then: "start the application from the desktop".to_owned(),
    })
}

/// Where the value of a key begins in a line that has it; spaces around the equals sign do not count.
fn value_of(line: &[u8], key: &[u8]) -> Option<usize> {
    let equals = line.strip_prefix(key)?.iter().position(|byte| !matches!(byte, b' ' | b'\t'))? + key.len();
    if line.get(equals) != Some(&b'=') {
        return None;
    }
    let spaces = line[equals + 1..].iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    Some(equals + 1 + spaces)
}

#[cfg(test)]
mod tests {
    use super::super::sample::{rendered, replay, without_doubled_percent};
    use super::*;
    use proptest::prelude::*;

    /// What a desktop makes of it: the escapes of a value, then the quotes of an argument, then field codes.
    fn read(quoted: &str) -> Option<String> {
        let mut chars = quoted.chars();
        let mut value = String::new();
        while let Some(c) = chars.next() {
            match c {
                '\n' | '\r' => return None,
                '\\' => value.push(match chars.next()? {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    '\\' => '\\',
                    _ => return None,
                }),
                c => value.push(c),
            }
        }
        let mut chars = value.strip_prefix('"')?.strip_suffix('"')?.chars();
        let mut argument = String::new();
        while let Some(c) = chars.next() {
            match c {
                '"' | '`' | '$' => return None,
                '\\' => argument.push(chars.next()?),
                c => argument.push(c),
            }
        }
        without_doubled_percent(&argument)
    }

    proptest! {
        #[test]
        fn a_desktop_reads_the_very_word(word in any::<String>()) {
            prop_assert_eq!(read(&quoted(&word)), Some(word));
        }
    }

    const FILE: &str = "[Desktop Entry]\nName=Exec=x\nExec = /usr/bin/a --x %U\nTryExec=a\n\n[X-Other]\nExec=no\n\
        [Desktop Action new]\nExec=a --new\n";

    #[test]
    fn every_exec_line_of_an_entry_is_started_with_the_fix_and_nothing_else_changes() {
        let made = rendered(&TARGET, Treatment::variable("A", "50%"), &[], Some(FILE)).unwrap();
        let text = String::from_utf8(made.content).unwrap();
        let expected = FILE
            .replace("/usr/bin/a --x %U", "env \"A=50%%\" /usr/bin/a --x %U")
            .replace("Exec=a --new", "Exec=env \"A=50%%\" a --new");
        assert_eq!(text, expected);
    }

    #[test]
    fn a_plan_is_replayed_beside_what_the_line_starts() {
        let text = String::from_utf8(rendered(&TARGET, replay(), &[], Some(FILE)).unwrap().content).unwrap();
        assert!(
            text.contains("Exec=\"/usr/bin/slowpath\" preload run \"/home/u/my plans/x.plan\" -- a --new\n"),
            "{text}"
        );
    }

    #[test]
    fn files_that_start_nothing_are_refused_and_those_that_others_start_are_said() {
        assert!(rendered(&TARGET, replay(), &[], Some("[X]\nExec=a\n")).is_err());
        assert!(rendered(&TARGET, replay(), &[], None).is_err());
        let made = rendered(&TARGET, replay(), &[], Some("[Desktop Entry]\nDBusActivatable=true\nExec=a")).unwrap();
        assert!(made.remarks[0].contains("D-Bus"));
    }
}
