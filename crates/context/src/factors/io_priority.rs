//! The class and level of a thread's block I/O (ioprio_set(2)).

use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::system_calls;
use crate::task_files::TaskFiles;
use crate::toggles::{Contrast, DifferingPart, How, SYS_ADMIN, SYS_NICE, Setting, Toggle};
use slowpath_launch::ContextStep;
use slowpath_launch::Metric;

/// The factor.
pub const IO_PRIORITY: Factor = Factor {
    name: "io_priority",
    former: Former::NONE,
    title: "I/O priority",
    what: "Class (real-time, best-effort, idle) and level of the thread's block I/O. A thread without one of its \
           own has one that follows from its nice value.",
    why: "Where others use the same device and its I/O scheduler knows priorities (bfq; mq-deadline a little), \
          requests of a lower class wait for the others. With the scheduler `none` it has no effect.",
    by_hand: "`ionice -p PID`",
    scope: Scope::Thread,
    lasts: Lasts::Always,
    read,
    known,
    remedies: Remedies::Of(&[(
        "start it with the class of the fast context (ionice)",
        "fairness: others wait longer for the same storage",
    )]),
    toggle: Toggle::Parts(parts),
};

/// Bits below the class (include/uapi/linux/ioprio.h).
const CLASS_SHIFT: i32 = 13;
/// Levels of a class.
const LEVELS: i32 = 8;

fn read(task: &TaskFiles<'_>) -> Reading {
    let Some(tid) = task.number_here() else {
        return Reading::unavailable(
            "only a system call reads it, no file in /proc",
            "read the context on the machine itself",
        );
    };
    match system_calls::io_priority(tid) {
        Ok(priority) => Reading::known(Value::text(word(priority))),
        Err(error) => Reading::unavailable(error.to_string(), "run it as the user of the process, or as root"),
    }
}

fn word(priority: i32) -> String {
    let level = priority % LEVELS;
    match priority >> CLASS_SHIFT {
        0 => "from nice".to_owned(),
        1 => format!("real time {level}"),
        2 => format!("best effort {level}"),
        3 => "idle".to_owned(),
        class => format!("class {class}, {level}"),
    }
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Light,
        "only where the disk's scheduler knows priorities (bfq; mq-deadline a little) and others use the same disk",
        "ioprio_set(2); Documentation/block/ioprio.rst",
    )
}

const HOW: How = How {
    irreversible: false,
    counters: &[Metric::Waiting],
    mechanism: "where others use the same disk its scheduler serves the thread later",
    sham: "the priority of the fast context, set in the same way",
};

fn parts(contrast: &Contrast<'_>) -> Vec<DifferingPart> {
    contrast.whole(&HOW, |value| {
        let word = match value {
            Some(Value::Text(word)) => word.as_str(),
            _ => return Err("it is not known".to_owned()),
        };
        let (class, level) = word.rsplit_once(' ').unwrap_or((word, "0"));
        let class = match (word, class) {
            ("from nice", _) => 0,
            (_, "real time") if !contrast.here.may(SYS_ADMIN) && !contrast.here.may(SYS_NICE) => {
                return Err(contrast.here.lacks(SYS_NICE, "CAP_SYS_NICE"));
            }
            (_, "real time") => 1,
            (_, "best effort") => 2,
            ("idle", _) => 3,
            _ => return Err(format!("{word:?} is no class of ioprio_set(2)")),
        };
        let level = if matches!(class, 1 | 2) { level.parse().map_err(|_| "it has no level")? } else { 0u16 };
        Ok(vec![Setting::Step(ContextStep::IoPriority { value: class << CLASS_SHIFT | level })])
    })
}

#[cfg(test)]
mod tests {
    use super::word;

    #[test]
    fn class_and_level_are_words() {
        assert_eq!(word(0), "from nice");
        assert_eq!(word(2 << 13 | 4), "best effort 4");
        assert_eq!((word(1 << 13), word(3 << 13 | 7)), ("real time 0".to_owned(), "idle".to_owned()));
    }
}
