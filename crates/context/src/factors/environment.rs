//! What of its environment makes a program run otherwise: the dynamic linker's and malloc's variables, the language, and how large
//! all of it is.
//!
//! Other variables are not kept: they can hold secrets.

mod variables;

use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::reading::{Reading, Value};
use crate::remedy::Remedy;
use crate::snapshot::Snapshot;
use crate::task_files::TaskFiles;
use crate::toggles::{Contrast, DifferingPart, Here, How, Outcome, Setting, Toggle, both, or_none};
use crate::trust::OTHER_CODE;
use slowpath_launch::Metric;
use std::collections::BTreeMap;
use variables::{is_harmless, is_harmless_name, is_kept};

/// The factor.
pub const ENVIRONMENT: Factor = Factor {
    name: "environment",
    former: Former::NONE,
    title: "environment",
    what: "Variables that change what the dynamic linker, malloc, the C library or a run-time system does (LD_*, \
           MALLOC_*, GLIBC_TUNABLES, LANG, PATH, PYTHON*, JAVA_TOOL_OPTIONS and the like), and the size of the \
           whole environment. Other variables are not kept: they can hold secrets.",
    why: "From nothing to many times the CPU time: of programs that only allocate glibc.malloc.mmap_threshold 84x, \
          MALLOC_PERTURB_ 1.63x, tcache_count=0 1.21x. LD_PRELOAD replaces functions. The size moves the stack: \
          below 1 % mostly, some percent in tight loops.",
    by_hand: "`tr '\\0' '\\n' < /proc/PID/environ`",
    scope: Scope::Process,
    lasts: Lasts::Always,
    read,
    known,
    remedies: Remedies::OfPart(remedies),
    toggle: Toggle::Parts(parts),
};

/// The part with the size of everything, in small letters: no name in [`variables`] begins with one.
pub const BYTES: &str = "bytes of all";

fn read(task: &TaskFiles<'_>) -> Reading {
    Reading::of(task.file("environ").map(|text| Value::table(kept_variables(&text))), "this kernel does not report it")
}

fn kept_variables(text: &str) -> Vec<(String, String)> {
    let variables = text.split('\0').filter_map(|variable| variable.split_once('='));
    let mut parts: Vec<(String, String)> =
        variables.filter(|(name, _)| is_kept(name)).map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    parts.push((BYTES.to_owned(), text.len().to_string()));
    parts
}

fn known(a: &Value, b: &Value) -> Known {
    let differs = |name: &str| a.part(name) != b.part(name);
    let any = |beginnings: &[&str]| {
        let names = a.parts().chain(b.parts()).map(|(name, _)| name);
        names.filter(|name| differs(name)).any(|name| beginnings.iter().any(|beginning| name.starts_with(beginning)))
    };
    if any(&["LD_", "MALLOC_", "GLIBC_TUNABLES", "_RJEM", "GO", "OMP_", "PYTHON", "JAVA", "JDK", "NODE"]) {
        return Known::new(
            Weight::Heavy,
            "settings of the dynamic linker, of malloc and of run-time systems: from nothing to many times the CPU time \
             (glibc.malloc.mmap_threshold 84x, MALLOC_PERTURB_ 1.63x, tcache_count=0 1.21x of programs that only allocate)",
            "ld.so(8); mallopt(3); measured by slowpath's authors",
        );
    }
    if any(&["PATH", "TMPDIR", "TZ", "LANG", "LC_"]) {
        return Known::new(
            Weight::Light,
            "a longer search for each command, other directories for temporary files, time zones read anew; collation and upper case of other \
             languages cost programs that sort and compare text",
            "environ(7); locale(7); tzset(3)",
        );
    }
    Known::new(
        Weight::Light,
        "the size of the environment moves the stack: below 1 % mostly, some percent in tight loops",
        "T. Mytkowicz and others, \"Producing Wrong Data Without Doing Anything Obviously Wrong\", ASPLOS 2009",
    )
}

/// What is known of one variable with and without this value.
pub(crate) fn of_variable(name: &str, value: &str, own: Option<&str>) -> Known {
    known(&Value::table([(name, value)]), &Value::table(own.map(|own| (name, own))))
}

const HOW: How = How {
    irreversible: false,
    counters: &[
        Metric::User,
        Metric::System,
        Metric::Cpu,
        Metric::MinorFaults,
        Metric::Waiting,
        Metric::InvoluntarySwitches,
    ],
    mechanism: "the dynamic linker, malloc or the run-time system reads it and does something else",
    sham: "the variable as in the fast context, or none",
};

/// What two contexts say alike of the variables of their launches.
#[derive(Clone, Debug, Default)]
pub(crate) struct InCommon {
    /// Those that a launch gets.
    pub(crate) variables: BTreeMap<String, String>,
    /// Those that it does not, with their value there: they could make it run other code, and are a stranger's.
    pub(crate) refused: BTreeMap<String, String>,
    /// Whether a variable that neither has is taken out of a launch only where it is harmless to have or not.
    is_foreign: bool,
}

