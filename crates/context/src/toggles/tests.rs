//! What becomes a candidate, what follows, and which step a launch gets: on contexts that are made up, so that what this machine lacks
//! is seen too.

use super::{Here, Side, Toggle, plan};
use crate::factor::Scope;
use crate::factors;
use crate::reading::{Reading, Value};
use crate::snapshot::{Snapshot, Thread};
use slowpath_launch::{ContextStep, Identity, LaunchSpec};
use slowpath_process::Credentials;
use std::collections::BTreeMap;

fn context(readings: &[(&str, Value)]) -> Snapshot {
    let mut context = Snapshot::nothing();
    let mut thread = Thread { tid: None, name: "x".to_owned(), factors: BTreeMap::new() };
    for (name, value) in readings {
        let reading = Reading::known(value.clone());
        match factors::named(name).unwrap().scope {
            Scope::Thread => thread.factors.insert((*name).to_owned(), reading),
            Scope::Process => context.process.insert((*name).to_owned(), reading),
            Scope::Machine => context.machine.insert((*name).to_owned(), reading),
        };
    }
    context.threads.push(thread);
    context
}

/// A caller like the fast context, who may everything.
fn root(own: &Snapshot) -> Here {
    let user = Credentials { uid: 0, gid: 0, groups: Vec::new() };
    let own = own.clone().launched();
    Here { own, capabilities: u64::MAX, hierarchies: Default::default(), user, trusts: true }
}

fn base() -> LaunchSpec {
    LaunchSpec::new(vec!["/bin/true".into()], Identity::of_caller().unwrap(), Vec::new())
}

/// The names of the candidates, and the steps of a launch with all of them slow.
fn slow_steps(fast: &Snapshot, slow: &Snapshot) -> (Vec<String>, LaunchSpec) {
    let plan = plan(fast, slow, &root(fast));
    let sides = vec![Side::Slow; plan.candidates.len()];
    let spec = plan.prepare(&base()).unwrap().spec(&sides).unwrap();
    (plan.candidates.into_iter().map(|one| one.name).collect(), spec)
}

fn words(words: &[&str]) -> Value {
    Value::Set(words.iter().map(|word| (*word).to_owned()).collect())
}

#[test]
fn what_this_machine_may_lack_has_its_step_too() {
    let clamps = |max: &str| Value::table([("min", "0"), ("max", max)]);
    let cases: [(&str, Value, Value, ContextStep); 7] = [
        ("utilization_clamp", clamps("1024"), clamps("100"), ContextStep::UtilizationClamp { min: 0, max: 100 }),
        ("core_scheduling", Value::text("none"), Value::text("set"), ContextStep::CoreCookie),
        (
            "memory_policy",
            words(&["default"]),
            words(&["interleave:0-1,3"]),
            ContextStep::MemoryPolicy { mode: 3, nodes: vec![0, 1, 3] },
        ),
        (
            "scheduling",
            Value::table([("policy", "other"), ("nice", "0")]),
            Value::table([("policy", "fifo"), ("nice", "0"), ("real_time_priority", "7")]),
            ContextStep::Scheduling { policy: 1, priority: 7, nice: 0 },
        ),
        ("tracer", Value::text("no"), Value::text("yes"), ContextStep::Traced),
        (
            "io_priority",
            Value::text("from nice"),
            Value::text("best effort 6"),
            ContextStep::IoPriority { value: 2 << 13 | 6 },
        ),
        (
            "personality",
            words(&[]),
            words(&["addresses are not randomised", "0x8000000"]),
            ContextStep::Personality { flags: 0x0804_0000 },
        ),
    ];
    for (factor, fast, slow, step) in cases {
        let (names, spec) = slow_steps(&context(&[(factor, fast)]), &context(&[(factor, slow)]));
        assert_eq!(names, [factor]);
        assert!(spec.context.contains(&step), "{factor}: {:?}", spec.context);
    }
}

#[test]
fn the_slack_of_a_real_time_thread_follows_from_its_policy() {
    let scheduling = |policy: &str| ("scheduling", Value::table([("policy", policy), ("nice", "0")]));
    let slack = |ns: i64| ("timer_slack_ns", Value::Number(ns));
    let fast = context(&[scheduling("other"), slack(50_000)]);
    let plan = plan(&fast, &context(&[scheduling("rr"), slack(0)]), &root(&fast));
    assert_eq!(plan.candidates.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["scheduling"]);
    assert_eq!(plan.follows[0].name, "timer_slack_ns");
    assert!(plan.remaining.is_empty());
}

