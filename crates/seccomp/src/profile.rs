//! Profiles of container runtimes: what Docker and Podman ship, and the part `linux.seccomp` of an OCI configuration
//! (opencontainers/runtime-spec, config-linux.md).
//!
//! Compiled as runc does where that matters: names that this architecture has not are left out, rules with the default's action too,
//! and several conditions on one argument are alternatives (libcontainer/seccomp, `matchCall`). Of rules that hold for some containers only,
//! those of an ordinary container are taken: Docker's own set of capabilities. What runc does differently: libseccomp lays a tree over the numbers, where
//! these programs compare one number after the other.

use crate::compile::{Rules, compile};
use crate::error::FilterError;
use crate::parsed::Parsed;
use seccompiler::{SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};
use serde::Deserialize;
use std::collections::BTreeMap;
use syscalls::Sysno;

/// Capabilities of a container that was given none beside Docker's own (moby, oci/caps/defaults.go).
const CAPABILITIES: [&str; 14] = [
    "CAP_CHOWN",
    "CAP_DAC_OVERRIDE",
    "CAP_FSETID",
    "CAP_FOWNER",
    "CAP_MKNOD",
    "CAP_NET_RAW",
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_SETFCAP",
    "CAP_SETPCAP",
    "CAP_NET_BIND_SERVICE",
    "CAP_SYS_CHROOT",
    "CAP_KILL",
    "CAP_AUDIT_WRITE",
];

