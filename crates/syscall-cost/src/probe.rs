//! What a filter lets through, asked of a child before any thread has it: a filter can end the process.

use crate::baton::rehearse;
use crate::workload::{Bench, Workload};
use nix::errno::Errno;
use slowpath_seccomp::Program;
use slowpath_seccomp::install::{Speculation, forbid_new_privileges, install};
use std::io;
use std::sync::atomic::{AtomicI32, Ordering};

/// What came of a call under a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// As without it.
    Allowed,
    /// It failed with this error.
    Refused(i32),
    /// The program was ended by this signal.
    Ended(i32),
    /// The kernel did not take filter number .0: error .1.
    NoFilter(usize, i32),
}

impl Answer {
    /// Why it is not as without a filter; `None` where it is.
    pub fn why_not(&self) -> Option<String> {
        match self {
            Self::Allowed => None,
            Self::Refused(error) => Some(format!("the filter refuses it: {}", Errno::from_raw(*error))),
            Self::Ended(libc::SIGSYS) => Some("the filter ends the program for it (SIGSYS)".to_owned()),
            Self::Ended(libc::SIGALRM) => Some("under the filter it does not come back".to_owned()),
            Self::Ended(signal) => Some(format!("the program ends under the filter (signal {signal})")),
            Self::NoFilter(place, error) => {
                Some(format!("the kernel refuses filter {}: {}", place + 1, Errno::from_raw(*error)))
            }
        }
    }
}

/// What a filter says to the calls of each burst, and to what a thread does between two (last).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answers {
    pub(crate) workloads: Vec<(Workload, Answer)>,
    pub(crate) between: Answer,
}

/// Asks it all, each of a child of its own. The calling process must have one thread, or do nothing else meanwhile.
///
/// # Errors
/// There is no child.
pub(crate) fn answers(programs: &[Program], bench: &Bench) -> io::Result<Answers> {
    let between = ask(programs, || rehearse().is_ok())?;
    let workloads = Workload::ALL.into_iter().map(|workload| {
        let answer =
            if workload.is_system_call() { ask(programs, || bench.burst(workload, 1) == 0)? } else { Answer::Allowed };
        Ok((workload, answer))
    });
    Ok(Answers { workloads: workloads.collect::<io::Result<_>>()?, between })
}

/// The child did not come to an answer.
const NONE: i32 = -1;
/// The kernel did not take a filter: its number and the error are added.
const NO_FILTER: i32 = 1 << 16;

/// Seconds after which a call does not come back.
const LIMIT: libc::c_uint = 5;

/// Runs `call` in a child under the filters; it says whether all was as without them, else the last error says what was not.
fn ask(programs: &[Program], call: impl Fn() -> bool) -> io::Result<Answer> {
    let place = Page::new()?;
    let word = place.word();
    word.store(NONE, Ordering::Relaxed);
    // SAFETY: no call that ends.
    let parent = unsafe { libc::getpid() };
    // SAFETY: the child makes system calls, allocates nothing, and ends without running anything of the parent's.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            word.store(under(programs, parent, call), Ordering::Release);
            // SAFETY: ends the child; where a filter refuses that, the C library ends it by a signal.
            unsafe { libc::_exit(0) }
        }
        child => {
            let mut status = 0;
            // SAFETY: the child is this process's own; the kernel writes one integer.
            while unsafe { libc::waitpid(child, &raw mut status, 0) } < 0 {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
            Ok(match word.load(Ordering::Acquire) {
                NONE if libc::WIFSIGNALED(status) => Answer::Ended(libc::WTERMSIG(status)),
                NONE => Answer::Refused(libc::EIO),
                0 => Answer::Allowed,
                error if error >= NO_FILTER => {
                    Answer::NoFilter(usize::try_from((error >> 16) - 1).unwrap_or_default(), error & 0xffff)
                }
                error => Answer::Refused(error),
            })
        }
    }
}

/// In the child: the filters, then the call. 0, an error, or which filter was not taken.
fn under(programs: &[Program], parent: libc::pid_t, call: impl Fn() -> bool) -> i32 {
    const ZERO: libc::c_ulong = 0;
    let number = |error: &io::Error| error.raw_os_error().unwrap_or(libc::EIO);
    // SAFETY: calls with integers: end with the parent, leave no core, end when a call does not come back.
    unsafe {
        libc::prctl(
            libc::PR_SET_PDEATHSIG,
            libc::c_ulong::try_from(libc::SIGKILL).unwrap_or_default(),
            ZERO,
            ZERO,
            ZERO,
        );
        libc::prctl(libc::PR_SET_DUMPABLE, ZERO, ZERO, ZERO, ZERO);
        libc::signal(libc::SIGALRM, libc::SIG_DFL);
        libc::alarm(LIMIT);
        if libc::getppid() != parent {
            return libc::ESRCH;
        }
    }
    if let Err(error) = forbid_new_privileges() {
        return number(&error);
    }
    for (place, program) in programs.iter().enumerate() {
        if let Err(error) = install(program, Speculation::AsTheKernelLikes) {
            return NO_FILTER * (i32::try_from(place).unwrap_or_default().min(0x3fff) + 1) + number(&error);
        }
    }
    if call() { 0 } else { number(&io::Error::last_os_error()).max(1) }
}

