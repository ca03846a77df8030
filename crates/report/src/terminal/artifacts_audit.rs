//! An audit as text: one row for artifacts that one directory denies, or that lie in one directory and are the same in all but their names.

use super::escape_terminal as line;
use slowpath_artifacts::audit::{Artifact, Audited, State};
use std::fmt::Write;
use std::path::Path;

/// Columns of the state and of the family.
const STATE: usize = 11;
const FAMILY: usize = 19;

/// Rows that are printed; JSON has all.
const MOST_ROWS: usize = 60;

/// The whole audit, with a newline after every line.
pub fn artifacts_audit(audited: &Audited) -> String {
    let mut text = String::new();
    let user = &audited.user;
    let groups: Vec<String> = user.groups.iter().filter(|group| **group != user.gid).map(u32::to_string).collect();
    let others = if groups.is_empty() { "no other groups".to_owned() } else { format!("groups {}", groups.join(", ")) };
    // Writing to a string does not fail.
    let _ = writeln!(text, "for user {} (uid {}), group {}, {others}", line(&user.name), user.uid, user.gid);
    let rows = rows(&audited.artifacts);
    if !rows.is_empty() {
        let _ = writeln!(text, "{:STATE$} {:FAMILY$} artifact", "state", "family");
    }
    for row in rows.iter().take(MOST_ROWS) {
        row.write(&mut text);
    }
    if rows.len() > MOST_ROWS {
        let _ = writeln!(text, "{} more rows: --json has all", rows.len() - MOST_ROWS);
    }
    for gap in &audited.unavailable {
        let _ =
            writeln!(text, "not audited: {}: {}\n  remedy: {}", line(&gap.what), line(&gap.reason), line(&gap.remedy));
    }
    let _ = writeln!(text, "{}", summary(audited));
    text
}

/// `12 artifacts: 3 unreadable, 9 usable`.
fn summary(audited: &Audited) -> String {
    let count = |state: State| audited.artifacts.iter().filter(|artifact| artifact.state == state).count();
    let counts = State::ALL.into_iter().map(|state| (state, count(state))).filter(|(_, count)| *count > 0);
    let counts: Vec<String> = counts.map(|(state, count)| format!("{count} {}", state.name())).collect();
    let artifacts = match audited.artifacts.len() {
        0 => "no artifacts".to_owned(),
        1 => "1 artifact".to_owned(),
        many => format!("{many} artifacts"),
    };
    let colon = if counts.is_empty() { "" } else { ": " };
    // Single files are looked at without a walk.
    let walked = if audited.entries > 0 { format!(" ({} names looked at)", audited.entries) } else { String::new() };
    format!("{artifacts}{colon}{}{walked}", counts.join(", "))
}

/// Artifacts that one row stands for; there is at least one.
struct Row<'a> {
    first: &'a Artifact,
    count: usize,
    is_same_change: bool,
}

/// What artifacts of one row have in common.
fn is_alike(a: &Artifact, b: &Artifact) -> bool {
    let denier = |artifact: &Artifact| {
        let denied_by = artifact.denied_by.as_ref()?;
        // Each by its own bits is alike.
        let path = (denied_by.path != artifact.path).then(|| denied_by.path.clone());
        Some((path, denied_by.words.clone()))
    };
    let place = |artifact: &Artifact| Path::new(&artifact.path).parent().map(Path::to_owned);
    // What is unknown or missing for one reason is so wherever it lies.
    let is_anywhere = matches!(a.state, State::Unknown | State::Missing) && a.reason == b.reason;
    // What one directory denies is lifted by one change, wherever below it lies.
    let is_below_one = a.change == b.change && denier(a).is_some_and(|(path, _)| path.is_some());
    let is_near = is_anywhere || is_below_one || place(a) == place(b);
    a.state == b.state && a.family == b.family && denier(a) == denier(b) && is_near
}

