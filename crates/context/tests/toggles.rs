//! Each factor that can be applied here, applied alone: the launch reads as the other context in it, and in nothing else differently.

mod launched;

use launched::{command, launcher};
use slowpath_context::toggles::Side;
use slowpath_context::{Here, Plan, Snapshot, differences};
use slowpath_launch::{BoxError, Hooks, LaunchSpec, Launcher};
use std::path::Path;
use std::sync::Mutex;

/// Control groups and the machine's CPUs are one for all tests.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn one_processor() -> bool {
    std::thread::available_parallelism().is_ok_and(|count| count.get() == 1)
}

/// As the caller sees it.
fn planned(fast: &Snapshot, slow: &Snapshot) -> Plan {
    slowpath_context::plan(fast, slow, &Here::now().unwrap())
}

/// The context of a launch, once the command sleeps.
fn read(spec: &LaunchSpec) -> Snapshot {
    let mut look = Look { pid: 0, context: None };
    launcher().launch(spec, &mut look).unwrap();
    look.context.unwrap_or_else(|| panic!("{spec:?} was not read"))
}

struct Look {
    pid: u32,
    context: Option<Snapshot>,
}

impl Hooks for Look {
    fn before_release(&mut self, pid: i32) -> Result<(), BoxError> {
        self.pid = u32::try_from(pid)?;
        Ok(())
    }

    fn on_tick(&mut self) {
        // Once: it is ended then.
        if self.context.is_some() {
            return;
        }
        let file = |pid: u32, name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
        // A wrapper may start it as a child of its own.
        let children = file(self.pid, &format!("task/{}/children", self.pid));
        let ours = children.split_whitespace().filter_map(|pid| pid.parse().ok());
        let sleeping = std::iter::once(self.pid).chain(ours).find(|pid| {
            let call = file(*pid, "syscall");
            // Neither the wait of a shell nor one on the way to main, with a part of its libraries mapped.
            let number = call.split(' ').next().and_then(|number| number.parse().ok());
            file(*pid, "comm").trim() == "sleep" && number == Some(libc::SYS_clock_nanosleep)
        });
        if let Some(pid) = sleeping {
            let Ok(mut context) = Snapshot::of_process(pid) else { return };
            context.read_filters();
            context.examine_loaded_libraries();
            self.context = Some(context.launched());
        }
    }

    fn stop_requested(&self) -> bool {
        self.context.is_some()
    }
}

/// What surrounds the command when it is started by this program (a wrapper, as the user would write it).
fn context_of(wrapper: &[&str]) -> Snapshot {
    let mut spec = command();
    spec.wrapper = wrapper.iter().map(Into::into).collect();
    read(&spec)
}

/// Factors (and parts) in which two contexts differ for good.
fn different(a: &Snapshot, b: &Snapshot) -> Vec<String> {
    let found = differences(a, b).different.into_iter().filter(|one| !one.of_the_moment);
    let mut names: Vec<String> = found
        .flat_map(|one| {
            let factor = one.factor.clone();
            one.parts.into_iter().map(move |part| match part.name {
                Some(name) => format!("{factor} {name}"),
                None => factor.clone(),
            })
        })
        .collect();
    names.sort();
    names.dedup();
    names
}

/// What a reading shows besides where a candidate is set alone: what follows from it.
fn follows(name: &str, seen: &str) -> bool {
    let factor = name.split(' ').next().unwrap_or_default();
    seen.split(' ').next() == Some(factor)
        // The name of a part of another factor that comes with it.
        || match name {
            name if name.starts_with("environment LD_") => seen == "environment bytes of all" || seen.starts_with("loaded_libraries"),
            "control_groups cpuset.cpus" => seen == "affinity cpus",
            // Launches of another user, and then all, have a session of their own, each another.
            "credentials" => seen.starts_with("capabilities") || seen == "autogroup group",
            _ => false,
        }
}