#[test]
fn a_user_takes_his_capabilities_along_and_what_an_exec_would_not_give_stays() {
    let user = |id: &str| ("credentials", Value::table([("user", id), ("group", id), ("groups", "")]));
    let masks = |held: &str, bounding: &str| {
        let none = "0000000000000000";
        let parts = [
            ("inheritable", none),
            ("permitted", held),
            ("effective", held),
            ("bounding", bounding),
            ("ambient", none),
        ];
        ("capabilities", Value::table(parts))
    };
    let (all, none) = ("00000000000000ff", "0000000000000000");
    let fast = context(&[user("0"), masks(all, all)]);
    let plan = plan(&fast, &context(&[user("7"), masks(none, all)]), &root(&fast));
    assert_eq!(plan.candidates.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["credentials"]);
    assert_eq!(plan.follows[0].name, "capabilities");
    // Root without capabilities that its bounding set has: the program gave them up itself.
    let plan = super::plan(&fast, &context(&[user("0"), masks(none, all)]), &root(&fast));
    assert!(plan.candidates.is_empty() && plan.remaining[0].why.contains("changed them itself"), "{plan:?}");
    let plan = super::plan(&fast, &context(&[user("0"), masks("000000000000000f", "000000000000000f")]), &root(&fast));
    assert_eq!(plan.candidates[0].name, "capabilities");
    assert!(plan.candidates[0].irreversible);
}

#[test]
fn one_who_is_not_root_is_shown_what_it_takes() {
    let scheduling = |nice: &str| ("scheduling", Value::table([("policy", "other"), ("nice", nice)]));
    let user = |id: &str| ("credentials", Value::table([("user", id), ("group", id), ("groups", "")]));
    let (fast, slow) = (context(&[scheduling("0"), user("5")]), context(&[scheduling("-5"), user("6")]));
    let plan = plan(&fast, &slow, &Here { capabilities: 0, ..root(&fast) });
    assert!(plan.candidates.is_empty());
    assert!(plan.remaining.iter().all(|one| one.why.contains("root")), "{:?}", plan.remaining);
    assert_eq!(plan.remaining.len(), 2);
}

#[test]
fn processors_that_a_control_group_leaves_are_its_own_and_no_difference_beside_it() {
    let group = |list: &str| ("control_groups", Value::table([("cpuset.cpus", list)]));
    let affinity = |list: &str| ("affinity", Value::table([("cpus", list), ("mems", "0")]));
    let fast = context(&[group("0-3"), affinity("0-3")]);
    let plan = plan(&fast, &context(&[group("0"), affinity("0")]), &root(&fast));
    assert!(plan.follows.iter().any(|one| one.name == "affinity cpus"), "{plan:?}");
    // Nobody made the hierarchies up: that limit cannot be set, and says so.
    assert_eq!(plan.remaining.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["control_groups cpuset.cpus"]);
    let plan = super::plan(&fast, &context(&[group("0-3"), affinity("1")]), &root(&fast));
    assert_eq!(plan.candidates[0].name, "affinity cpus");
}

#[test]
fn a_limit_of_memory_above_that_of_the_callers_own_group_is_not_set() {
    for limit in ["memory.max", "memory.memsw.limit_in_bytes", "memory.high", "memory.swap.max"] {
        let group = |bytes: &str| context(&[("control_groups", Value::table([(limit, bytes)]))]);
        let why = |fast: &str, slow: &str| {
            let plan = plan(&group(fast), &group(slow), &root(&group("1048576")));
            plan.remaining.into_iter().map(|one| one.why).collect::<String>()
        };
        let (above, below) = (why("2097152", "4194304"), why("524288", "262144"));
        assert!(above.contains("a tighter limit"), "{limit}: {above}");
        assert!(!below.is_empty() && !below.contains("a tighter limit"), "{limit}: {below}");
    }
}

