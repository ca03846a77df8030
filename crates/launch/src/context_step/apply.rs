//! The system calls behind the steps. Own small module because libc has no safe form of most of them.

use std::io;
use std::time::{Duration, Instant};

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use slowpath_process::Capabilities;
use slowpath_seccomp::{Program, install as seccomp};

use super::{ContextStep, Speculation, SpeculationState};
use crate::SchedulingAttributes;

/// Nobody but an administrator may change the nice value of a session more often than every tenth of a second
/// (kernel/sched/autogroup.c); that long it is tried again.
const AUTOGROUP_PATIENCE: Duration = Duration::from_secs(2);

/// Bytes of [`SchedulingAttributes`] without the clamps, which older kernels do not know (`SCHED_ATTR_SIZE_VER0`).
const WITHOUT_CLAMPS: u32 = 48;
/// Keeps policy and parameters and sets both clamps (include/uapi/linux/sched.h, `SCHED_FLAG_*`).
const ONLY_CLAMPS: u64 = 0x08 | 0x10 | 0x20 | 0x40;
/// Which `who` is a thread (include/uapi/linux/ioprio.h).
const IOPRIO_WHO_PROCESS: libc::c_int = 1;
/// Commands of prctl (include/uapi/linux/prctl.h).
const PR_SET_SPECULATION_CTRL: libc::c_int = 53;
const PR_SCHED_CORE: libc::c_int = 62;
const PR_SCHED_CORE_CREATE: libc::c_ulong = 1;
/// The highest number that a mask can hold.
const LAST_CAPABILITY: libc::c_ulong = 63;

impl ContextStep {
    /// What needs the launcher's privilege, or does not care.
    pub(crate) fn before_identity(&self) -> io::Result<()> {
        match self {
            Self::Scheduling { policy, priority, nice } => {
                let (policy, priority, nice) = (*policy, *priority, *nice);
                // With a policy that does not use it the kernel leaves it as it is (kernel/sched, __setscheduler_params).
                // SAFETY: takes integers and touches no memory of ours.
                answered(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) }.into())?;
                SchedulingAttributes { size: WITHOUT_CLAMPS, policy, priority, nice, ..Default::default() }.set()
            }
            Self::UtilizationClamp { min, max } => SchedulingAttributes {
                size: size_of::<SchedulingAttributes>() as u32,
                flags: ONLY_CLAMPS,
                clamp_min: *min,
                clamp_max: *max,
                ..Default::default()
            }
            .set(),
            Self::Affinity { processors } => affinity(processors),
            Self::TimerSlack { ns } => prctl(libc::PR_SET_TIMERSLACK, [*ns as libc::c_ulong, 0, 0, 0]),
            Self::IoPriority { value } => {
                // SAFETY: takes three integers and touches no memory of ours.
                answered(unsafe {
                    libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, libc::c_int::from(*value))
                })
            }
            // SAFETY: takes an integer and touches no memory of ours.
            Self::Personality { flags } => answered(unsafe { libc::personality(libc::c_ulong::from(*flags)) }.into()),
            Self::HugePages { disabled } => prctl(libc::PR_SET_THP_DISABLE, [(*disabled).into(), 0, 0, 0]),
            Self::MemoryPolicy { mode, nodes } => memory_policy(*mode, nodes),
            Self::CoreCookie => prctl(PR_SCHED_CORE, [PR_SCHED_CORE_CREATE, 0, 0, 0]),
            Self::Speculation { of, state } => speculation(*of, *state),
            Self::AutogroupNice { nice } => autogroup_nice(*nice),
            Self::Capabilities { bounding, inheritable, .. } => {
                // The other way round, what is not in the bounding set could not be made inheritable.
                set_inheritable(*inheritable)?;
                bound(*bounding)
            }
            Self::EnterDirectory { path } => std::env::set_current_dir(path),
            Self::NoNewPrivileges | Self::SystemCallFilter { .. } | Self::Traced => Ok(()),
        }
    }

    /// What the change of credentials would undo.
    pub(crate) fn after_identity(&self) -> io::Result<()> {
        match self {
            Self::Capabilities { ambient, .. } => set_ambient(*ambient),
            Self::NoNewPrivileges => seccomp::forbid_new_privileges(),
            _ => Ok(()),
        }
    }

    /// What could forbid anything else that comes before the exec. `is_root`: the target is.
    pub(crate) fn at_exec(&self, is_root: bool) -> io::Result<()> {
        match self {
            Self::SystemCallFilter { program, may_speculate } => filter(program, *may_speculate, is_root),
            _ => Ok(()),
        }
    }
}

