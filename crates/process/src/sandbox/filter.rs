//! Which system calls a worker may make (seccomp(2)).
//!
//! One program with four answers, in this order:
//!
//! 1. *killed*: what no library that works here calls or probes, and what an attacker calls first: mounting, tracing, BPF, modules, keys,
//!    namespaces, executing. The parent is notified of SIGSYS, so that it is noticed.
//! 2. *allowed*: what the duty needs, by number, and by argument where the number says too little (how a file is opened, whether memory
//!    becomes executable, whom a signal goes to, which command a descriptor gets).
//! 3. *refused* with EPERM: what libraries try and can do without: another owner, a socket of the system log.
//! 4. ENOSYS for all others, unknown numbers and those of x32 included: with this answer C libraries fall back to older calls.
//!
//! [`Duty::Run`] starts programs of the user, which may call anything that gives no power over others: what is killed elsewhere is refused
//! there, and all else is allowed.

use super::calls::{ANY, DESCRIPTOR_COMMANDS, NETWORK, PARSING, POWER, READING, REFUSED, WRITING};
use super::duty::Duty;
use super::error::SandboxError;
use nix::unistd::getpid;
use seccompiler::{SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};
use slowpath_seccomp::install::{Speculation, install};
use slowpath_seccomp::{Instruction, Program, Rules, compile};

/// Opening for reading alone: no access mode but `O_RDONLY` (0), nothing made, nothing cut.
const CHANGING: u64 = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC | (libc::O_TMPFILE & !libc::O_DIRECTORY)) as u64;

/// A thread and no process.
const THREAD: u64 = libc::CLONE_THREAD as u64;

/// Flags of clone(2) for namespaces.
const NAMESPACES: [u64; 7] = [
    libc::CLONE_NEWNS as u64,
    libc::CLONE_NEWUTS as u64,
    libc::CLONE_NEWIPC as u64,
    libc::CLONE_NEWUSER as u64,
    libc::CLONE_NEWPID as u64,
    libc::CLONE_NEWNET as u64,
    libc::CLONE_NEWCGROUP as u64,
];

/// Requests to a terminal or a descriptor that change nobody else's: size and kind of a terminal, flags of the descriptor.
const REQUESTS: [u64; 6] = [
    libc::TCGETS,
    // TCGETS2, asm-generic/ioctls.h, which glibc uses from 2.42 on.
    0x802c_542a,
    libc::TIOCGWINSZ,
    libc::FIONBIO,
    libc::FIOCLEX,
    libc::FIONREAD,
];

/// Requests that write into another's terminal: what is typed, and what is selected on a console.
const TYPING: [u64; 2] = [libc::TIOCSTI, 0x541c /* TIOCLINUX, asm-generic/ioctls.h */];

/// `set-user-ID` and `set-group-ID`.
const SPECIAL_MODES: u64 = 0o6000;

/// Installs the filter of a duty for good. `no_new_privs` must be set.
pub(super) fn restrict(duty: Duty) -> Result<(), SandboxError> {
    for program in programs(duty)? {
        install(&program, Speculation::AsTheKernelLikes)
            .map_err(|source| SandboxError::Refused { step: "seccomp", source })?;
    }
    Ok(())
}

/// The filter of a duty; none for one that measures.
pub(super) fn programs(duty: Duty) -> Result<Vec<Program>, SandboxError> {
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    Ok(match duty {
        Duty::Measure => Vec::new(),
        Duty::Run => {
            let mut rules = power()?;
            rules.remove(&libc::SYS_execve);
            rules.remove(&libc::SYS_execveat);
            rules.insert(libc::SYS_ioctl, one_of(1, &TYPING)?);
            rules.insert(libc::SYS_clone, any_bit(0, &NAMESPACES)?);
            // Its flags are in memory, where a filter cannot look. C libraries fall back to clone.
            let unseen = (SeccompAction::Errno(libc::ENOSYS.unsigned_abs()), numbers(&[libc::SYS_clone3]));
            vec![compile(vec![unseen, (refuse, rules)], &SeccompAction::Allow).map_err(compiler)?, without_x32()?]
        }
        Duty::Parse | Duty::Read | Duty::Write | Duty::Browse => {
            let kill = (SeccompAction::KillProcess, power()?);
            let groups = vec![kill, (SeccompAction::Allow, allowed(duty)?), (refuse, numbers(REFUSED))];
            vec![compile(groups, &SeccompAction::Errno(libc::ENOSYS.unsigned_abs())).map_err(compiler)?]
        }
    })
}

/// What gives power over others.
fn power() -> Result<Rules, SandboxError> {
    let mut rules = numbers(POWER);
    // A process may read itself this way, which is how its own vdso is read.
    let others = condition(0, SeccompCmpOp::Ne, own_pid())?;
    rules.insert(libc::SYS_process_vm_readv, vec![rule(vec![others])?]);
    Ok(rules)
}

