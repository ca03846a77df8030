//! SELinux enforcing -> a seccomp filter -> the CPU may not speculate: an app that is slower than the same code in a shell.
//!
//! Up to Linux 5.15 a thread that installs a seccomp filter without `SECCOMP_FILTER_FLAG_SPEC_ALLOW` loses two optimisations for good
//! (kernel/seccomp.c, `arch_seccomp_spec_mitigate`; arch/x86/kernel/cpu/bugs.c). Later kernels changed the default, which was carried
//! back to some older ones and not to others. So the states of the threads are compared, and no release.

use super::chain::{Chain, Link, Side};
use crate::factors::speculation::{is_forced, is_restricted};
use crate::reading::{Reading, Value};
use crate::remedy::Remedy;
use crate::snapshot::Snapshot;

const STATES: [&str; 2] = ["speculative_store_bypass", "indirect_branch_speculation"];

/// What one context shows.
struct Seen<'a> {
    mode: &'a str,
    states: [Option<&'a str>; 2],
    selinux: Option<&'a str>,
    label: Option<&'a str>,
}

fn text<'a>(snapshot: &'a Snapshot, factor: &str) -> Option<&'a str> {
    match snapshot.reading(factor).and_then(Reading::value)? {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

impl<'a> Seen<'a> {
    fn of(snapshot: &'a Snapshot) -> Option<Self> {
        Some(Self {
            mode: snapshot.reading("seccomp")?.value()?.part("mode")?,
            states: STATES.map(|factor| text(snapshot, factor)),
            selinux: text(snapshot, "selinux"),
            label: snapshot.reading("security_label").and_then(Reading::value).and_then(|value| value.part("label")),
        })
    }
}

/// The chain, where all of its links were read.
pub(super) fn find(a: &Snapshot, b: &Snapshot) -> Option<Chain> {
    let (seen_a, seen_b) = (Seen::of(a)?, Seen::of(b)?);
    let (slower, with, without) = match (seen_a.mode, seen_b.mode) {
        ("filter", "none") => (Side::A, seen_a, seen_b),
        ("none", "filter") => (Side::B, seen_b, seen_a),
        _ => return None,
    };
    // Forced here and free there: what a filter does. A program's own prctl leaves a state that is not forced.
    let changed: Vec<(&str, &str, &str)> = STATES
        .iter()
        .zip(with.states.iter().zip(&without.states))
        .filter_map(|(factor, (with, without))| Some((*factor, (*with)?, (*without)?)))
        .filter(|(_, with, without)| {
            is_restricted(with) == Some(true) && is_forced(with) && is_restricted(without) == Some(false)
        })
        .collect();
    if changed.is_empty() {
        return None;
    }
    let mut links = Vec::new();
    if with.selinux == Some("enforcing") {
        let label = with.label.map(|label| format!(", label {label} against {}", without.label.unwrap_or("none")));
        links.push(Link {
            factor: "selinux".to_owned(),
            seen: format!("enforcing{}", label.unwrap_or_default()),
            why: "while it is enforcing, Android's zygote gives every app a seccomp filter; it is permissive: none"
                .to_owned(),
        });
    }
    links.push(Link {
        factor: "seccomp".to_owned(),
        seen: format!("{} against {}", with.mode, without.mode),
        why: "a filter stays for the life of the thread and of those that it starts".to_owned(),
    });
    links.extend(changed.iter().map(|(factor, with, without)| Link {
        factor: (*factor).to_owned(),
        seen: format!("{with} against {without}"),
        why: "this kernel forces it when a filter is installed without SECCOMP_FILTER_FLAG_SPEC_ALLOW".to_owned(),
    }));
    let store = changed.iter().any(|(factor, ..)| *factor == STATES[0]);
    let branch = changed.iter().any(|(factor, ..)| *factor == STATES[1]);
    Some(Chain {
        title: "a seccomp filter switches CPU optimisations off".to_owned(),
        slower,
        links,
        cost: "over 10 % of computing was seen with both off (the same native code in an app and in a shell); 2 to 8 % of ordinary \
               programs for loads that may not overtake stores alone"
            .to_owned(),
        remedies: speculation_remedies(store, branch),
        sources: vec![
            "kernel/seccomp.c, arch_seccomp_spec_mitigate; arch/x86/kernel/cpu/bugs.c, ssb_prctl_set, ib_prctl_set".to_owned(),
            "Documentation/userspace-api/spec_ctrl.rst; seccomp(2), SECCOMP_FILTER_FLAG_SPEC_ALLOW".to_owned(),
            "L. Culbertson, Intel, \"Addressing New Research for Side-Channel Analysis\", May 2018".to_owned(),
        ],
    })
}

/// What can be done where a filter has switched off that loads overtake stores (`store`) or that indirect branches are predicted
/// (`branch`).
pub fn speculation_remedies(store: bool, branch: bool) -> Vec<Remedy> {
    let parameters = match (store, branch) {
        (true, true) => "spec_store_bypass_disable=prctl spectre_v2_user=prctl",
        (true, false) => "spec_store_bypass_disable=prctl",
        _ => "spectre_v2_user=prctl",
    };
    let remedy = |what: &str, price: &str| Remedy { what: what.to_owned(), price: price.to_owned() };
    vec![
        remedy(
            "install the filter with SECCOMP_FILTER_FLAG_SPEC_ALLOW (a change of who installs it)",
            "security: code in the same process that is kept apart by software only (scripts, byte code) can read its memory \
             through the store bypass",
        ),
        remedy(
            &format!("kernel parameters {parameters}: a filter forces nothing, programs can still ask for it"),
            "security: as above, for every program with a filter on the machine; it is the default of newer kernels",
        ),
        remedy(
            &format!("kernel parameters {}: nobody can have it", parameters.replace("=prctl", "=off")),
            "security: no program on the machine can protect itself, not even on request",
        ),
    ]
}