fn answered(result: libc::c_long) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn prctl(command: libc::c_int, [a, b, c, d]: [libc::c_ulong; 4]) -> io::Result<()> {
    // SAFETY: the commands given to this function take integers and touch no memory of ours.
    answered(unsafe { libc::prctl(command, a, b, c, d) }.into())
}

fn affinity(cpus: &[u32]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for cpu in cpus {
        set.set(*cpu as usize)?;
    }
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

fn memory_policy(mode: u32, nodes: &[u32]) -> io::Result<()> {
    let bits = libc::c_ulong::BITS as usize;
    let words = nodes.iter().max().map_or(0, |most| *most as usize / bits + 1);
    let mut mask: Vec<libc::c_ulong> = vec![0; words];
    for node in nodes {
        if let Some(word) = mask.get_mut(*node as usize / bits) {
            *word |= 1 << (*node as usize % bits);
        }
    }
    // The kernel looks at one bit less than it is passed (mm/mempolicy.c, get_nodes).
    let length = if mask.is_empty() { 0 } else { mask.len() * bits + 1 };
    let address = if mask.is_empty() { std::ptr::null() } else { mask.as_ptr() };
    // SAFETY: the mask has as many bits as `length` says; none where the address is null.
    answered(unsafe { libc::syscall(libc::SYS_set_mempolicy, mode as libc::c_int, address, length) })
}

fn speculation(of: Speculation, state: SpeculationState) -> io::Result<()> {
    let of = match of {
        Speculation::StoreBypass => 0,
        Speculation::IndirectBranch => 1,
    };
    let state = match state {
        SpeculationState::Enabled => 1 << 1,
        SpeculationState::Disabled => 1 << 2,
        SpeculationState::ForceDisabled => 1 << 3,
    };
    prctl(PR_SET_SPECULATION_CTRL, [of, state, 0, 0])
}

fn autogroup_nice(nice: i32) -> io::Result<()> {
    let start = Instant::now();
    loop {
        match std::fs::write("/proc/self/autogroup", nice.to_string()) {
            Err(error) if error.raw_os_error() == Some(libc::EAGAIN) && start.elapsed() < AUTOGROUP_PATIENCE => {
                std::thread::sleep(Duration::from_millis(20));
            }
            done => return done,
        }
    }
}

fn set_inheritable(mask: u64) -> io::Result<()> {
    Capabilities { inheritable: mask, ..Capabilities::of_this_thread()? }.apply()
}

fn bound(mask: u64) -> io::Result<()> {
    for number in (0..=LAST_CAPABILITY).filter(|number| mask & (1 << number) == 0) {
        // SAFETY: takes integers and touches no memory of ours.
        let is_in_it = unsafe { libc::prctl(libc::PR_CAPBSET_READ, number, 0, 0, 0) } == 1;
        // Else it is not in the set, or unknown to this kernel.
        if is_in_it {
            prctl(libc::PR_CAPBSET_DROP, [number, 0, 0, 0])?;
        }
    }
    Ok(())
}

fn set_ambient(mask: u64) -> io::Result<()> {
    let command =
        |what: libc::c_int, number: libc::c_ulong| prctl(libc::PR_CAP_AMBIENT, [what as libc::c_ulong, number, 0, 0]);
    match command(libc::PR_CAP_AMBIENT_CLEAR_ALL, 0) {
        // A kernel without them (before 4.3) has none to clear.
        Err(_) if mask == 0 => return Ok(()),
        done => done?,
    }
    (0..=LAST_CAPABILITY)
        .filter(|number| mask & (1 << number) != 0)
        .try_for_each(|number| command(libc::PR_CAP_AMBIENT_RAISE, number))
}

fn filter(program: &[u8], may_speculate: bool, is_root: bool) -> io::Result<()> {
    let program = Program::from_bytes(program).map_err(io::Error::other)?;
    let speculation =
        if may_speculate { seccomp::Speculation::Allowed } else { seccomp::Speculation::AsTheKernelLikes };
    if !is_root {
        seccomp::forbid_new_privileges()?;
    }
    seccomp::install(&program, speculation)
}