/// Launches with all sides fast, and with each candidate slow alone; returns the names of the candidates.
fn each_alone(plan: &Plan, base: &LaunchSpec, slow: &Snapshot) -> Vec<String> {
    let prepared = plan.prepare(base).unwrap();
    let all = |side: Side| vec![side; plan.candidates.len()];
    let fast = read(&prepared.spec(&all(Side::Fast)).unwrap());
    for (index, candidate) in plan.candidates.iter().enumerate() {
        let mut sides = all(Side::Fast);
        sides[index] = Side::Slow;
        let toggled = read(&prepared.spec(&sides).unwrap());
        let seen = different(&fast, &toggled);
        assert!(!seen.is_empty(), "{candidate:?} changes nothing");
        assert!(seen.iter().all(|seen| follows(&candidate.name, seen)), "{}: {seen:?}", candidate.name);
        let part = candidate.name.split_once(' ').map(|(_, part)| part);
        let value = |context: &Snapshot| {
            let value = context.reading(candidate.factor).and_then(|reading| reading.value().cloned());
            match part {
                Some(part) => value.and_then(|value| value.part(part).map(str::to_owned)),
                None => value.map(|value| format!("{value:?}")),
            }
        };
        if !["autogroup", "core_scheduling"].contains(&candidate.factor) {
            assert_eq!(value(&toggled), value(slow), "{}", candidate.name);
        }
        // And back.
        let mut sides = all(Side::Slow);
        sides[index] = Side::Fast;
        prepared.spec(&sides).unwrap();
    }
    let everything = read(&prepared.spec(&all(Side::Slow)).unwrap());
    let left = plan_names(&planned(&everything, slow));
    let own_session = plan.candidate("credentials").is_some();
    let left: Vec<_> = left.into_iter().filter(|name| !(own_session && name == "autogroup")).collect();
    assert_eq!(left, [] as [String; 0], "all together read as the slow context");
    plan.candidates.iter().map(|one| one.name.clone()).collect()
}

fn plan_names(plan: &Plan) -> Vec<String> {
    plan.candidates.iter().map(|one| one.name.clone()).collect()
}

fn is_root() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        println!("skipped: needs root");
    }
    root
}

fn has(program: &str) -> bool {
    let there = Path::new(program).exists();
    if !there {
        println!("skipped: {program} is not installed");
    }
    there
}

/// The plan between the plain command and one behind a wrapper, with the candidates that it must have.
fn check(wrapper: &[&str], names: &[&str]) {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let (fast, slow) = (context_of(&[]), context_of(wrapper));
    let plan = planned(&fast, &slow);
    assert_eq!(plan_names(&plan), names, "{:?} {:?}", plan.remaining, plan.follows);
    assert!(plan.remaining.is_empty(), "{:?}", plan.remaining);
    assert!(plan.common.is_empty() && plan.lacking.is_empty(), "{:?} {:?}", plan.common, plan.lacking);
    each_alone(&plan, &command(), &slow);
    // The other way round as well.
    let back = planned(&slow, &fast);
    assert_eq!(plan_names(&back), names);
    each_alone(&back, &command(), &fast);
}

#[test]
fn variables_are_toggled_one_by_one_and_the_size_follows() {
    check(
        &["/usr/bin/env", "MALLOC_PERTURB_=1", "LANG=de_DE.UTF-8", "GLIBC_TUNABLES=glibc.malloc.arena_max=1"],
        &["environment GLIBC_TUNABLES", "environment LANG", "environment MALLOC_PERTURB_"],
    );
}

#[test]
fn nice_values_are_toggled() {
    check(&["/usr/bin/nice", "-n", "5"], &["scheduling"]);
}

#[test]
fn policies_io_priority_and_addresses_are_toggled() {
    if has("/usr/bin/chrt") {
        check(&["/usr/bin/chrt", "--idle", "0"], &["scheduling"]);
    }
    if has("/usr/bin/ionice") {
        check(&["/usr/bin/ionice", "-c", "3"], &["io_priority"]);
    }
    if has("/usr/bin/setarch") {
        check(&["/usr/bin/setarch", "-R"], &["personality"]);
    }
    if has("/usr/bin/taskset") && !one_processor() {
        check(&["/usr/bin/taskset", "1"], &["affinity cpus"]);
    }
}

#[test]
fn limits_are_toggled_one_by_one() {
    check(&["/usr/bin/prlimit", "--stack=4194304", "--nofile=200:300"], &["limits open_files", "limits stack_size"]);
}

#[test]
fn the_working_directory_is_toggled() {
    check(&["/usr/bin/env", "-C", "/dev/shm"], &["file_systems working_directory"]);
}

#[test]
fn sessions_are_toggled_where_they_are_grouped() {
    let enabled = std::fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled").unwrap_or_default();
    if enabled.trim() != "1" || !has("/usr/bin/setsid") {
        println!("skipped: no autogroups");
        return;
    }
    check(&["/usr/bin/setsid", "--wait"], &["autogroup"]);
}