/// The rows of all that is not usable, in order.
fn rows(artifacts: &[Artifact]) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for artifact in artifacts.iter().filter(|artifact| artifact.state != State::Usable) {
        // They are sorted by state and path, and what is alike stands together but for what is unknown.
        let alike = rows.iter_mut().rev().take(16).find(|row| is_alike(row.first, artifact));
        match alike {
            Some(row) => {
                row.count += 1;
                row.is_same_change &= row.first.change == artifact.change;
            }
            None => rows.push(Row { first: artifact, count: 1, is_same_change: true }),
        }
    }
    rows
}

impl Row<'_> {
    fn write(&self, text: &mut String) {
        let Self { first, count, is_same_change } = self;
        let others = if *count > 1 { format!(" and {} more", count - 1) } else { String::new() };
        let (state, path) = (first.state.name(), line(&first.path));
        let mut detail = format!("{state:STATE$} {:FAMILY$} {path}{others}\n", first.family);
        let mut add = |name: &str, words: &str| {
            let _ = writeln!(detail, "{:STATE$} {name}: {}", "", line(words));
        };
        if let Some(denied_by) = &first.denied_by {
            add("denied by", &format!("{}: {}", denied_by.path, denied_by.words));
            let each = if *is_same_change { "" } else { " (and so for each)" };
            let change = first.change.as_ref().map(|change| format!("{change}{each}"));
            add("change", change.as_deref().unwrap_or("no permission of a file would allow it"));
        }
        if let Some(reason) = &first.reason {
            add("why", reason);
        }
        text.push_str(&detail);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_artifacts::access::{Access, Rule};
    use slowpath_artifacts::audit::{AUDIT_SCHEMA, AuditedUser, DeniedBy};

    fn unreadable(path: &str, denier: &str) -> Artifact {
        let (access, rule) = (Access::Read, Rule::OtherBits);
        Artifact {
            path: path.to_owned(),
            family: "python_bytecode".to_owned(),
            state: State::Unreadable,
            uid: 7,
            denied_by: Some(DeniedBy { path: denier.to_owned(), access, rule, words: rule.words(access) }),
            change: Some(format!("chmod o+r {denier}")),
            reason: None,
            cost: None,
        }
    }

    fn audited(artifacts: Vec<Artifact>) -> Audited {
        let user = AuditedUser { name: "u\u{1b}[2J".to_owned(), uid: 7, gid: 7, groups: vec![7, 100] };
        Audited { schema: AUDIT_SCHEMA.to_owned(), user, artifacts, entries: 9, unavailable: Vec::new() }
    }

    #[test]
    fn artifacts_that_one_directory_denies_are_one_row_wherever_below_it_they_lie() {
        let all = vec![unreadable("/p/c/a", "/p"), unreadable("/p/d/b", "/p"), unreadable("/q/c/a", "/q")];
        let text = artifacts_audit(&audited(all));
        let expected = "\
for user u\\u{1b}[2J (uid 7), group 7, groups 100
state       family              artifact
unreadable  python_bytecode     /p/c/a and 1 more
            denied by: /p: other bits lack r
            change: chmod o+r /p
unreadable  python_bytecode     /q/c/a
            denied by: /q: other bits lack r
            change: chmod o+r /q
3 artifacts: 3 unreadable (9 names looked at)
";
        assert_eq!(text, expected);
    }

    #[test]
    fn files_that_deny_by_their_own_bits_are_one_row_that_says_so() {
        let text = artifacts_audit(&audited(vec![unreadable("/p/a", "/p/a"), unreadable("/p/b", "/p/b")]));
        assert!(text.contains("/p/a and 1 more\n"), "{text}");
        assert!(text.contains("change: chmod o+r /p/a (and so for each)\n"), "{text}");
    }

    #[test]
    fn names_cannot_control_the_terminal() {
        let text = artifacts_audit(&audited(vec![unreadable("/p/\u{1b}]0;x\u{7}\n", "/p")]));
        assert!(!text.contains('\u{1b}') && text.lines().count() == 6, "{text:?}");
    }
}
