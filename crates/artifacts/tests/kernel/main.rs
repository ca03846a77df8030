//! The evaluator against the kernel: random trees, random identities, and faccessat2(2) in a child that has the identity.
//!
//! 2,000 cases; `SLOWPATH_ACCESS_CASES=100000` asks for more, and `SLOWPATH_ACCESS_SEED` for others. A case is one path, one access, one
//! identity. Needs root, in a mount namespace of its own: modes and lists on the disk's file system and on tmpfs, also mounted read-only,
//! noexec and nosymfollow.

mod asking;
mod trees;

use asking::{Asked, Who};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use slowpath_artifacts::access::{Access, Decision, Rule, decide, smallest_change};
use slowpath_artifacts::gather::Machine;
use std::collections::BTreeMap;
use std::path::Path;
use trees::{Place, Tree};

const ACCESSES: [Access; 3] = [Access::Read, Access::Write, Access::Execute];

fn number(variable: &str, otherwise: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// Runs `work` on a thread with mounts of its own, which end with it.
fn with_own_mounts(work: impl FnOnce() + Send) {
    use nix::mount::{MsFlags, mount};
    use nix::sched::{CloneFlags, unshare};
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: only root can take on other identities");
        return;
    }
    std::thread::scope(|scope| {
        scope.spawn(|| {
            unshare(CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_FS).unwrap();
            let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
            mount(None::<&str>, "/", None::<&str>, flags, None::<&str>).unwrap();
            work();
        });
    });
}

#[derive(Default)]
struct Tally {
    cases: u64,
    allowed: u64,
    by_rule: BTreeMap<String, u64>,
    in_namespaces: u64,
}

/// The errno with which the kernel refuses by this rule.
fn errno(rule: Rule) -> i32 {
    match rule {
        Rule::ReadOnlyMount => libc::EROFS,
        Rule::Immutable => libc::EPERM,
        Rule::NoSymlinkFollowMount => libc::ELOOP,
        _ => libc::EACCES,
    }
}

fn compare(tree: &Tree, who: &Who, asked: &Asked, tally: &mut Tally) {
    let machine = Machine::read().unwrap();
    for (path, answers) in tree.paths.iter().zip(&asked.answers) {
        let lookup = machine.look_up(path).unwrap().lookup;
        for (access, answer) in ACCESSES.into_iter().zip(answers) {
            let decision = decide(&who.identity, &lookup, access);
            let expected = match &decision {
                Decision::Allowed => 0,
                Decision::Denied(denial) => errno(denial.rule),
                Decision::Unknown { why } => panic!("{path:?}: unknown: {why}"),
            };
            assert_eq!(i32::from(*answer), expected, "{access:?} of {path:?} for {who:?}: {decision:?}\n{lookup:#?}");
            tally.cases += 1;
            tally.in_namespaces += u64::from(who.in_namespace);
            match decision {
                Decision::Denied(denial) => *tally.by_rule.entry(format!("{:?}", denial.rule)).or_default() += 1,
                _ => tally.allowed += 1,
            }
        }
    }
}

#[test]
fn the_evaluator_agrees_with_the_kernel_in_every_case() {
    with_own_mounts(|| {
        let (wanted, seed) = (number("SLOWPATH_ACCESS_CASES", 2_000), number("SLOWPATH_ACCESS_SEED", 1));
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut tally = Tally::default();
        while tally.cases < wanted {
            let place = Place::ALL[random.random_range(0..Place::ALL.len())];
            let tree = Tree::random(&mut random, place);
            for _ in 0..4 {
                let who = Who::random(&mut random);
                // A machine may forbid user namespaces.
                if let Some(asked) = asking::ask(&who, &tree.paths) {
                    compare(&tree, &who, &asked, &mut tally);
                }
            }
        }
        println!(
            "{} cases with seed {seed}, {} allowed, {} in user namespaces",
            tally.cases, tally.allowed, tally.in_namespaces
        );
        println!("denied: {:?}", tally.by_rule);
        let common = [
            Rule::OwnerBits,
            Rule::GroupBits,
            Rule::OtherBits,
            Rule::AclUser,
            Rule::AclGroup,
            Rule::AclMask,
            Rule::AclOther,
        ];
        for rule in common {
            assert!(tally.by_rule.contains_key(&format!("{rule:?}")), "no case was denied by {rule:?}");
        }
        assert!(tally.allowed > tally.cases / 10, "hardly a case was allowed");
    });
}

#[test]
fn the_smallest_change_allows_in_the_kernel_what_it_denied_before() {
    with_own_mounts(|| {
        let mut random = ChaCha8Rng::seed_from_u64(2);
        let (machine, mut tried) = (Machine::read().unwrap(), 0);
        while tried < 40 {
            let tree = Tree::random(&mut random, Place::Disk);
            let who = Who { in_namespace: false, ..Who::random(&mut random) };
            for path in &tree.paths {
                let access = ACCESSES[random.random_range(0..3)];
                let Some(changes) = smallest_change(&who.identity, &machine.look_up(path).unwrap().lookup, access)
                else {
                    continue;
                };
                let before = asking::ask(&who, &tree.paths).unwrap();
                for change in &changes {
                    trees::make(change);
                }
                let after = asking::ask(&who, &tree.paths).unwrap();
                let number = tree.paths.iter().position(|one| one == path).unwrap();
                let answer = after.answers[number][ACCESSES.iter().position(|one| *one == access).unwrap()];
                assert_eq!(answer, 0, "{access:?} of {path:?} for {who:?} after {changes:?}");
                // And nothing that the user could do before is lost.
                let lost = |(before, after): (&_, &_)| *before == 0 && *after != 0;
                for (one, (before, after)) in tree.paths.iter().zip(before.answers.iter().zip(&after.answers)) {
                    assert!(!before.iter().zip(after).any(lost), "{one:?} for {who:?} after {changes:?}");
                }
                tried += 1;
            }
        }
    });
}

#[test]
fn an_immutable_file_and_a_link_of_a_stranger_are_refused_as_the_kernel_refuses_them() {
    with_own_mounts(|| {
        let tree = trees::special();
        let (machine, mut who) = (Machine::read().unwrap(), Who::root());
        for uid in [0, 65534] {
            if uid != 0 {
                who = Who::nobody();
            }
            let asked = asking::ask(&who, &tree.paths).unwrap();
            for (path, answers) in tree.paths.iter().zip(&asked.answers) {
                let lookup = machine.look_up(path).unwrap().lookup;
                for (access, answer) in ACCESSES.into_iter().zip(answers) {
                    let expected = match decide(&who.identity, &lookup, access) {
                        Decision::Denied(denial) => errno(denial.rule),
                        _ => 0,
                    };
                    assert_eq!(i32::from(*answer), expected, "{access:?} of {path:?} for {who:?}\n{lookup:#?}");
                }
            }
        }
        assert!(tree.paths.iter().all(|path| path.starts_with(Path::new("/var/tmp"))));
    });
}
