//! Who a thread runs as: user, group, further groups.

use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::task_files::TaskFiles;
use crate::toggles::{Contrast, DifferingPart, How, SETGID, SETUID, Setting, Toggle};
use slowpath_launch::Metric;
use slowpath_process::Credentials;

/// The factor.
pub const CREDENTIALS: Factor = Factor {
    name: "credentials",
    former: Former::NONE,
    title: "user, group, supplementary groups",
    what: "User, group and supplementary groups of the thread, by which the kernel decides which files it may use.",
    why: "Another user may not read the caches that the first one made (bytecode, compiled artifacts, fonts) and \
          does the work in them again: 1.5 to 3 times the start of such programs.",
    by_hand: "`grep -E '^(Uid|Gid|Groups)' /proc/PID/status`",
    scope: Scope::Thread,
    lasts: Lasts::Always,
    read,
    known,
    remedies: Remedies::Of(&[(
        "let the user read what it cannot: caches that another user wrote, each directory above them; or fill them as this user",
        "security: everyone who may read the files can; none where they hold no secrets",
    )]),
    toggle: Toggle::Parts(parts),
};

/// Fields of `status`: of users and groups real, effective, saved and for files.
const FIELDS: [(&str, &str); 3] = [("Uid", "user"), ("Gid", "group"), ("Groups", "groups")];

fn read(task: &TaskFiles<'_>) -> Reading {
    let parts: Result<Vec<(&str, String)>, _> =
        FIELDS.iter().map(|(field, name)| Ok((*name, without_repeats(&task.status(field)?)))).collect();
    Reading::of(parts.map(Value::table), "this kernel does not report it")
}

/// One number where all are the same.
fn without_repeats(field: &str) -> String {
    let words: Vec<&str> = field.split_whitespace().collect();
    match words.split_first() {
        Some((first, rest)) if words.len() == 4 && rest.iter().all(|word| word == first) => (*first).to_owned(),
        _ => words.join(" "),
    }
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Moderate,
        "another user may not read the caches that the first one made (byte code, compiled artifacts, fonts): then the work in them is \
         done again, 1.5 to 3 times the start of such programs",
        "measured by slowpath's authors (pandas with an unreadable __pycache__ 3.1x, Java's class data 1.55x)",
    )
}

const HOW: How = How {
    irreversible: false,
    counters: &[Metric::Cpu, Metric::User, Metric::System, Metric::MinorFaults],
    mechanism: "at each start the program regenerates, or runs without, the files that this user may not read or write",
    sham: "the user and groups of the fast context, set in the same way",
};

const DECIDED: &str = "who the command runs as is decided by who starts it (--user), and by no context: --trust-context takes it all \
                       the same";

fn parts(contrast: &Contrast<'_>) -> Vec<DifferingPart> {
    let here = contrast.here;
    contrast.whole_of(&HOW, |value, context| {
        let value = value.ok_or("it is not known")?;
        let one = |part: &str| {
            let text = value.part(part).unwrap_or_default();
            text.parse().map_err(|_| format!("{part} {text:?}: its real and effective ones are not the same"))
        };
        let groups = value.part("groups").unwrap_or_default().split_whitespace();
        let groups = groups.map(|group| group.parse().map_err(|_| format!("{group:?} is no group")));
        let groups = groups.collect::<Result<Vec<u32>, _>>()?;
        let wanted = Credentials { uid: one("user")?, gid: one("group")?, groups };
        wanted.validate().map_err(|error| error.to_string())?;
        let is_anyway = |mut wanted: Credentials, mut own: Credentials| {
            wanted.groups.sort_unstable();
            own.groups.sort_unstable();
            wanted == own
        };
        if !is_anyway(wanted.clone(), here.user.clone()) {
            if !here.has(SETUID) || !here.has(SETGID) {
                return Err("only root can start programs as somebody else".to_owned());
            }
            // A wrapper of root's own, such as setpriv, may give up what root has.
            let gives_up = here.user.uid == 0 && here.is_own(context);
            if !here.trusts && !gives_up {
                return Err(DECIDED.to_owned());
            }
        }
        Ok(vec![Setting::Identity { uid: wanted.uid, gid: wanted.gid, groups: wanted.groups }])
    })
}

#[cfg(test)]
mod tests {
    use super::without_repeats;

    #[test]
    fn four_equal_ids_are_one() {
        assert_eq!(without_repeats("0\t0\t0\t0"), "0");
        assert_eq!(without_repeats("1000\t0\t1000\t1000"), "1000 0 1000 1000");
        assert_eq!(without_repeats("4 24 27"), "4 24 27");
    }
}
