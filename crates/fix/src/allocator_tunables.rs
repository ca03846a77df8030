//! The fix `allocator_tunables`: `GLIBC_TUNABLES` makes glibc's malloc keep memory that it would give back.
//!
//! Owns the variable: the settings that findings ask for, put to those that the user has. The values themselves come from the
//! findings ([`MallocSettings`]). Refused where the variable would not be heeded: programs without glibc's malloc, programs that
//! the kernel starts in secure mode. A program that calls mallopt(3) overrides it; that is said, and tried.

use crate::case::Case;
use crate::declaration::Declaration;
use crate::plan::{Change, FixPlan, Privilege, Scope, Trial};
use crate::program::Program;
use crate::proposal::{Proposal, gap, places, predicted};
use crate::treatment::Treatment;
use slowpath_analysis::memory::memory_fixes::{ALLOCATOR_TUNABLES, MallocSettings};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The fix.
pub const FIX: Declaration = Declaration {
    name: ALLOCATOR_TUNABLES,
    former: &[],
    title: "glibc's malloc keeps freed memory",
    what: "GLIBC_TUNABLES raises the thresholds above which malloc maps blocks individually and returns free memory to the kernel.",
    why: "Memory that stays in the heap is neither unmapped nor zeroed and faulted in again when the program needs it \
          next.",
    price: "resident memory: what was freed stays with the process",
    by_hand: "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=BYTES:glibc.malloc.trim_threshold=BYTES COMMAND; without the \
              variable nothing is changed",
    trial: "in warm launches, against an untreated launch and an environment of the same size",
    propose: Some(proposals),
};

/// The variable that glibc reads at a program's start (since 2.26).
pub const VARIABLE: &str = "GLIBC_TUNABLES";

/// Libraries that are allocators of their own, by the beginnings of their names.
pub(crate) const OTHER_ALLOCATORS: [&str; 4] = ["libjemalloc", "libmimalloc", "libtcmalloc", "libasan"];

/// At most one proposal, for all findings together: a program reads one set of settings.
fn proposals(case: &Case<'_>) -> Vec<Proposal> {
    let (willing, reasons) = case.willing(refuses);
    let asked: Vec<_> = willing.iter().filter_map(|(_, finding)| finding.fix_inputs.malloc).collect();
    let Some(settings) = asked.into_iter().reduce(MallocSettings::with) else {
        let reason = reasons.first().cloned().unwrap_or_else(|| "no finding says which settings".to_owned());
        let all = case.findings.iter().filter_map(|(_, finding)| finding.fix_inputs.malloc);
        let trial = Trial { possible: false, how: reason.clone() };
        let plan = match all.reduce(MallocSettings::with) {
            Some(wanted) => plan(case, &wanted, trial),
            None => plan_of_another(case, trial),
        };
        let gap = Some(gap(ALLOCATOR_TUNABLES, &reason, "none from outside: configure the program's own allocator"));
        return vec![Proposal {
            plan,
            findings: places(case.findings),
            predicted: None,
            gap,
            caution: None,
            needs: None,
        }];
    };
    let overriding = case.programs.iter().flat_map(|program| &program.calls_mallopt).next();
    let caution = overriding.map(|file| {
        format!("{file} calls mallopt: where a program sets its allocator itself, {VARIABLE} has no effect")
    });
    let how = "in the environment of the launch".to_owned();
    vec![Proposal {
        plan: plan(case, &settings, Trial { possible: true, how }),
        findings: places(&willing),
        predicted: predicted(&willing),
        gap: None,
        caution,
        needs: None,
    }]
}

fn refuses(program: &Program) -> Option<String> {
    let other = || Some(format!("{} has an allocator of its own: {}", program.name, program.maps(&OTHER_ALLOCATORS)?));
    program.unreachable_allocator().or_else(other)
}

fn plan(case: &Case<'_>, settings: &MallocSettings, trial: Trial) -> FixPlan {
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let mut kept = Vec::new();
    kept.extend(settings.trim_threshold.map(|bytes| format!("up to {:.0} MiB at the end of each heap", mib(bytes))));
    kept.extend(settings.top_pad.map(|bytes| format!("{:.1} MiB more than asked for in each heap", mib(bytes))));
    let kept = if kept.is_empty() { "freed memory".to_owned() } else { kept.join(", ") };
    let mut side_effects = vec![
        "programs that it starts inherit the variable".to_owned(),
        "malloc no longer adapts its threshold by itself; small and large blocks share heaps, which can fragment"
            .to_owned(),
    ];
    if settings.arena_max == Some(1) {
        side_effects
            .push("all threads share one heap: those that allocate at the same time wait for each other".to_owned());
    }
    let value = with(case.variable(VARIABLE), settings.named());
    FixPlan {
        fix: ALLOCATOR_TUNABLES.to_owned(),
        name: ALLOCATOR_TUNABLES.to_owned(),
        title: format!("glibc's malloc keeps memory: {settings}"),
        changes: vec![Change {
            what: format!("{VARIABLE} in the environment of the program"),
            from: case.variable(VARIABLE).map(|value| value.to_string_lossy().into_owned()),
            to: value.to_string_lossy().into_owned(),
        }],
        scope: Scope::Launch,
        privilege: Privilege::User,
        side_effects,
        price: format!("resident memory: {kept} stays with the process after it was freed"),
        security_cost: "none: the variable is the user's own; programs in secure mode ignore it".to_owned(),
        undo: format!("start the program without {VARIABLE}, or with the value before"),
        trial,
        treatment: Treatment::variable(VARIABLE, value),
    }
}