/// What there is no program for.
const PREPARED: &str = "
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
what, command = sys.argv[1], sys.argv[2:]
def done(result):
    if result < 0: raise OSError(ctypes.get_errno(), what)
if what == 'slack': done(libc.prctl(29, 777000, 0, 0, 0))
if what == 'thp': done(libc.prctl(41, 1, 0, 0, 0))
if what in ('privileges', 'filters'): done(libc.prctl(38, 1, 0, 0, 0))
if what == 'filters':
    import struct
    program = b''.join(struct.pack('HBBI', *one) for one in [(0x20, 0, 0, 16), (0x15, 0, 0, 77), (0x06, 0, 0, 0x7fff0000)])
    buffer = ctypes.create_string_buffer(program)
    class Program(ctypes.Structure):
        _fields_ = [('length', ctypes.c_ushort), ('filter', ctypes.c_void_p)]
    given = Program(3, ctypes.addressof(buffer))
    for _ in range(3): done(libc.syscall(317, 1, 4, ctypes.byref(given)))
# Python sets it for itself where there is no language.
os.environ.pop('LC_CTYPE', None)
os.execv(command[0], command)
";

fn prepared(what: &'static str) -> Vec<&'static str> {
    vec!["/usr/bin/python3", "-c", PREPARED, what]
}

#[test]
fn slack_and_huge_pages_are_toggled() {
    // The kernel tells the slack of another process to administrators only (fs/proc/base.c, timerslack_ns_show).
    if is_root() {
        check(&prepared("slack"), &["timer_slack_ns"]);
    }
    check(&prepared("thp"), &["huge_pages"]);
}

#[test]
fn privileges_and_filters_are_toggled_apart_where_the_caller_is_root() {
    check_irreversible(&prepared("privileges"), &["no_new_privs"]);
    if cfg!(target_arch = "x86_64") && is_root() {
        check_irreversible(&prepared("filters"), &["seccomp", "no_new_privs"]);
    }
}

fn check_irreversible(wrapper: &[&str], names: &[&str]) {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let (fast, slow) = (context_of(&[]), context_of(wrapper));
    let plan = planned(&fast, &slow);
    assert_eq!(plan_names(&plan), names, "{:?}", plan.remaining);
    assert!(plan.candidates.iter().all(|one| one.irreversible));
    each_alone(&plan, &command(), &slow);
}

#[test]
fn filters_are_put_on_as_they_were_read_and_else_others_as_many() {
    if !cfg!(target_arch = "x86_64") || !is_root() {
        return;
    }
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let (fast, slow) = (context_of(&[]), context_of(&prepared("filters")));
    let programs: Vec<usize> = slow.filters.iter().flatten().map(slowpath_context::Filter::instructions).collect();
    assert_eq!(programs, [3, 3, 3]);
    let of = |slow: &Snapshot| {
        let plan = planned(&fast, slow);
        let seccomp = plan.candidate("seccomp").unwrap();
        let mut sides = vec![Side::Fast; plan.candidates.len()];
        sides[seccomp] = Side::Slow;
        let prepared = plan.prepare(&command()).unwrap();
        (plan.candidates[seccomp].slow.clone(), read(&prepared.spec(&sides).unwrap()))
    };
    let (words, toggled) = of(&slow);
    assert!(words.contains("programs of 3, 3, 3 instructions"), "{words}");
    assert_eq!(toggled.filters, slow.filters);
    let unread = Snapshot { filters: None, ..slow.clone() };
    let (words, toggled) = of(&unread);
    assert!(words.contains("3 of slowpath's own in their place"), "{words}");
    assert_eq!(toggled.filters.unwrap().len(), 3);
}

#[test]
fn users_are_toggled_and_their_capabilities_follow() {
    if is_root() && has("/usr/bin/setpriv") {
        check(&["/usr/bin/setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"], &["credentials"]);
    }
}

#[test]
fn capabilities_are_toggled() {
    if is_root() && has("/usr/bin/setpriv") {
        check_irreversible(&["/usr/bin/setpriv", "--bounding-set", "-sys_nice"], &["capabilities"]);
    }
}

#[test]
fn a_tracer_is_toggled() {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let fast = context_of(&[]);
    let mut spec = command();
    spec.context = vec![slowpath_launch::ContextStep::Traced];
    let slow = read(&spec);
    let plan = planned(&fast, &slow);
    assert_eq!(plan_names(&plan), ["tracer"], "{:?}", plan.remaining);
    each_alone(&plan, &command(), &slow);
}

#[test]
fn limits_of_control_groups_are_toggled_one_by_one_and_their_groups_go() {
    if !is_root() {
        return;
    }
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let fast = context_of(&[]);
    let mut slow = fast.clone();
    let part = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut limits = match slow.process["control_groups"].value().cloned() {
        Some(slowpath_context::Value::Table(parts)) => parts,
        other => panic!("{other:?}"),
    };
    limits.extend([part("cpu.max", "20.0 % of a CPU"), part("processor_period_us", "50000")]);
    limits.extend([part("memory.max", "268435456")]);
    let mut expected = vec!["control_groups cpu.max", "control_groups cpu.weight"];
    let is_unified = has_in_version_2(&["cpu", "memory"]);
    limits.extend(match is_unified {
        true => vec![part("cpu.weight", "weight 1"), part("memory.high", "134217728")],
        false => vec![part("cpu.weight", "shares 2")],
    });
    let several = limits.get("cpuset.cpus").is_some_and(|list| list.contains(['-', ',']));
    if several {
        limits.extend([part("cpuset.cpus", "0")]);
        expected.push("control_groups cpuset.cpus");
    }
    expected.push("control_groups memory.max");
    expected.extend(is_unified.then_some("control_groups memory.high"));
    slow.process.insert(
        "control_groups".to_owned(),
        slowpath_context::Reading::Known { value: slowpath_context::Value::Table(limits) },
    );
    let plan = planned(&fast, &slow);
    let names = plan_names(&plan);
    if names.is_empty()
        && plan
            .remaining
            .iter()
            .all(|one| one.why.contains("no hierarchy") || one.why.contains("cannot create a cgroup"))
    {
        println!("skipped: {:?}", plan.remaining);
        return;
    }
    let fast_but = |index: usize| {
        let mut sides = vec![Side::Fast; expected.len()];
        sides[index] = Side::Slow;
        sides
    };
    assert_eq!(names, expected, "{:?}", plan.remaining);
    let prepared = plan.prepare(&command()).unwrap();
    let spec = prepared.spec(&vec![Side::Slow; expected.len()]).unwrap();
    let groups: Vec<_> = spec.cgroups.iter().map(|file| file.parent().unwrap().to_owned()).collect();
    assert!(groups.iter().all(|group| group.is_dir()), "{groups:?}");
    let read_of = |sides: &[Side]| read(&prepared.spec(sides).unwrap());
    let value = |context: &Snapshot, part: &str| {
        context.reading("control_groups").and_then(|one| one.value()).and_then(|one| one.part(part)).map(str::to_owned)
    };
    let free = read_of(&vec![Side::Fast; expected.len()]);
    for (index, name) in expected.iter().enumerate() {
        let toggled = read_of(&fast_but(index));
        let part = name.split_once(' ').unwrap().1;
        assert_eq!(value(&toggled, part), value(&slow, part), "{name}");
        let seen = different(&free, &toggled);
        let its_own = |seen: &String| {
            let comes_with = match *name {
                "control_groups cpu.max" => "control_groups processor_period_us",
                "control_groups cpuset.cpus" => "affinity cpus",
                _ => "",
            };
            seen == name || seen == comes_with
        };
        assert!(seen.iter().all(its_own), "{name}: {seen:?}");
    }
    // What the group counted comes with the launch.
    let mut busy = prepared.spec(&fast_but(0)).unwrap();
    busy.argv = ["/bin/sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"].map(Into::into).into();
    let outcome = launcher().launch(&busy, &mut slowpath_launch::NoHooks).unwrap();
    let measures = slowpath_launch::measures(&outcome);
    assert!(measures[&slowpath_launch::Metric::ThrottledPeriods] >= 1.0, "{measures:?}");
    drop(prepared);
    assert!(groups.iter().all(|group| !group.exists()), "{groups:?}");
}

/// Whether version 2 has these controllers.
fn has_in_version_2(controllers: &[&str]) -> bool {
    let text = unified().and_then(|(root, _)| std::fs::read_to_string(root.join("cgroup.controllers")).ok());
    let text = text.unwrap_or_default();
    controllers.iter().all(|wanted| text.split_whitespace().any(|one| one == *wanted))
}

/// Where the unified hierarchy is, and what stands in its root's `cgroup.subtree_control`.
fn unified() -> Option<(std::path::PathBuf, String)> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    let place = mounts.lines().find_map(|line| {
        let mut words = line.split(' ');
        let (_, place, kind) = (words.next()?, words.next()?, words.next()?);
        (kind == "cgroup2").then(|| std::path::PathBuf::from(place))
    })?;
    let controls = std::fs::read_to_string(place.join("cgroup.subtree_control")).ok()?;
    Some((place, controls))
}

