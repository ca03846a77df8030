//! A drop-in for a unit of systemd: `Environment=` of systemd.exec(5).

use super::fix_name::{comments, file_part};
use super::refusal::Refusal;
use super::target_kind::{ContentKind, FileNeed, Input, Keeps, Rendered, TargetKind};
use super::variables::{plain_text, variables};
use crate::treatment::Treatment;

/// This kind.
pub static TARGET: TargetKind = TargetKind {
    name: "systemd_unit",
    option: "--systemd-unit NAME [--user]",
    title: "a drop-in for a unit of systemd",
    keeps: Keeps::Content(ContentKind { file: FileNeed::New, makes_directories: true, refuses, render }),
};

/// Longest name of a unit (`UNIT_NAME_MAX`).
const LONGEST: usize = 255;

fn refuses(treatment: &Treatment) -> Option<Refusal> {
    (!matches!(treatment, Treatment::Environment { .. })).then(|| {
        Refusal::new(
            "a drop-in would have to replace the unit's own ExecStart=, which is not known here",
            "--wrapper PATH, and name the script in ExecStart= of the unit",
        )
    })
}

/// The full name of a service unit: letters, digits and `:-_.\@` (systemd.unit(5)).
///
/// # Errors
/// It is no name of a service.
pub fn unit_name(name: &str) -> Result<String, Refusal> {
    let full = if name.contains('.') { name.to_owned() } else { format!("{name}.service") };
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.\\@".contains(&byte);
    let Some(stem) = full.strip_suffix(".service") else {
        return Err(Refusal::new(
            format!("{name:?} is no service"),
            "give the name of a service, such as nginx.service",
        ));
    };
    if stem.is_empty() || stem.starts_with('.') || full.len() > LONGEST || !stem.bytes().all(is_valid) {
        return Err(Refusal::new(
            format!("{name:?} is no name of a unit"),
            "`systemctl list-units --type=service` lists them",
        ));
    }
    Ok(full)
}

/// The drop-in's file beneath the directory of units.
pub fn drop_in(unit: &str, fix: &str) -> String {
    format!("{unit}.d/50-slowpath-{}.conf", file_part(fix))
}

/// A word of a setting: in double quotes, with C escapes (systemd.syntax(7)) and doubled specifiers (systemd.unit(5)).
pub fn quoted(word: &str) -> String {
    let mut out = String::from('"');
    for c in word.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '%' => out.push_str("%%"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

fn render(input: &Input<'_>) -> Result<Rendered, Refusal> {
    let mut text = format!("{}[Service]\n", comments(input.plan));
    for (name, value) in variables(input.plan)? {
        text.push_str(&format!("Environment={}\n", quoted(&format!("{name}={}", plain_text(name, value)?))));
    }
    Ok(Rendered {
        content: text.into_bytes(),
        mode: 0o644,
        remarks: vec!["EnvironmentFile= of the unit overrides Environment=".to_owned()],
        then: "systemctl daemon-reload, then restart the unit (with --user where it is the user's)".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::sample::{rendered, replay, without_doubled_percent};
    use super::*;
    use proptest::prelude::*;

    /// What systemd makes of it: unquoting and C escapes (`extract_first_word` with `EXTRACT_CUNESCAPE`), then specifiers.
    fn read(quoted: &str) -> Option<String> {
        let mut chars = quoted.strip_prefix('"')?.strip_suffix('"')?.chars();
        let mut unescaped = String::new();
        while let Some(c) = chars.next() {
            match c {
                '"' | '\n' => return None,
                '\\' => unescaped.push(match chars.next()? {
                    'n' => '\n',
                    't' => '\t',
                    c @ ('"' | '\\') => c,
                    _ => return None,
                }),
                c => unescaped.push(c),
            }
        }
        without_doubled_percent(&unescaped)
    }

    proptest! {
        #[test]
        fn systemd_reads_the_very_word(word in any::<String>()) {
            prop_assert_eq!(read(&quoted(&word)), Some(word));
        }
    }

    #[test]
    fn the_drop_in_sets_the_variable() {
        let made = rendered(&TARGET, Treatment::variable("A", "50% \"$x\"\n"), &[], None).unwrap();
        let text = String::from_utf8(made.content).unwrap();
        assert!(text.ends_with("[Service]\nEnvironment=\"A=50%% \\\"$x\\\"\\n\"\n"), "{text}");
        assert!(rendered(&TARGET, replay(), &[], None).unwrap_err().remedy.contains("--wrapper"));
    }

    #[test]
    fn names_of_units_lead_nowhere_else() {
        assert_eq!(unit_name("nginx").unwrap(), "nginx.service");
        assert_eq!(unit_name("getty@tty1.service").unwrap(), "getty@tty1.service");
        for name in ["", "a/b", "../x", "a b", ".service", "a.timer", "\u{e4}", "x\n.service", "..service"] {
            assert!(unit_name(name).is_err(), "{name:?}");
        }
        assert_eq!(drop_in("a.service", "keep/../2"), "a.service.d/50-slowpath-keep----2.conf");
    }
}