/// What findings say of allocators that are not glibc's: each has settings of its own.
fn plan_of_another(case: &Case<'_>, trial: Trial) -> FixPlan {
    let ways = case.findings.iter().filter_map(|(_, finding)| finding.fix_inputs.way(ALLOCATOR_TUNABLES));
    let ways: BTreeSet<&str> = ways.collect();
    let ways = if ways.is_empty() { BTreeSet::from(["memory is kept, as its documentation says how"]) } else { ways };
    let change = |way: &str| Change {
        what: "settings of the program's own allocator".to_owned(),
        from: None,
        to: way.to_owned(),
    };
    FixPlan {
        fix: ALLOCATOR_TUNABLES.to_owned(),
        name: ALLOCATOR_TUNABLES.to_owned(),
        title: "the program's own allocator keeps memory, by settings of its own".to_owned(),
        changes: ways.into_iter().map(change).collect(),
        scope: Scope::Launch,
        privilege: Privilege::User,
        side_effects: vec!["where it is a variable, programs that it starts inherit it".to_owned()],
        price: "resident memory: freed memory stays with the process".to_owned(),
        security_cost: "none: the settings are the user's own".to_owned(),
        undo: "start the program without the settings".to_owned(),
        trial,
        treatment: Treatment::None,
    }
}

