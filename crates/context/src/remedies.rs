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
                "decide most system calls with few instructions, and put one filter in place of several: the kernel runs all of them, and \
                 caches a call that is allowed whatever its arguments are",
                "work: the filters must be written again",
            ),
            (
                "install the filter with SECCOMP_FILTER_FLAG_SPEC_ALLOW, where it also restricts speculation",
                "security: the process can be read by code that runs in it, through the CPU's guesses",
            ),
            ("run without the filter", "security: every system call is open to whoever takes the program over"),
        ],
        "speculative_store_bypass" | "indirect_branch_speculation" => &[
            (
                "install system call filters with SECCOMP_FILTER_FLAG_SPEC_ALLOW, or do not ask for the restriction (PR_SET_SPECULATION_CTRL)",
                "security: the process can be read by code that runs in it, through the CPU's guesses",
            ),
            (
                "start the kernel with spec_store_bypass_disable=prctl and spectre_v2_user=prctl",
                "security: no filter restricts any program by itself then",
            ),
        ],
        "scheduling" => &[(
            "start it with the policy and the nice value of the fast context",
            "fairness: whoever runs beside it gets less of the CPUs",
        )],
        "autogroup" => &[(
            "start it in the session of the fast context, or write its nice value to /proc/PID/autogroup",
            "fairness: its session then gets more than others",
        )],
        "affinity" => &[("allow it the CPUs of the fast context", "fairness: what was kept free of it no longer is")],
        "utilization_clamp" => {
            &[("lift its upper bound of utilisation (uclamp.max)", "energy: the CPU runs at higher frequencies")]
        }
        "core_scheduling" => &[(
            "give it the cookie of those that it may share a core with",
            "security: these can then learn from it through what the core has in common",
        )],
        "timer_slack_ns" => &[(
            "set its timer slack to that of the fast context (PR_SET_TIMERSLACK, or /proc/PID/timerslack_ns)",
            "energy: fewer wake-ups fall together, so CPUs sleep less",
        )],
        "io_priority" => &[(
            "start it with the class of the fast context (ionice)",
            "fairness: others wait longer for the same storage",
        )],
        "tracer" => &[("end the program that traces it", "what it is traced for")],
        "security_label" => &[(
            "change what follows from its label (the policy of the domain), not the label",
            "security: what the policy kept from the program",
        )],
        "no_new_privs" => &[("do not set it", "security: set-uid programs that it starts get their rights")],
        "credentials" => &[(
            "let the user read what it cannot: caches that another user wrote, each directory above them; or fill them as this user",
            "security: whoever may read the files can; none where they hold no secrets",
        )],
        "capabilities" => {
            &[("give it the capability that it lacks", "security: whoever takes the program over has it too")]
        }
        "control_groups" => return control_groups(part),
        "environment" => return environment(part),
        "loaded_libraries" => &[("load the code of the fast context", "what the other code is there for")],
        "file_systems" => &[(
            "put what it works on on the file system of the fast context",
            "what the other was chosen for: its size, its safety, its price",
        )],
        "huge_pages" | "machine_huge_pages" => &[(
            "allow it huge pages (PR_SET_THP_DISABLE off; madvise where the machine asks for it)",
            "memory: pages that are used in part are there as a whole",
        )],
        "memory_policy" => {
            &[("take its memory from the nodes of the fast context", "fairness: those nodes have less for others")]
        }
        "limits" => &[("raise the limit", "what the limit protects: the memory and the CPUs of others")],
        "personality" => &[(
            "start it with the flags of the fast context (setarch)",
            "security, where addresses are no longer random; none else",
        )],
        "namespaces" => &[("start it in the namespaces of the fast context", "security: it sees and reaches more")],
        "audit" => &[("take the rules of audit away that concern it", "security: its calls are no longer logged")],
        "mitigations" | "kernel_parameters" => &[(
            "start the kernel with the mitigations of the fast machine",
            "security: other programs and guests can read its memory through the CPU's guesses",
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
            "raise the quota of its control group (cpu.max, cpu.cfs_quota_us), or let it have as many threads as the quota has CPUs",
            "fairness: others on these CPUs get less",
        )
    } else if has(&["weight", "shares"]) {
        remedy("raise the weight of its control group", "fairness: groups beside it get less")
    } else if has(&["cpuset", "processors", "nodes"]) {
        remedy("allow its control group more CPUs or nodes", "fairness: what was kept free of it no longer is")
    } else if has(&["memory", "swap"]) {
        remedy("raise the limit of memory of its control group", "memory: others on the machine have less")
    } else if has(&["io", "blkio"]) {
        remedy("raise the limit of I/O of its control group", "fairness: others wait longer for the same storage")
    } else {
        remedy("give its control group the limits of the fast one", "fairness: others on the machine get less")
    }]
}

fn environment(part: &str) -> Vec<Remedy> {
    let price = match part {
        "MALLOC_PERTURB_" | "MALLOC_CHECK_" => {
            "use of memory that is not initialised or freed already is found less often"
        }
        "LD_PRELOAD" | "LD_AUDIT" => "what the library was loaded for",
        "GLIBC_TUNABLES" => "what the setting was made for: mostly memory that is given back sooner",
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
