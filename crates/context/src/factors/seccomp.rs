//! System call filters of a thread: the mode and how many there are (Documentation/userspace-api/seccomp_filter.rst).

use crate::factor::{Factor, Former, Known, Lasts, Remedies, Scope, Weight};
use crate::kernel_files::Missing;
use crate::reading::{Reading, Value};
use crate::snapshot::Snapshot;
use crate::task_files::TaskFiles;
use crate::toggles::{Contrast, DifferingPart, How, Outcome, SYS_ADMIN, Setting, Toggle, both, or_none};
use slowpath_launch::ContextStep;
use slowpath_launch::Metric;

/// The factor.
pub const SECCOMP: Factor = Factor {
    name: "seccomp",
    former: Former::NONE,
    title: "seccomp filters",
    what: "BPF programs that the kernel runs before each syscall of the thread: every filter that was installed, \
           the latest first. Children inherit them, and nothing removes one.",
    why: "An allow-list costs a loop of cheap syscalls some 10 %, a stack of filters that check arguments several \
          times the call's own time. Where the kernel's parameters say so (spec_store_bypass_disable=seccomp, \
          spectre_v2_user=seccomp), a filter installed without SECCOMP_FILTER_FLAG_SPEC_ALLOW also restricts \
          speculation.",
    by_hand: "`grep Seccomp /proc/PID/status`: mode (2 is a filter) and number of filters",
    scope: Scope::Thread,
    lasts: Lasts::Always,
    read,
    known,
    remedies: Remedies::Of(&[
        (
            "decide most syscalls with few instructions, and replace several filters by one: the kernel runs all of them, and caches \
                 the verdict on calls that are allowed whatever their arguments",
            "work: the filters have to be rewritten",
        ),
        (
            "install the filter with SECCOMP_FILTER_FLAG_SPEC_ALLOW, where it also restricts speculation",
            "security: code that runs in the process can read its memory by speculative execution",
        ),
        ("run without the filter", "security: an attacker who takes over the program can make every syscall"),
    ]),
    toggle: Toggle::Parts(parts),
};

/// `mode` and, on kernels that tell it (5.9 and later), `filters`.
fn read(task: &TaskFiles<'_>) -> Reading {
    let mode = match task.status("Seccomp") {
        Ok(mode) => mode,
        Err(missing) => return Reading::missing(&missing, "this kernel has no seccomp"),
    };
    let word = match mode.as_str() {
        "0" => "none".to_owned(),
        "1" => "strict".to_owned(),
        "2" => "filter".to_owned(),
        other => format!("mode {other}"),
    };
    let mut parts = vec![("mode".to_owned(), word)];
    match task.status("Seccomp_filters") {
        Ok(filters) => parts.push(("filters".to_owned(), filters)),
        Err(Missing::Absent) => {}
        Err(missing) => return Reading::missing(&missing, ""),
    }
    Reading::known(Value::table(parts))
}

fn known(_: &Value, _: &Value) -> Known {
    Known::new(
        Weight::Heavy,
        "each filter runs at each system call: an allow-list costs a loop of cheap calls some 10 %, a stack of filters that \
         check arguments several times its time; on some kernels a filter also switches CPU optimisations off",
        "measured by slowpath's authors on Linux 6.18 (1.09x and 3.46x); Documentation/userspace-api/spec_ctrl.rst",
    )
}

const HOW: How = How {
    irreversible: true,
    counters: &[Metric::System],
    mechanism: "each filter is run at each system call, before anything else of it",
    sham: "nothing: every filter costs something, and none can be removed",
};

/// Comparisons of a filter of slowpath's own: as many as a list of allowed calls that looks at arguments has.
const COMPARISONS: u32 = 60;