#[test]
fn a_limit_of_version_2_is_toggled_with_a_controller_that_version_1_does_not_hold() {
    let Some((root, before)) = unified().filter(|_| is_root()) else {
        println!("skipped: no hierarchy of version 2 is mounted, or no root");
        return;
    };
    let sizes = std::fs::read_dir("/sys/kernel/mm/hugepages").into_iter().flatten().flatten();
    let is_2_mib = |entry: &std::fs::DirEntry| entry.file_name() == "hugepages-2048kB";
    if !has_in_version_2(&["hugetlb"]) || !sizes.into_iter().any(|entry| is_2_mib(&entry)) {
        println!("skipped: huge pages of 2 MiB are not limited by version 2 here");
        return;
    }
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let fast = context_of(&[]);
    let mut slow = fast.clone();
    if let Some(slowpath_context::Reading::Known { value: slowpath_context::Value::Table(parts) }) =
        slow.process.get_mut("control_groups")
    {
        parts.insert("huge_page_limit 2MB".to_owned(), "4194304".to_owned());
    }
    let plan = planned(&fast, &slow);
    assert_eq!(plan_names(&plan), ["control_groups huge_page_limit 2MB"], "{:?}", plan.remaining);
    each_alone(&plan, &command(), &slow);
    let prepared = plan.prepare(&command()).unwrap();
    let groups = prepared.spec(&[Side::Slow]).unwrap().cgroups;
    assert!(groups.iter().all(|file| file.starts_with(&root) && file.exists()), "{groups:?}");
    drop(prepared);
    assert!(groups.iter().all(|file| !file.exists()));
    assert_eq!(unified().unwrap().1, before, "the root's controllers are as they were");
}