/// The user's settings with others put to them: of one that is said twice, the last holds, so the user's own is taken out.
pub(crate) fn with<V: ToString>(user: Option<&OsStr>, ours: impl Iterator<Item = (&'static str, V)>) -> OsString {
    let ours: Vec<(&str, V)> = ours.collect();
    let name = |part: &[u8]| part.split(|byte| *byte == b'=').next().unwrap_or_default().to_vec();
    let is_ours = |part: &[u8]| ours.iter().any(|(one, _)| one.as_bytes() == name(part));
    let kept = user.map(OsStr::as_bytes).into_iter().flat_map(|user| user.split(|byte| *byte == b':'));
    let kept = kept.filter(|part| !part.is_empty() && !is_ours(part)).map(<[u8]>::to_vec);
    let added = ours.iter().map(|(name, value)| format!("{name}={}", value.to_string()).into_bytes());
    OsString::from_vec(kept.chain(added).collect::<Vec<_>>().join(&b':'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::sample::{finding, program, proposed};
    use slowpath_tables::{Quantity, Unit};

    const NONE: MallocSettings =
        MallocSettings { mmap_threshold: None, trim_threshold: None, top_pad: None, mmap_max: None, arena_max: None };
    const SMALL: MallocSettings =
        MallocSettings { mmap_threshold: Some(2 << 20), trim_threshold: Some(8 << 20), ..NONE };
    const LARGE: MallocSettings = MallocSettings { mmap_threshold: Some(4 << 20), top_pad: Some(65536), ..NONE };
    const LIBC: &str = "/usr/lib/x86_64-linux-gnu/libc.so.6";

    fn one(program: &Program, environment: &[(&str, &str)], settings: &[MallocSettings]) -> Proposal {
        let asking = |settings: &MallocSettings| {
            let mut one = finding(ALLOCATOR_TUNABLES, 10.0);
            one.fix_inputs.malloc = Some(*settings).filter(|settings| *settings != NONE);
            one
        };
        let findings: Vec<_> = settings.iter().map(asking).collect();
        let mut made = proposed(&FIX, &findings, program, environment, &Machine::default());
        assert_eq!(made.len(), 1);
        made.remove(0)
    }

    fn value(proposal: &Proposal) -> String {
        let (name, value) = proposal.plan.tried().environment().remove(0);
        assert_eq!(name, VARIABLE);
        value.into_string().unwrap()
    }

    #[test]
    fn what_findings_ask_for_is_set_with_what_they_predict() {
        let made = one(&program(&[LIBC]), &[], &[SMALL]);
        assert_eq!(value(&made), SMALL.to_string());
        assert!(made.plan.trial.possible && made.gap.is_none());
        assert_eq!(made.predicted, Some(Quantity::interval(-10.0, -12.0, -9.0, Unit::Ms)));
        assert!(made.plan.price.contains("8 MiB"), "{}", made.plan.price);
        let both = one(&program(&[LIBC]), &[], &[SMALL, LARGE]);
        assert_eq!(
            value(&both),
            "glibc.malloc.mmap_threshold=4194304:glibc.malloc.trim_threshold=8388608:glibc.malloc.top_pad=65536"
        );
        assert_eq!((both.findings.as_slice(), both.predicted.unwrap().value), ([0, 1].as_slice(), -20.0));
    }

    #[test]
    fn that_threads_share_one_heap_is_said_where_they_do() {
        let of = |settings: MallocSettings| {
            let made = one(&program(&[LIBC]), &[("GLIBC_TUNABLES", "glibc.malloc.arena_max=8")], &[settings]);
            let says = made.plan.side_effects.iter().any(|effect| effect.contains("share one heap"));
            (value(&made), says)
        };
        let first = MallocSettings { trim_threshold: Some(512 << 20), mmap_max: Some(0), ..NONE };
        assert_eq!(of(first), (format!("glibc.malloc.arena_max=8:{first}"), false));
        let shared = MallocSettings { arena_max: Some(1), ..first };
        assert_eq!(of(shared), (shared.to_string(), true));
    }

    #[test]
    fn what_the_user_set_stays_but_for_what_is_changed() {
        let user = [(VARIABLE, "glibc.malloc.mmap_threshold=131072:glibc.malloc.arena_max=2")];
        let made = one(&program(&[LIBC]), &user, &[SMALL]);
        assert_eq!(value(&made), format!("glibc.malloc.arena_max=2:{SMALL}"));
        assert_eq!(made.plan.changes[0].from.as_deref(), Some(user[0].1));
        assert_eq!(made.plan.changes[0].to, value(&made));
    }

    #[test]
    fn programs_that_would_not_heed_it_are_refused_with_the_reason() {
        let refused = |program: &Program, words: &str| {
            let made = one(program, &[], &[SMALL]);
            assert!(
                !made.plan.trial.possible && made.plan.tried().environment().is_empty() && made.predicted.is_none()
            );
            assert!(made.plan.trial.how.contains(words), "{}", made.plan.trial.how);
            assert_eq!(made.gap.unwrap().reason, made.plan.trial.how);
        };
        refused(&program(&[]), "maps no libc.so.6");
        refused(&program(&["/lib/ld-musl-x86_64.so.1"]), "is musl");
        refused(&program(&[LIBC, "/usr/lib/libjemalloc.so.2"]), "an allocator of its own: /usr/lib/libjemalloc.so.2");
        let secure = Some("/usr/bin/video is set-uid".to_owned());
        refused(&Program { secure, ..program(&[LIBC]) }, "is set-uid");
    }

    #[test]
    fn a_program_that_sets_its_allocator_itself_is_tried_with_a_caution() {
        let sets = Program { calls_mallopt: vec!["/usr/bin/video".to_owned()], ..program(&[LIBC]) };
        let made = one(&sets, &[], &[SMALL]);
        assert!(made.plan.trial.possible && made.caution.unwrap().starts_with("/usr/bin/video calls mallopt"));
        assert_eq!(one(&program(&[LIBC]), &[], &[SMALL]).caution, None);
    }

    #[test]
    fn of_an_allocator_that_is_not_that_of_glibc_its_own_settings_are_shown() {
        let jemalloc = program(&[LIBC, "/usr/lib/libjemalloc.so.2"]);
        let mut found = finding(ALLOCATOR_TUNABLES, 10.0);
        let way = "MALLOC_CONF=dirty_decay_ms:-1 has jemalloc keep";
        found.fix_inputs.ways.insert(ALLOCATOR_TUNABLES.to_owned(), way.to_owned());
        let made = proposed(&FIX, &[found.clone(), found], &jemalloc, &[], &Machine::default());
        let [made] = made.as_slice() else { panic!("{made:?}") };
        assert!(made.plan.title.contains("own allocator"), "{}", made.plan.title);
        let shown: Vec<_> = made.plan.changes.iter().map(|change| change.to.as_str()).collect();
        assert_eq!(shown, [way]);
        assert!(!made.plan.trial.possible && made.plan.tried().environment().is_empty(), "{made:?}");
        assert!(!serde_json::to_string(&made.plan).unwrap().contains(VARIABLE), "{made:?}");
    }

    #[test]
    fn settings_that_nobody_named_are_no_trial() {
        let made = one(&program(&[LIBC]), &[], &[NONE]);
        assert!(!made.plan.trial.possible && made.plan.trial.how.contains("no finding says"), "{made:?}");
    }
}