/// For a command that is not root's they go with no_new_privs, whoever made them. Filters are put on so that they do not restrict speculation: that is another factor, and toggled by itself.
fn parts(contrast: &Contrast<'_>) -> Vec<DifferingPart> {
    if contrast.is_same() && contrast.contexts.0.filters == contrast.contexts.1.filters {
        return Vec::new();
    }
    let stack = |value: Option<&Value>, context: &Snapshot| -> Result<(Vec<Vec<u8>>, bool), String> {
        let value = value.ok_or("it is not known")?;
        match value.part("mode") {
            Some("none") => return Ok((Vec::new(), true)),
            Some("filter") => {}
            other => return Err(format!("the mode {} allows no exec", or_none(other))),
        }
        let count = value.part("filters").and_then(|count| count.parse::<usize>().ok());
        let count = count.ok_or("this kernel does not report the number of filters (before 5.9)")?;
        match &context.filters {
            Some(filters) if filters.len() == count => {
                // A filter can make calls that give up privilege succeed without effect: nothing for a program of root's.
                if !contrast.here.is_own(context) && contrast.here.may(SYS_ADMIN) {
                    return Err("the command runs as root, and the filters are not yours: --trust-context puts them on all the \
                                same"
                        .to_owned());
                }
                let programs: Option<Vec<_>> = filters.iter().map(|filter| Some(filter.program()?.bytes())).collect();
                Ok((programs.ok_or("a filter that was saved is no program")?, true))
            }
            _ => Ok((vec![own_filter(); count], false)),
        }
    };
    let own = contrast.here.value(SECCOMP.name).and_then(|own| own.part("filters")).and_then(|own| own.parse().ok());
    let own: usize = own.unwrap_or(0);
    let set = |stack: &Result<(Vec<Vec<u8>>, bool), String>| -> Result<Vec<Setting>, String> {
        let (programs, _) = stack.as_ref().map_err(Clone::clone)?;
        // What the caller has on, its launches have too, and first.
        let added = programs.get(own..).ok_or("the caller itself has more filters on, and cannot take them off")?;
        let filter =
            |program: &Vec<u8>| ContextStep::SystemCallFilter { program: program.clone(), may_speculate: true };
        let mut settings: Vec<Setting> = added.iter().map(filter).map(Setting::Step).collect();
        if !settings.is_empty() && !contrast.here.may(SYS_ADMIN) {
            settings.insert(0, Setting::Step(ContextStep::NoNewPrivileges));
        }
        Ok(settings)
    };
    let filters_in_words = |value: Option<&Value>, stack: &Result<(Vec<Vec<u8>>, bool), String>| {
        let read = crate::toggles::words(value);
        match stack {
            Ok((programs, false)) => format!(
                "{read}: could not be read, so {} of slowpath's own in their place, which look at arguments and allow everything",
                programs.len()
            ),
            Ok((programs, true)) if !programs.is_empty() => {
                let lengths: Vec<String> = programs.iter().map(|program| (program.len() / 8).to_string()).collect();
                format!("{read}: programs of {} instructions", lengths.join(", "))
            }
            _ => read,
        }
    };
    let (fast, slow) = (stack(contrast.fast, contrast.contexts.0), stack(contrast.slow, contrast.contexts.1));
    let outcome = match both(set(&fast), set(&slow), &HOW) {
        Outcome::Set { settings, .. } if settings[0] == settings[1] => return Vec::new(),
        outcome => outcome,
    };
    vec![DifferingPart::whole(filters_in_words(contrast.fast, &fast), filters_in_words(contrast.slow, &slow), outcome)]
}

/// A filter that allows every call after it has compared the first argument with many values, so that the kernel cannot answer
/// it from the number of the call alone (kernel/seccomp.c, `seccomp_cache_prepare`).
fn own_filter() -> Vec<u8> {
    // include/uapi/linux/bpf_common.h: load a word at an offset, jump if equal, return; linux/seccomp.h: `args` at 16, allow.
    const LOAD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const FIRST_ARGUMENT: u32 = 16;
    const ALLOW: u32 = 0x7fff_0000;
    /// Values that no argument is likely to have.
    const UNLIKELY: u32 = 0x5109_7000;
    let instruction = |code: u16, on_match: u8, value: u32| -> [u8; 8] {
        let ([a, b], [c, d, e, f]) = (code.to_ne_bytes(), value.to_ne_bytes());
        [a, b, on_match, 0, c, d, e, f]
    };
    let compare = |index: u32| {
        let to_the_end = u8::try_from(COMPARISONS - index - 1).unwrap_or(0);
        instruction(JUMP_IF_EQUAL, to_the_end, UNLIKELY + index)
    };
    let first = std::iter::once(instruction(LOAD, 0, FIRST_ARGUMENT));
    let last = std::iter::once(instruction(RETURN, 0, ALLOW));
    first.chain((0..COMPARISONS).map(compare)).chain(last).flatten().collect()
}
