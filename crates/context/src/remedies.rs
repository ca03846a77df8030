//! What can be done about a factor that makes a program slower, with its price: security, energy, fairness, or what it was set for.
//!
//! The one place for remedies of single factors; those of differences that follow from each other stand with their [`crate::chains`].

use crate::chains::Remedy;

/// What can be done about a part of a factor (`name` as in [`crate::Factor::name`], with the part behind it where there is one), the
/// least price first.
pub fn remedies(factor: &str, name: &str) -> Vec<Remedy> {
    let part = name.strip_prefix(factor).unwrap_or_default().trim();
    let found: &[(&str, &str)] = match factor {
        "seccomp" => &[
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
        ],
        "speculative_store_bypass" | "indirect_branch_speculation" => &[
            (
                "install seccomp filters with SECCOMP_FILTER_FLAG_SPEC_ALLOW, or do not ask for the restriction (PR_SET_SPECULATION_CTRL)",
                "security: code that runs in the process can read its memory by speculative execution",
            ),
            (
                "start the kernel with spec_store_bypass_disable=prctl and spectre_v2_user=prctl",
                "security: filters then restrict no program by themselves",
            ),
        ],
        "scheduling" => &[(
            "start it with the policy and the nice value of the fast context",
            "fairness: other processes get less CPU time",
        )],
        "autogroup" => &[(
            "start it in the session of the fast context, or write its nice value to /proc/PID/autogroup",
            "fairness: its session then gets more than others",
        )],
        "affinity" => {
            &[("allow it the CPUs of the fast context", "fairness: CPUs that were reserved for others no longer are")]
        }
        "utilization_clamp" => {
            &[("lift its upper bound of utilisation (uclamp.max)", "energy: the CPU runs at higher frequencies")]
        }
        "core_scheduling" => &[(
            "give it the cookie of the tasks that it may share a core with",
            "security: side channels of the shared core are open between them",
        )],
        "timer_slack_ns" => &[(
            "set its timer slack to that of the fast context (PR_SET_TIMERSLACK, or /proc/PID/timerslack_ns)",
            "energy: fewer wake-ups fall together, so CPUs sleep less",
        )],
        "io_priority" => &[(
            "start it with the class of the fast context (ionice)",
            "fairness: others wait longer for the same storage",
        )],
        "tracer" => &[("detach or end the tracer", "what the tracer was for")],
        "security_label" => &[(
            "change what follows from its label (the policy of the domain), not the label",
            "security: what the policy kept from the program",
        )],
        "no_new_privs" => &[("do not set it", "security: set-uid programs that it starts get their rights")],
        "credentials" => &[(
            "let the user read what it cannot: caches that another user wrote, each directory above them; or fill them as this user",
            "security: everyone who may read the files can; none where they hold no secrets",
        )],
        "capabilities" => {
            &[("give it the capability that it lacks", "security: an attacker who takes over the program has it too")]
        }
        "control_groups" => return control_groups(part),
        "environment" => return environment(part),
        "loaded_libraries" => {
            &[("load the libraries of the fast context", "what the other libraries were installed for")]
        }
        "file_systems" => &[(
            "move its files to the file system of the fast context",
            "what the other was chosen for: its size, its safety, its price",
        )],
        "huge_pages" | "machine_huge_pages" => &[(
            "allow it huge pages (PR_SET_THP_DISABLE off; madvise where the machine asks for it)",
            "memory: partly used huge pages are resident as a whole",
        )],
        "memory_policy" => {
            &[("take its memory from the nodes of the fast context", "fairness: those nodes have less for others")]
        }
        "limits" => &[("raise the limit", "what the limit protects: the memory and the CPUs of others")],
        "personality" => &[(
            "start it with the flags of the fast context (setarch)",
            "security, where addresses are no longer random; else none",
        )],
        "namespaces" => &[("start it in the namespaces of the fast context", "security: it sees and reaches more")],
        "audit" => &[("remove the audit rules that match it", "security: its calls are no longer logged")],
        "mitigations" | "kernel_parameters" => &[(
            "start the kernel with the mitigations of the fast machine",
            "security: other programs and guests can read its memory by speculative execution",
        )],
        "cpufreq" => &[("set the governor of the fast machine", "energy")],
        _ => &[],
    };
    found.iter().map(|(what, price)| remedy(what, price)).collect()
}

fn remedy(what: &str, price: &str) -> Remedy {
    Remedy { what: what.to_owned(), price: price.to_owned() }
}

fn control_groups(part: &str) -> Vec<Remedy> {
    let has = |words: &[&str]| words.iter().any(|word| part.contains(word));
    vec![if has(&["quota", "cpu.max", "cfs"]) {
        remedy(
            "raise the quota of its cgroup (cpu.max, cpu.cfs_quota_us), or limit its threads to the number of CPUs in the quota",
            "fairness: others on these CPUs get less",
        )
    } else if has(&["weight", "shares"]) {
        remedy("raise the weight of its cgroup", "fairness: sibling cgroups get less")
    } else if has(&["cpuset", "processors", "nodes"]) {
        remedy("allow its cgroup more CPUs or nodes", "fairness: CPUs that were reserved for others no longer are")
    } else if has(&["memory", "swap"]) {
        remedy("raise the memory limit of its cgroup", "memory: others on the machine have less")
    } else if has(&["io", "blkio"]) {
        remedy("raise the I/O limit of its cgroup", "fairness: others wait longer for the same storage")
    } else {
        remedy("give its cgroup the limits of the fast one", "fairness: others on the machine get less")
    }]
}

fn environment(part: &str) -> Vec<Remedy> {
    let price = match part {
        "MALLOC_PERTURB_" | "MALLOC_CHECK_" => "fewer uninitialised reads and use-after-frees are caught",
        "LD_PRELOAD" | "LD_AUDIT" => "what the library was loaded for",
        "GLIBC_TUNABLES" => "what the setting is for: mostly memory that is freed sooner",
        "LD_BIND_NOW" => "security: the table of addresses can be written to while the program runs",
        _ => "what the variable was set for",
    };
    let name = if part.is_empty() { "the variables that differ" } else { part };
    vec![remedy(&format!("start the program with the value of {name} of the fast context"), price)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::factors;

    #[test]
    fn every_remedy_has_a_price_and_belongs_to_a_factor_that_there_is() {
        for factor in &factors::ALL {
            assert!(remedies(factor.name, factor.name).iter().all(|one| !one.what.is_empty() && !one.price.is_empty()));
        }
        assert!(remedies("no such factor", "").is_empty());
    }

    #[test]
    fn parts_have_remedies_of_their_own() {
        let first = |factor: &str, name: &str| remedies(factor, name).remove(0);
        assert!(first("control_groups", "control_groups cpu.max").what.contains("quota"));
        assert!(first("control_groups", "control_groups memory.high").price.starts_with("memory"));
        assert!(first("environment", "environment LD_PRELOAD").what.contains("LD_PRELOAD"));
        assert!(first("seccomp", "seccomp").price.starts_with("work"));
    }
}