fn allowed(duty: Duty) -> Result<Rules, SandboxError> {
    let mut rules = numbers(PARSING);
    let mut add = |number: i64, arguments: Vec<SeccompRule>| rules.insert(number, arguments);
    let own = || Ok::<_, SandboxError>(vec![rule(vec![condition(0, SeccompCmpOp::Eq, own_pid())?])?]);
    // Memory that becomes code is what an attacker needs; nothing here compiles or loads any.
    let no_code = || masked(2, libc::PROT_EXEC as u64, 0);
    add(libc::SYS_mmap, no_code()?);
    add(libc::SYS_mprotect, no_code()?);
    // How a process aborts.
    add(libc::SYS_tgkill, own()?);
    add(libc::SYS_kill, own()?);
    add(libc::SYS_fcntl, descriptor_commands()?);
    let nobody_else = || Ok::<_, SandboxError>(vec![rule(vec![condition(0, SeccompCmpOp::Eq, 0)?])?]);
    add(libc::SYS_sched_getattr, nobody_else()?);
    add(libc::SYS_sched_setattr, nobody_else()?);
    if duty == Duty::Parse {
        return Ok(rules);
    }
    add(libc::SYS_process_vm_readv, own()?);
    let namespaces = NAMESPACES.iter().fold(0, |all, one| all | one);
    add(libc::SYS_clone, masked(0, THREAD | namespaces, THREAD)?);
    add(libc::SYS_ioctl, one_of(1, &REQUESTS)?);
    add(libc::SYS_prctl, one_of(0, &[libc::PR_SET_NAME as u64, libc::PR_GET_NAME as u64])?);
    // Limits are read and not set.
    add(libc::SYS_prlimit64, vec![rule(vec![long(2, SeccompCmpOp::Eq, 0)?])?]);
    if duty == Duty::Read {
        add(libc::SYS_openat, masked(2, CHANGING, 0)?);
        #[cfg(target_arch = "x86_64")]
        add(libc::SYS_open, masked(1, CHANGING, 0)?);
    } else {
        add(libc::SYS_openat, ANY);
        #[cfg(target_arch = "x86_64")]
        add(libc::SYS_open, ANY);
        add(libc::SYS_fchmod, masked(1, SPECIAL_MODES, 0)?);
    }
    if duty == Duty::Browse {
        let families = [libc::AF_INET as u64, libc::AF_INET6 as u64, libc::AF_UNIX as u64];
        // Besides, whose a connection is (sock_diag(7)), and files that are opened beneath a directory.
        let diagnosis = rule(vec![
            condition(0, SeccompCmpOp::Eq, libc::AF_NETLINK as u64)?,
            condition(2, SeccompCmpOp::Eq, libc::NETLINK_SOCK_DIAG as u64)?,
        ])?;
        add(libc::SYS_socket, one_of(0, &families)?.into_iter().chain([diagnosis]).collect());
        add(libc::SYS_socketpair, one_of(0, &families)?);
        add(libc::SYS_openat2, ANY);
    }
    let more: &[&[i64]] = match duty {
        Duty::Read => &[READING],
        Duty::Browse => &[READING, WRITING, NETWORK],
        _ => &[READING, WRITING],
    };
    rules.extend(more.iter().flat_map(|list| numbers(list)));
    Ok(rules)
}

/// What a descriptor may be asked, and its flags set but for `O_ASYNC`, by which the kernel signals whom `F_SETOWN` names.
fn descriptor_commands() -> Result<Vec<SeccompRule>, SandboxError> {
    let commands: Vec<u64> = DESCRIPTOR_COMMANDS.iter().map(|command| u64::from(command.unsigned_abs())).collect();
    let flags = rule(vec![
        condition(1, SeccompCmpOp::Eq, libc::F_SETFL as u64)?,
        condition(2, SeccompCmpOp::MaskedEq(libc::O_ASYNC as u64), 0)?,
    ])?;
    Ok(one_of(1, &commands)?.into_iter().chain([flags]).collect())
}

/// Calls by their number alone.
fn numbers(list: &[i64]) -> Rules {
    list.iter().map(|number| (*number, ANY)).collect()
}

fn own_pid() -> u64 {
    u64::from(getpid().as_raw().unsigned_abs())
}

fn condition(argument: u8, operation: SeccompCmpOp, value: u64) -> Result<SeccompCondition, SandboxError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operation, value).map_err(compiler)
}

fn long(argument: u8, operation: SeccompCmpOp, value: u64) -> Result<SeccompCondition, SandboxError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Qword, operation, value).map_err(compiler)
}

fn rule(conditions: Vec<SeccompCondition>) -> Result<SeccompRule, SandboxError> {
    SeccompRule::new(conditions).map_err(compiler)
}

/// The bits of an argument under a mask are these.
fn masked(argument: u8, mask: u64, bits: u64) -> Result<Vec<SeccompRule>, SandboxError> {
    Ok(vec![rule(vec![condition(argument, SeccompCmpOp::MaskedEq(mask), bits)?])?])
}

/// One of these bits of an argument is set.
fn any_bit(argument: u8, bits: &[u64]) -> Result<Vec<SeccompRule>, SandboxError> {
    bits.iter().map(|bit| rule(vec![condition(argument, SeccompCmpOp::MaskedEq(*bit), *bit)?])).collect()
}

fn one_of(argument: u8, values: &[u64]) -> Result<Vec<SeccompRule>, SandboxError> {
    values.iter().map(|value| rule(vec![condition(argument, SeccompCmpOp::Eq, *value)?])).collect()
}

/// Refuses the numbers of x32 (`__X32_SYSCALL_BIT`, arch/x86/include/uapi/asm/unistd.h), by which a list of what is refused could be
/// passed by. No other architecture has numbers that large.
fn without_x32() -> Result<Program, SandboxError> {
    const LOAD_NUMBER: Instruction = Instruction { code: 0x20, jt: 0, jf: 0, k: 0 };
    const IF_AT_LEAST: Instruction = Instruction { code: 0x35, jt: 0, jf: 1, k: 0x4000_0000 };
    let end = |action: SeccompAction| Instruction { code: 0x06, jt: 0, jf: 0, k: u32::from(action) };
    let refuse = end(SeccompAction::Errno(libc::ENOSYS.unsigned_abs()));
    Program::new(vec![LOAD_NUMBER, IF_AT_LEAST, refuse, end(SeccompAction::Allow)]).map_err(compiler)
}

fn compiler(error: impl std::fmt::Display) -> SandboxError {
    SandboxError::Filter(error.to_string())
}