/// What a refused call returns where nothing is said (EPERM).
const DEFAULT_ERROR: u32 = 1;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Profile {
    default_action: String,
    default_errno_ret: Option<u32>,
    syscalls: Option<Vec<Entry>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    names: Option<Vec<String>>,
    /// Of profiles before Docker 17.
    name: Option<String>,
    action: String,
    errno_ret: Option<u32>,
    args: Option<Vec<Argument>>,
    includes: Option<Where>,
    excludes: Option<Where>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Argument {
    index: u64,
    value: u64,
    value_two: Option<u64>,
    op: String,
}

/// For which containers a rule is meant.
#[derive(Deserialize)]
struct Where {
    caps: Option<Vec<String>>,
    arches: Option<Vec<String>>,
}

impl Entry {
    fn is_meant(&self) -> bool {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let has = |capability: &String| CAPABILITIES.contains(&capability.as_str());
        let here = |name: &String| name == architecture;
        let included = self.includes.as_ref().is_none_or(|wanted| {
            let caps = wanted.caps.iter().flatten().all(has);
            caps && wanted.arches.as_ref().is_none_or(|names| names.is_empty() || names.iter().any(here))
        });
        let excluded = self.excludes.as_ref().is_some_and(|unwanted| {
            unwanted.caps.iter().flatten().any(has) || unwanted.arches.iter().flatten().any(here)
        });
        included && !excluded
    }
}

/// The program of a profile.
///
/// # Errors
/// It has an action or a comparison that is unknown or needs a supervisor, or there are too many rules.
pub(crate) fn compiled(profile: Profile) -> Result<Parsed, FilterError> {
    let error = profile.default_errno_ret.unwrap_or(DEFAULT_ERROR);
    let default = action(&profile.default_action, error)?;
    let mut groups: Vec<(SeccompAction, Rules)> = Vec::new();
    let (mut unknown, mut for_others) = (0, 0);
    for entry in profile.syscalls.unwrap_or_default() {
        let taken = action(&entry.action, entry.errno_ret.unwrap_or(error))?;
        if !entry.is_meant() {
            for_others += 1;
            continue;
        }
        if taken == default {
            continue;
        }
        let rules = rules(entry.args.as_deref().unwrap_or_default())?;
        let place = groups.iter().position(|(action, _)| *action == taken).unwrap_or_else(|| {
            groups.push((taken, Rules::new()));
            groups.len() - 1
        });
        let calls = &mut groups[place].1;
        for name in entry.names.iter().flatten().chain(&entry.name) {
            let Ok(number) = name.parse::<Sysno>() else {
                unknown += 1;
                continue;
            };
            add(calls, i64::from(number.id()), &rules);
        }
    }
    groups.retain(|(_, calls)| !calls.is_empty());
    let mut notes = Vec::new();
    if unknown > 0 {
        notes.push(format!(
            "{unknown} names of the profile are no system calls of this architecture, and were left out"
        ));
    }
    if for_others > 0 {
        notes.push(format!(
            "{for_others} rules of the profile are for containers with more capabilities or of other architectures, and were left out"
        ));
    }
    notes.push(
        "it compares one number after the other; the tree that a container runtime makes can be measured with pid:PID"
            .to_owned(),
    );
    Ok(Parsed { program: compile(groups, &default)?, form: "profile of a container runtime", notes })
}

/// Adds alternatives to those of a call; no condition at all outdoes every condition.
fn add(calls: &mut Rules, number: i64, rules: &[SeccompRule]) {
    match calls.get_mut(&number) {
        None => {
            calls.insert(number, rules.to_vec());
        }
        Some(before) if before.is_empty() => {}
        Some(before) if rules.is_empty() => before.clear(),
        Some(before) => before.extend_from_slice(rules),
    }
}

fn action(word: &str, error: u32) -> Result<SeccompAction, FilterError> {
    // The kernel has 16 bits for it.
    let error = error & libc::SECCOMP_RET_DATA;
    Ok(match word {
        "SCMP_ACT_ALLOW" => SeccompAction::Allow,
        "SCMP_ACT_ERRNO" => SeccompAction::Errno(error),
        "SCMP_ACT_KILL" | "SCMP_ACT_KILL_THREAD" => SeccompAction::KillThread,
        "SCMP_ACT_KILL_PROCESS" => SeccompAction::KillProcess,
        "SCMP_ACT_LOG" => SeccompAction::Log,
        "SCMP_ACT_TRACE" => SeccompAction::Trace(error),
        "SCMP_ACT_TRAP" => SeccompAction::Trap,
        "SCMP_ACT_NOTIFY" => {
            return Err(FilterError::Unsupported {
                word: word.to_owned(),
                why: "it needs a supervisor that answers each call",
            });
        }
        _ => return Err(FilterError::Unsupported { word: word.to_owned(), why: "there is no such action" }),
    })
}

/// Conditions to rules: all together, or each for itself where two are on one argument.
fn rules(arguments: &[Argument]) -> Result<Vec<SeccompRule>, FilterError> {
    let mut uses: BTreeMap<u64, usize> = BTreeMap::new();
    for argument in arguments {
        *uses.entry(argument.index).or_default() += 1;
    }
    let conditions = arguments.iter().map(condition).collect::<Result<Vec<_>, _>>()?;
    let alternatives: Vec<Vec<SeccompCondition>> = match conditions.is_empty() {
        true => Vec::new(),
        false if uses.values().any(|uses| *uses > 1) => conditions.into_iter().map(|one| vec![one]).collect(),
        false => vec![conditions],
    };
    alternatives.into_iter().map(|all| SeccompRule::new(all).map_err(FilterError::from)).collect()
}

fn condition(argument: &Argument) -> Result<SeccompCondition, FilterError> {
    let (operator, value) = match argument.op.as_str() {
        "SCMP_CMP_NE" => (SeccompCmpOp::Ne, argument.value),
        "SCMP_CMP_LT" => (SeccompCmpOp::Lt, argument.value),
        "SCMP_CMP_LE" => (SeccompCmpOp::Le, argument.value),
        "SCMP_CMP_EQ" => (SeccompCmpOp::Eq, argument.value),
        "SCMP_CMP_GE" => (SeccompCmpOp::Ge, argument.value),
        "SCMP_CMP_GT" => (SeccompCmpOp::Gt, argument.value),
        "SCMP_CMP_MASKED_EQ" => (SeccompCmpOp::MaskedEq(argument.value), argument.value_two.unwrap_or_default()),
        other => {
            return Err(FilterError::Unsupported { word: other.to_owned(), why: "there is no such comparison" });
        }
    };
    let index = u8::try_from(argument.index).unwrap_or(u8::MAX);
    Ok(SeccompCondition::new(index, SeccompCmpArgLen::Qword, operator, value)?)
}

#[cfg(test)]
mod tests {
    use crate::compile::tests::run;
    use crate::parse::parse;
    use syscalls::Sysno;

    const ALLOW: u32 = 0x7fff_0000;

    fn said(profile: &str, name: &str, first: u64) -> u32 {
        let parsed = parse(profile.as_bytes(), None).unwrap();
        run(&parsed.program, name.parse::<Sysno>().unwrap().id() as u32, [first, 0, 0, 0, 0, 0])
    }

    /// The kinds of rules of Docker's own profile.
    const DOCKER: &str = r#"{
        "defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 1, "archMap": [{"architecture": "SCMP_ARCH_X86_64"}],
        "syscalls": [
            {"names": ["read", "write", "_llseek", "clock_gettime64"], "action": "SCMP_ACT_ALLOW"},
            {"names": ["personality"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 8, "op": "SCMP_CMP_EQ"}]},
            {"names": ["personality"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 0, "op": "SCMP_CMP_EQ"}]},
            {"names": ["bpf"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_ADMIN"]}},
            {"names": ["chroot"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_CHROOT"]}},
            {"names": ["swapon"], "action": "SCMP_ACT_ALLOW", "includes": {"arches": ["s390"]}},
            {"names": ["clone"], "action": "SCMP_ACT_ALLOW", "excludes": {"caps": ["CAP_SYS_ADMIN"]},
             "args": [{"index": 0, "value": 2114060288, "op": "SCMP_CMP_MASKED_EQ"}]},
            {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38, "args": null, "excludes": {"caps": ["CAP_SYS_ADMIN"]}}
        ]
    }"#;

    #[test]
    fn a_profile_is_that_of_an_ordinary_container() {
        let refuse = 0x0005_0001;
        assert_eq!((said(DOCKER, "read", 0), said(DOCKER, "chroot", 0)), (ALLOW, ALLOW));
        assert_eq!([0, 8, 1].map(|value| said(DOCKER, "personality", value)), [ALLOW, ALLOW, refuse]);
        assert_eq!(["bpf", "swapon", "socket"].map(|name| said(DOCKER, name, 0)), [refuse; 3]);
        assert_eq!([17, 0x7e02_0000].map(|flags| said(DOCKER, "clone", flags)), [ALLOW, refuse]);
        assert_eq!(said(DOCKER, "clone3", 0), 0x0005_0026);
        let notes = parse(DOCKER.as_bytes(), None).unwrap().notes.join("\n");
        assert!(notes.contains("2 names") && notes.contains("2 rules"), "{notes}");
    }

    #[test]
    fn a_configuration_of_a_container_holds_one_too() {
        let whole = format!(r#"{{"ociVersion": "1.0.2", "linux": {{"seccomp": {DOCKER}}}}}"#);
        assert_eq!(said(&whole, "clone3", 0), 0x0005_0026);
    }

    #[test]
    fn conditions_hold_together_unless_they_are_on_one_argument() {
        let profile = |first: u64, second: u64| {
            format!(
                r#"{{"defaultAction": "SCMP_ACT_TRAP", "syscalls": [{{"name": "socket", "action": "SCMP_ACT_ALLOW", "args": [
                    {{"index": {first}, "value": 1, "op": "SCMP_CMP_EQ"}}, {{"index": {second}, "value": 5, "op": "SCMP_CMP_GE"}}]}}]}}"#
            )
        };
        let trap = 0x0003_0000;
        assert_eq!([1, 3, 5].map(|value| said(&profile(0, 0), "socket", value)), [ALLOW, trap, ALLOW]);
        assert_eq!([1, 5].map(|value| said(&profile(0, 1), "socket", value)), [trap, trap]);
        // A seventh argument.
        assert!(parse(profile(0, 6).as_bytes(), None).is_err());
    }

    #[test]
    fn what_needs_a_supervisor_is_refused_by_its_name() {
        let profile =
            r#"{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mount"], "action": "SCMP_ACT_NOTIFY"}]}"#;
        let error = parse(profile.as_bytes(), None).unwrap_err().to_string();
        assert!(error.contains("SCMP_ACT_NOTIFY") && error.contains("supervisor"), "{error}");
    }
}