#[test]
fn library_paths_take_what_is_mapped_along() {
    let libraries = |names: &[&str]| ("loaded_libraries", Value::table(names.iter().map(|name| (*name, "x"))));
    let variables = |parts: &[(&'static str, &str)]| {
        ("environment", Value::table(parts.iter().map(|(name, value)| (*name, *value))))
    };
    let fast = context(&[variables(&[("bytes of all", "10")]), libraries(&["/a"])]);
    let slow = context(&[variables(&[("LD_PRELOAD", "/b"), ("bytes of all", "24")]), libraries(&["/a", "/b"])]);
    let plan = plan(&fast, &slow, &root(&fast));
    assert_eq!(plan.candidates.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["environment LD_PRELOAD"]);
    assert_eq!(
        plan.follows.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(),
        ["environment bytes of all", "loaded_libraries"]
    );
    // Other variables, which are not kept, are not explained by it.
    let slow = context(&[variables(&[("bytes of all", "99")]), libraries(&["/a", "/b"])]);
    let plan = super::plan(&fast, &slow, &root(&fast));
    assert!(plan.candidates.is_empty() && plan.follows.is_empty());
    assert_eq!(plan.remaining.len(), 2);
}

#[test]
fn every_factor_of_the_machine_stays_and_says_why() {
    for factor in factors::of(Scope::Machine) {
        assert!(matches!(factor.toggle, Toggle::Never(why) if why.contains("all programs")), "{factor:?}");
    }
}

/// Root who launches for user 5, and whom no option made trusting.
fn for_a_user(own: &Snapshot) -> Here {
    Here { user: Credentials { uid: 5, gid: 5, groups: vec![5] }, trusts: false, ..root(own) }
}

#[test]
fn a_filter_goes_with_no_new_privileges_unless_the_command_is_roots() {
    let filters = |count: &str, mode: &str| ("seccomp", Value::table([("mode", mode), ("filters", count)]));
    let (fast, slow) = (context(&[filters("0", "none")]), context(&[filters("1", "filter")]));
    let has_it = |here: &Here| {
        let plan = plan(&fast, &slow, here);
        let prepared = plan.prepare(&base()).unwrap();
        prepared.spec(&[Side::Slow]).unwrap().context.contains(&ContextStep::NoNewPrivileges)
    };
    assert!(has_it(&for_a_user(&fast)));
    assert!(!has_it(&root(&fast)));
}

#[test]
fn fewer_capabilities_for_the_set_uid_programs_of_a_user_go_with_no_new_privileges() {
    let user = ("credentials", Value::table([("user", "5"), ("group", "5"), ("groups", "5")]));
    let none = "0000000000000000";
    let masks = |bounding: &str, more: &str| {
        let parts = [
            ("inheritable", more),
            ("permitted", more),
            ("effective", more),
            ("bounding", bounding),
            ("ambient", more),
        ];
        ("capabilities", Value::table(parts))
    };
    let fast = context(&[user.clone(), masks("00000000000000ff", none)]);
    let fewer = context(&[user.clone(), masks("000000000000000f", none)]);
    let found = plan(&fast, &fewer, &for_a_user(&fast));
    let steps = found.prepare(&base()).unwrap().spec(&[Side::Slow]).unwrap().context;
    assert!(steps.contains(&ContextStep::NoNewPrivileges), "{steps:?}");
    // Ambient ones would be his.
    let more = context(&[user, masks("00000000000000ff", "0000000000000001")]);
    let found = plan(&fast, &more, &for_a_user(&fast));
    assert!(found.candidates.is_empty() && found.remaining[0].why.contains("--trust-context"), "{found:?}");
}

#[test]
fn what_a_stranger_says_of_a_variable_is_taken_only_where_it_is_harmless() {
    let variables = |parts: &[(&'static str, &str)]| {
        context(&[("environment", Value::table(parts.iter().map(|(name, value)| (*name, *value))))])
    };
    let own = variables(&[]);
    let slow = variables(&[("LD_PRELOAD", "/b"), ("MALLOC_PERTURB_", "7")]);
    let names = |slow: &Snapshot, here: &Here| {
        plan(&own.clone().launched(), slow, here).candidates.into_iter().map(|one| one.name).collect::<Vec<_>>()
    };
    let root = Here { trusts: false, ..root(&own) };
    for here in [&root, &for_a_user(&own)] {
        assert_eq!(names(&slow, here), ["environment MALLOC_PERTURB_"]);
        assert_eq!(names(&slow.clone().launched(), here), ["environment LD_PRELOAD", "environment MALLOC_PERTURB_"]);
    }
    let of = |uid| Snapshot { source: crate::Source::Process { uid: Some(uid) }, ..slow.clone() };
    assert_eq!((names(&of(5), &root).len(), names(&of(0), &root).len()), (1, 2));
    assert_eq!((names(&of(5), &for_a_user(&own)).len(), names(&of(0), &for_a_user(&own)).len()), (2, 1));
}