impl InCommon {
    /// Whether a variable of a launch that is not among [`Self::variables`] is taken out.
    pub(crate) fn removes(&self, name: &str) -> bool {
        is_kept(name)
            && !self.variables.contains_key(name)
            && !self.refused.contains_key(name)
            && (!self.is_foreign || is_harmless_name(name))
    }
}

/// The variables that both contexts have alike; none where either was not read.
pub(crate) fn in_common(fast: &Snapshot, slow: &Snapshot, here: &Here) -> Option<InCommon> {
    let of = |context: &Snapshot| match context.reading(ENVIRONMENT.name).and_then(Reading::value) {
        Some(Value::Table(parts)) => Some(parts.clone()),
        _ => None,
    };
    let (fast_context, slow_context) = (fast, slow);
    let (fast, slow) = (of(fast)?, of(slow)?);
    let alike = |name: &String, value: &String| is_kept(name) && slow.get(name) == Some(value) && is_text(value);
    let is_foreign = !here.is_own(fast_context) || !here.is_own(slow_context);
    let is_taken = |name: &String, value: &String| !is_foreign || is_harmless(name, value);
    let alike = fast.into_iter().filter(|(name, value)| alike(name, value));
    let (variables, refused) = alike.partition(|(name, value)| is_taken(name, value));
    Some(InCommon { variables, refused, is_foreign })
}

/// Bytes that are no text were read as this character.
fn is_text(value: &str) -> bool {
    !value.contains(char::REPLACEMENT_CHARACTER)
}

fn parts(contrast: &Contrast<'_>) -> Vec<DifferingPart> {
    let set = |name: &str, value: Option<&str>, context: &Snapshot| {
        let is_harmless = |value: &str| is_harmless(name, value);
        if !contrast.here.is_own(context) && !value.map_or_else(|| is_harmless_name(name), is_harmless) {
            return Err(OTHER_CODE.to_owned());
        }
        if value.is_some_and(|value| !is_text(value)) {
            return Err("it holds bytes that are not text, and was not kept".to_owned());
        }
        Ok(vec![Setting::Variable { name: name.to_owned(), value: value.map(str::to_owned) }])
    };
    let differing = contrast.differing();
    // A variable takes its name, its value and two characters.
    let taken = |name: &str, value: Option<&str>| value.map_or(0, |value| name.len() + value.len() + 2) as i64;
    let explained: i64 = differing
        .iter()
        .filter(|(name, ..)| *name != BYTES)
        .map(|(name, fast, slow)| taken(name, *slow) - taken(name, *fast))
        .sum();
    let part = |(name, fast, slow): (&str, Option<&str>, Option<&str>)| {
        let outcome = if name == BYTES {
            let size = |value: Option<&str>| value.and_then(|value| value.parse::<i64>().ok()).unwrap_or(0);
            if size(slow) - size(fast) == explained {
                Outcome::Follows("it follows from the variables that differ".to_owned())
            } else {
                Outcome::Not("it concerns variables without kept values, because these can hold secrets".to_owned())
            }
        } else {
            both(set(name, fast, contrast.contexts.0), set(name, slow, contrast.contexts.1), &HOW)
        };
        DifferingPart::whole(or_none(fast), or_none(slow), outcome).named(name)
    };
    differing.into_iter().map(part).collect()
}

/// What can be done about a variable; about several where none is named.
fn remedies(part: &str) -> Vec<Remedy> {
    let price = match part {
        "MALLOC_PERTURB_" | "MALLOC_CHECK_" => "fewer uninitialised reads and use-after-frees are caught",
        "LD_PRELOAD" | "LD_AUDIT" => "what the library was loaded for",
        "GLIBC_TUNABLES" => "what the setting is for: mostly memory that is freed sooner",
        "LD_BIND_NOW" => "security: the table of addresses can be written to while the program runs",
        _ => "what the variable was set for",
    };
    let name = if part.is_empty() { "the variables that differ" } else { part };
    vec![Remedy::new(format!("start the program with the value of {name} of the fast context"), price)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_a_secret_is_not_kept_and_counts_in_the_size() {
        let text = "HOME=/root\0LD_PRELOAD=a.so\0API_KEY=secret\0LC_ALL=C\0";
        let parts = kept_variables(text);
        let expected = [("LD_PRELOAD", "a.so"), ("LC_ALL", "C"), (BYTES, &text.len().to_string())];
        assert_eq!(parts, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn settings_of_malloc_weigh_more_than_the_language_and_that_more_than_the_size() {
        let of = |text: &str| Value::table(kept_variables(text));
        assert_eq!(known(&of("MALLOC_ARENA_MAX=1\0"), &of("")).weight, Weight::Heavy);
        assert_eq!(known(&of("LANG=C\0"), &of("LANG=de\0")).weight, Weight::Light);
        assert!(known(&of("X=1\0"), &of("")).cost.contains("moves the stack"));
    }
}
