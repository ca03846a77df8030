//! Contexts that were saved on other machines: what differs, and which chains are known, by what the threads' own status says.

use slowpath_context::chains::Side;
use slowpath_context::{Reading, Snapshot, Value, Weight, chains, differences};
use std::path::{Path, PathBuf};

fn saved(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/saved").join(name)
}

fn snapshot(name: &str) -> Snapshot {
    Snapshot::of_directory(&saved(name)).unwrap()
}

fn pair(kernel: &str) -> (Snapshot, Snapshot) {
    (snapshot(&format!("{kernel}/app")), snapshot(&format!("{kernel}/shell")))
}

fn factors_of_chain(kernel: &str) -> Vec<String> {
    let (app, shell) = pair(kernel);
    let found = chains(&app, &shell);
    assert_eq!(found.len(), 1, "{kernel}: {found:?}");
    assert_eq!(found[0].slower, Side::A);
    // The same told the other way round.
    assert_eq!(chains(&shell, &app)[0].slower, Side::B);
    found[0].links.iter().map(|link| link.factor.clone()).collect()
}

#[test]
fn an_app_with_a_filter_that_forces_mitigations_is_told_from_its_twin_in_both_spellings() {
    let whole = ["selinux", "seccomp", "speculative_store_bypass", "indirect_branch_speculation"];
    assert_eq!(factors_of_chain("linux-5.15"), whole);
    assert_eq!(factors_of_chain("linux-5.4-other-spelling"), whole);
    assert_eq!(factors_of_chain("linux-4.19"), ["selinux", "seccomp", "speculative_store_bypass"]);
}

#[test]
fn remedies_have_a_price_and_name_the_parameters_that_concern_what_was_seen() {
    let (app, shell) = pair("linux-5.15");
    let chain = chains(&app, &shell).remove(0);
    assert!(chain.remedies.iter().all(|remedy| remedy.price.starts_with("security: ")), "{chain:?}");
    assert!(chain.remedies[0].what.contains("SECCOMP_FILTER_FLAG_SPEC_ALLOW"));
    assert!(chain.remedies[2].what.contains("spec_store_bypass_disable=off spectre_v2_user=off"));
    assert!(chain.cost.contains("10 %") && !chain.sources.is_empty());
    let (app, shell) = pair("linux-4.19");
    let chain = chains(&app, &shell).remove(0);
    assert!(!chain.remedies[2].what.contains("spectre_v2_user"), "{chain:?}");
}

#[test]
fn where_nothing_is_forced_there_is_no_chain_whatever_the_release_says() {
    for kernel in ["linux-6.1", "linux-5.15-carried-back", "linux-5.15-permissive", "own-choice"] {
        let (app, shell) = pair(kernel);
        assert_eq!(chains(&app, &shell), [], "{kernel}");
    }
}

#[test]
fn differences_are_told_with_what_is_known_to_matter_most_first() {
    let (app, shell) = pair("linux-5.15");
    let found = differences(&app, &shell);
    let names: Vec<&str> = found.different.iter().map(|one| one.factor.as_str()).collect();
    for factor in ["seccomp", "speculative_store_bypass", "indirect_branch_speculation"] {
        let place = names.iter().position(|name| *name == factor).unwrap_or(usize::MAX);
        assert!(place < 3, "{factor} stands at {place} of {names:?}");
        assert_eq!(found.different[place].known.weight, Weight::Heavy);
    }
    assert!(names.contains(&"credentials") && names.contains(&"security_label") && names.contains(&"no_new_privs"));
    assert!(
        found.same.contains(&"kernel".to_owned()) && found.same.contains(&"affinity".to_owned()),
        "{:?}",
        found.same
    );
    assert!(found.unavailable.iter().any(|gap| gap.what == "environment" && gap.reason.contains("first context")));
    assert!(found.different.iter().all(|one| !one.known.cost.is_empty() && !one.known.source.is_empty()));
}

#[test]
fn a_context_differs_in_nothing_from_itself() {
    let (app, _) = pair("linux-5.15");
    assert_eq!(differences(&app, &app).different, []);
    assert_eq!(chains(&app, &app), []);
}

fn value(snapshot: &Snapshot, factor: &str) -> Value {
    snapshot
        .reading(factor)
        .and_then(Reading::value)
        .cloned()
        .unwrap_or_else(|| panic!("{:?}", snapshot.reading(factor)))
}

#[test]
fn the_tightest_limit_of_all_levels_counts_in_both_versions_of_control_groups() {
    let limits = value(&snapshot("cgroup-v2/limited"), "control_groups");
    assert_eq!(limits.part("cpu.max"), Some("20.0 % of a CPU"));
    assert_eq!(limits.part("memory.max"), Some("536870912"));
    assert_eq!(limits.part("cpu.weight"), Some("weight 100 > 50"));
    assert_eq!(limits.part("memory.high"), None);
    let free = value(&snapshot("cgroup-v2/free"), "control_groups");
    assert_eq!((free.part("cpu.max"), free.part("memory.max")), (Some("150.0 % of a CPU"), None));
    assert_eq!(free.part("cpuset.cpus"), Some("0-3"), "of the group above, which has the controller");
    let old = value(&snapshot("cgroup-v1/limited"), "control_groups");
    assert_eq!(old.part("cpu.max"), Some("50.0 % of a CPU"));
    assert_eq!(old.part("cpu.weight"), Some("shares 1024 > 512"));
    assert_eq!((old.part("memory.max"), old.part("cpuset.cpus")), (Some("1073741824"), Some("0-3")));
}