/// Memory that a child shares with its parent: its filter may refuse to write to anything else.
struct Page(*mut libc::c_void);

const SIZE: usize = 4096;

impl Page {
    fn new() -> io::Result<Self> {
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
        // SAFETY: a new mapping where the kernel likes, which replaces none.
        let address = unsafe { libc::mmap(std::ptr::null_mut(), SIZE, protection, flags, -1, 0) };
        if address == libc::MAP_FAILED { Err(io::Error::last_os_error()) } else { Ok(Self(address)) }
    }

    fn word(&self) -> &AtomicI32 {
        // SAFETY: a page is aligned and larger than a word, zeros are one, it lives as long as `self`, and all access is atomic.
        unsafe { AtomicI32::from_ptr(self.0.cast()) }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this size, and no reference to it outlives `self`.
        unsafe { libc::munmap(self.0, SIZE) };
    }
}

/// System calls that a filter has to allow, whatever else it does: those of all bursts, and what a thread needs between them and at the end.
pub fn calls() -> Vec<i64> {
    let between =
        [libc::SYS_futex, libc::SYS_clock_gettime, libc::SYS_rt_sigreturn, libc::SYS_exit, libc::SYS_exit_group];
    let mut all: Vec<i64> =
        Workload::ALL.iter().flat_map(|workload| workload.calls()).copied().chain(between).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use slowpath_seccomp::{Instruction, built_in, parse};

    fn asked(programs: &[Program]) -> Answers {
        answers(programs, &Bench::new().unwrap()).unwrap()
    }

    fn of(answers: &Answers, workload: Workload) -> &Answer {
        &answers.workloads.iter().find(|(one, _)| *one == workload).unwrap().1
    }

    #[test]
    fn filters_that_are_made_for_the_bursts_let_them_through() {
        let listed = built_in::allow_list(&calls()).unwrap();
        let checking = built_in::checks_arguments(&calls()).unwrap();
        for programs in [vec![listed.clone()], vec![checking.clone(), checking]] {
            let answers = asked(&programs);
            assert_eq!(answers.between, Answer::Allowed);
            assert!(answers.workloads.iter().all(|(_, answer)| *answer == Answer::Allowed), "{answers:?}");
        }
        // An allow-list lets no second filter be installed.
        assert_eq!(asked(&[listed.clone(), listed]).between, Answer::NoFilter(1, libc::EPERM));
    }

    #[test]
    fn what_a_filter_refuses_and_what_it_ends_is_known_before() {
        let filter = |name: &str, action: &str| {
            let text = format!(
                r#"{{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{{"names": ["{name}"], "action": "{action}", "errnoRet": 13}}]}}"#
            );
            [parse(text.as_bytes(), None).unwrap().program]
        };
        let answers = asked(&filter("openat", "SCMP_ACT_ERRNO"));
        assert_eq!(*of(&answers, Workload::OpenClose), Answer::Refused(libc::EACCES));
        assert_eq!((of(&answers, Workload::Getppid), &answers.between), (&Answer::Allowed, &Answer::Allowed));
        for action in ["SCMP_ACT_KILL_PROCESS", "SCMP_ACT_TRAP"] {
            let answers = asked(&filter("getppid", action));
            assert_eq!(*of(&answers, Workload::Getppid), Answer::Ended(libc::SIGSYS), "{action}");
            assert_eq!(*of(&answers, Workload::OpenClose), Answer::Allowed);
        }
        assert_eq!(asked(&filter("futex", "SCMP_ACT_ERRNO")).between, Answer::Refused(libc::EACCES));
        assert_eq!(asked(&filter("exit_group", "SCMP_ACT_ERRNO")).between, Answer::Allowed);
    }

    #[test]
    fn instructions_that_are_no_filter_are_reported() {
        let endless = Program::new(vec![Instruction { code: 0, jt: 0, jf: 0, k: 0 }]).unwrap();
        let allowing = built_in::checks_arguments(&[]).unwrap();
        assert_eq!(asked(&[allowing, endless]).between, Answer::NoFilter(1, libc::EINVAL));
    }
}
