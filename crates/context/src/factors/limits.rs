//! Resource limits of a process (getrlimit(2)).

use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::task_files::TaskFiles;
use crate::toggles::{Contrast, DifferingPart, Here, How, SYS_RESOURCE, Setting, Toggle, both, or_none};
use slowpath_launch::Metric;
use slowpath_launch::{Limit, LimitKind};

/// The factor.
pub const LIMITS: Factor = Factor {
    name: "limits",
    former: Former::NONE,
    title: "resource limits",
    what: "Resource limits of the process (getrlimit(2), `ulimit`), soft and hard: stack, open files, locked \
           memory, address space and others.",
    why: "The stack limit moves where memory is mapped, and `unlimited` selects the legacy layout. With few files \
          or little locked memory a program that asks for more is refused and takes another code path.",
    by_hand: "`prlimit --pid PID`; `cat /proc/PID/limits`",
    scope: Scope::Process,
    lasts: Lasts::Always,
    read,
    known,
    remedies: Remedies::Of(&[("raise the limit", "what the limit protects: the memory and the CPUs of others")]),
    toggle: Toggle::Parts(parts),
};

fn read(task: &TaskFiles<'_>) -> Reading {
    let parsed = task.file("limits").map(|text| Value::table(lines(&text)));
    Reading::of(parsed, "this kernel does not report it")
}

/// Name and soft limit, and the hard one where it is another. Columns are as wide as the heading says
/// (fs/proc/base.c, `proc_pid_limits`).
fn lines(text: &str) -> Vec<(String, String)> {
    let mut rows = text.lines();
    let heading = rows.next().unwrap_or_default();
    let (Some(soft_at), Some(hard_at)) = (heading.find("Soft Limit"), heading.find("Hard Limit")) else {
        return Vec::new();
    };
    let part = |line: &str| {
        let name = line.get(..soft_at)?.trim().trim_start_matches("Max ").replace(' ', "_");
        let soft = line.get(soft_at..hard_at)?.trim();
        let hard = line.get(hard_at..)?.split_whitespace().next()?;
        Some((name, if soft == hard { soft.to_owned() } else { format!("{soft} of {hard}") }))
    };
    rows.filter_map(part).collect()
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Light,
        "a stack limit moves where memory is mapped, and `unlimited` turns the layout round; few files or little locked memory make \
         programs that ask for more take another code path",
        "getrlimit(2); arch/x86/mm/mmap.c, mmap_is_legacy",
    )
}

const HOW: How = How {
    irreversible: false,
    counters: &[Metric::MinorFaults, Metric::User, Metric::System, Metric::Waiting],
    mechanism: "memory is laid out differently, or the program runs without what it asks for",
    sham: "the limit of the fast context, set in the same way",
};

/// Names as they are read, and what they limit (fs/proc/base.c, `lnames`).
const KINDS: [(&str, LimitKind); 16] = [
    ("cpu_time", LimitKind::Cpu),
    ("file_size", LimitKind::Fsize),
    ("data_size", LimitKind::Data),
    ("stack_size", LimitKind::Stack),
    ("core_file_size", LimitKind::Core),
    ("resident_set", LimitKind::Rss),
    ("processes", LimitKind::Nproc),
    ("open_files", LimitKind::Nofile),
    ("locked_memory", LimitKind::Memlock),
    ("address_space", LimitKind::As),
    ("file_locks", LimitKind::Locks),
    ("pending_signals", LimitKind::Sigpending),
    ("msgqueue_size", LimitKind::Msgqueue),
    ("nice_priority", LimitKind::Nice),
    ("realtime_priority", LimitKind::Rtprio),
    ("realtime_timeout", LimitKind::Rttime),
];

fn parts(contrast: &Contrast<'_>) -> Vec<DifferingPart> {
    let part = |(name, fast, slow): (&str, Option<&str>, Option<&str>)| {
        let set = |value: Option<&str>| limit(name, value, contrast.here).map(|limit| vec![Setting::Limit(limit)]);
        DifferingPart::whole(or_none(fast), or_none(slow), both(set(fast), set(slow), &HOW)).named(name)
    };
    contrast.differing().into_iter().map(part).collect()
}

/// Soft and hard value of `SOFT` or `SOFT of HARD`.
fn soft_and_hard(value: &str) -> Option<(u64, u64)> {
    let number = |text: &str| if text == "unlimited" { Some(u64::MAX) } else { text.parse().ok() };
    let (soft, hard) = value.split_once(" of ").unwrap_or((value, value));
    Some((number(soft)?, number(hard)?))
}

fn limit(name: &str, value: Option<&str>, here: &Here) -> Result<Limit, String> {
    let kind = KINDS.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind);
    let kind = kind.ok_or_else(|| format!("slowpath does not know the limit {name}"))?;
    let (soft, hard) = value.and_then(soft_and_hard).ok_or("it is not known")?;
    let own = here.value(LIMITS.name).and_then(|own| own.part(name)).and_then(soft_and_hard);
    if own.is_some_and(|(_, own)| hard > own) && !here.may(SYS_RESOURCE) {
        return Err(format!("the caller has a lower one; {}", here.lacks(SYS_RESOURCE, "CAP_SYS_RESOURCE")));
    }
    Ok(Limit { kind, soft, hard })
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn limits_have_their_soft_and_where_it_differs_their_hard_value() {
        let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
                    Max stack size            8388608              unlimited            bytes     \n\
                    Max nice priority         0                    0                    \n";
        let expected = [("stack_size", "8388608 of unlimited"), ("nice_priority", "0")];
        assert_eq!(lines(text), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert!(lines("").is_empty() && lines("nonsense\nmore").is_empty());
    }
}