#[test]
fn pressure_is_a_state_of_the_moment_and_stands_last() {
    let (free, mut limited) = (snapshot("cgroup-v2/free"), snapshot("cgroup-v2/limited"));
    assert_eq!(value(&free, "pressure").part("cpu"), Some("12.50"));
    let calm = Reading::Known { value: Value::table([("cpu", "0.00"), ("io", "0.00"), ("memory", "0.00")]) };
    limited.process.insert("pressure".to_owned(), calm);
    let found = differences(&free, &limited);
    assert!(found.different.last().is_some_and(|one| one.factor == "pressure" && one.of_the_moment), "{found:?}");
    assert_eq!(found.different[0].factor, "control_groups");
}

#[test]
fn namespaces_of_two_machines_are_not_compared() {
    let (app, mut shell) = pair("linux-5.15");
    shell.boot = Some("another".to_owned());
    let found = differences(&app, &shell);
    assert!(found.unavailable.iter().any(|gap| gap.what == "namespaces" && gap.reason.contains("two machines")));
}

#[test]
fn what_is_no_saved_context_is_refused_with_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let error = Snapshot::of_directory(directory.path()).unwrap_err().to_string();
    assert!(error.contains("holds no status"), "{error}");
    for pid in ["1", "2"] {
        std::fs::create_dir_all(directory.path().join("proc").join(pid)).unwrap();
    }
    let error = Snapshot::of_directory(directory.path()).unwrap_err().to_string();
    assert!(error.contains("several processes: 1, 2"), "{error}");
}

#[test]
fn any_text_in_the_files_is_read_without_a_panic() {
    let directory = tempfile::tempdir().unwrap();
    let texts = [
        "",
        "\n",
        ":",
        "Seccomp:\nUid:\t\n",
        "\u{fffd}\0\0=",
        "a b c d e f g h",
        "4:cpu:/x\n::\n0::",
        "- - - -",
        "9223372036854775808",
    ];
    for text in texts {
        for file in
            ["stat", "cgroup", "mountinfo", "limits", "environ", "maps", "autogroup", "personality", "attr/current"]
        {
            let path = directory.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        std::fs::write(directory.path().join("status"), format!("Name:\tx\n{text}")).unwrap();
        let mut snapshot = Snapshot::of_directory(directory.path()).unwrap();
        snapshot.examine_loaded_libraries();
        assert_eq!(differences(&snapshot, &snapshot).different, []);
        let told = serde_json::to_string(&snapshot).unwrap();
        assert_eq!(serde_json::from_str::<Snapshot>(&told).unwrap(), snapshot);
    }
}

#[test]
fn differences_from_another_machine_are_candidates_or_say_why_not() {
    for kernel in ["linux-5.15", "linux-5.4-other-spelling", "linux-4.19", "linux-6.1", "own-choice"] {
        let (app, shell) = pair(kernel);
        let plan = slowpath_context::plan(&shell, &app, &slowpath_context::Here::now().unwrap());
        assert!(plan.candidates.iter().all(|one| !one.counters.is_empty() && one.fast != one.slow), "{plan:?}");
        let told = plan.remaining.iter().chain(&plan.follows).chain(&plan.lacking);
        assert!(told.clone().all(|one| !one.why.is_empty()), "{plan:?}");
        // Everything that differs and lasts is reported once at least.
        let named = |factor: &str| {
            let mut names = plan.candidates.iter().map(|one| &one.name).chain(told.clone().map(|one| &one.name));
            names.any(|name| name.split(' ').next() == Some(factor))
        };
        for one in differences(&shell, &app).different {
            assert!(named(&one.factor), "{kernel}: {} is not told", one.factor);
        }
    }
}

/// As people publish it: one `/proc/PID/status` of the app, one of the shell, in the spellings of the kernels.
#[test]
fn two_status_files_alone_tell_the_chain_where_the_threads_say_so_and_only_there() {
    let of = |kernel: &str, seccomp: &str, store: &str, branch: &str| {
        let branch = if branch.is_empty() { String::new() } else { format!("{branch}\n") };
        let text = format!(
            "Name:\tbench\nState:\tR (running)\nPid:\t7\nUid:\t10123\t10123\t10123\t10123\nNoNewPrivs:\t0\nSeccomp:\t{seccomp}\n\
             Speculation_Store_Bypass:\t{store}\n{branch}Cpus_allowed:\tff\n"
        );
        Snapshot::of_status(text, kernel.to_owned()).unwrap()
    };
    let forced = "thread force mitigated";
    // (kernel, branch of the app, branch of the shell)
    for (kernel, app_branch, shell_branch) in [
        ("4.14", "", ""),
        (
            "5.4",
            "Speculation_Indirect_Branch:\tconditional force disabled",
            "Speculation_Indirect_Branch:\tconditional enabled",
        ),
        (
            "5.15",
            "SpeculationIndirectBranch:\tconditional force disabled",
            "SpeculationIndirectBranch:\tconditional enabled",
        ),
    ] {
        let found = chains(&of(kernel, "2", forced, app_branch), &of(kernel, "0", "thread vulnerable", shell_branch));
        assert_eq!(found.len(), 1, "{kernel}: {found:?}");
        assert_eq!(found[0].links.len(), if app_branch.is_empty() { 2 } else { 3 }, "{kernel}");
        assert_eq!(found[0].slower, Side::A);
    }
    // 6.x: a filter, and the thread says that nothing was forced.
    let free = "SpeculationIndirectBranch:\tconditional enabled";
    assert_eq!(chains(&of("6.6", "2", "thread vulnerable", free), &of("6.6", "0", "thread vulnerable", free)), []);
    assert!(Snapshot::of_status("nothing\n".to_owned(), "x".to_owned()).is_err());
}