#[test]
fn what_cannot_be_applied_says_why_and_is_no_candidate() {
    let fast = context_of(&[]);
    let mut slow = fast.clone();
    let text = |text: &str| slowpath_context::Reading::Known { value: slowpath_context::Value::text(text) };
    slow.machine.insert("selinux".to_owned(), text("enforcing"));
    slow.threads[0].factors.insert("speculative_store_bypass".to_owned(), text("globally mitigated"));
    slow.process.insert("pressure".to_owned(), text("high"));
    let plan = planned(&fast, &slow);
    assert_eq!(plan_names(&plan), [] as [String; 0]);
    assert!(plan.remaining.iter().all(|one| !one.why.is_empty()), "{:?}", plan.remaining);
    let names: Vec<&str> = plan.remaining.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["speculative_store_bypass", "selinux"]);
    assert!(plan.remaining[1].why.contains("all programs of a machine"));
}

#[test]
fn what_both_have_and_the_caller_has_not_is_applied_too() {
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let context = context_of(&["/usr/bin/nice", "-n", "3", "/usr/bin/env", "-u", "LANG", "MALLOC_ARENA_MAX=1"]);
    let plan = planned(&context, &context);
    assert!(plan.candidates.is_empty() && plan.remaining.is_empty());
    assert_eq!(plan.common.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["scheduling"]);
    let mut base = command();
    base.env.push(("LANG".into(), "C".into()));
    base.env.push(("SECRET".into(), "kept".into()));
    let prepared = plan.prepare(&base).unwrap();
    let spec = prepared.spec(&[]).unwrap();
    let names: Vec<&str> = spec.env.iter().filter_map(|(name, _)| name.to_str()).collect();
    assert!(names.contains(&"MALLOC_ARENA_MAX") && names.contains(&"SECRET") && !names.contains(&"LANG"), "{names:?}");
    assert!(prepared.spec(&[Side::Fast]).is_err());
    let seen: Vec<String> = different(&context, &read(&spec));
    assert_eq!(seen, ["environment bytes of all"]);
}
