//! The execution domain of a process (personality(2)): among others whether addresses are randomised.

use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::kernel_files::Missing;
use crate::reading::{Reading, Value};
use crate::task_files::TaskFiles;
use crate::toggles::{Contrast, DifferingPart, How, Setting, Toggle};
use slowpath_launch::ContextStep;
use slowpath_launch::Metric;
use std::collections::BTreeSet;

/// The factor.
pub const PERSONALITY: Factor = Factor {
    name: "personality",
    former: Former::NONE,
    title: "execution domain (personality)",
    what: "Flags of the execution domain (personality(2)) as `setarch` sets them, such as ADDR_NO_RANDOMIZE and \
           ADDR_COMPAT_LAYOUT. Children inherit them.",
    why: "They decide where code and data lie, and so which of them share a place in the caches: below 1 % mostly, \
          some percent in tight loops.",
    by_hand: "`cat /proc/PID/personality`: flags of personality(2)",
    scope: Scope::Process,
    lasts: Lasts::Always,
    read,
    known,
    remedies: Remedies::Of(&[(
        "start it with the flags of the fast context (setarch)",
        "security, where addresses are no longer random; else none",
    )]),
    toggle: Toggle::Parts(parts),
};

/// Flags that change speed or addresses (include/uapi/linux/personality.h).
const FLAGS: [(u32, &str); 6] = [
    (0x0004_0000, "addresses are not randomised"),
    (0x0010_0000, "page 0 is mapped"),
    (0x0020_0000, "old mmap layout"),
    (0x0040_0000, "read implies execute"),
    (0x0080_0000, "32-bit addresses"),
    (0x0800_0000, "3 GB of addresses"),
];

fn read(task: &TaskFiles<'_>) -> Reading {
    let flags = task.file("personality").and_then(|text| {
        let bits =
            u32::from_str_radix(text.trim(), 16).map_err(|_| Missing::Failed("it is not a number".to_owned()))?;
        let mut words: BTreeSet<String> =
            FLAGS.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, word)| (*word).to_owned()).collect();
        let others = FLAGS.iter().fold(bits, |bits, (bit, _)| bits & !bit);
        if others != 0 {
            words.insert(format!("{others:#x}"));
        }
        Ok(Value::Set(words))
    });
    Reading::of(flags, "this kernel does not report it")
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Light,
        "where code and data lie decides which of them share a place in the caches: below 1 % mostly, some percent in tight loops",
        "personality(2); T. Mytkowicz and others, \"Producing Wrong Data Without Doing Anything Obviously Wrong\", ASPLOS 2009",
    )
}

const HOW: How = How {
    irreversible: false,
    counters: &[Metric::User, Metric::MinorFaults],
    mechanism: "where code and data lie decides which of them share places in the caches and page tables",
    sham: "the flags of the fast context, set in the same way",
};

fn parts(contrast: &Contrast<'_>) -> Vec<DifferingPart> {
    contrast.whole(&HOW, |value| {
        let Some(Value::Set(words)) = value else { return Err("it is not known".to_owned()) };
        let flag = |word: &String| match FLAGS.iter().find(|(_, known)| known == word) {
            Some((bit, _)) => Ok(*bit),
            None => u32::from_str_radix(word.trim_start_matches("0x"), 16).map_err(|_| format!("{word:?} is no flag")),
        };
        let flags = words.iter().map(flag).collect::<Result<Vec<_>, _>>()?.into_iter().fold(0, |all, bit| all | bit);
        Ok(vec![Setting::Step(ContextStep::Personality { flags })])
    })
}
