//! Why a thread left its CPU, from the state that the scheduler prints and from what is known of where it was: the system call, or the
//! kernel's functions on its call stack. Without either it waited for something in the kernel, and which is not known.

use slowpath_tables::OffCpuReason;

/// Functions of the kernel that wait, by the begin of their names. The innermost that fits decides.
const FUNCTIONS: &[(&str, OffCpuReason)] = &[
    ("filemap_fault", OffCpuReason::FaultIo),
    ("folio_lock_or_retry", OffCpuReason::FaultIo),
    ("__folio_lock_or_retry", OffCpuReason::FaultIo),
    ("futex_wait", OffCpuReason::Futex),
    ("hrtimer_nanosleep", OffCpuReason::Timer),
    ("do_nanosleep", OffCpuReason::Timer),
    ("do_epoll_wait", OffCpuReason::Poll),
    ("ep_poll", OffCpuReason::Poll),
    ("do_sys_poll", OffCpuReason::Poll),
    ("do_poll", OffCpuReason::Poll),
    ("do_select", OffCpuReason::Poll),
    ("do_sigtimedwait", OffCpuReason::Poll),
    ("io_cqring_wait", OffCpuReason::Poll),
    ("do_wait", OffCpuReason::Child),
    ("kernel_wait4", OffCpuReason::Child),
    ("wait_for_vfork_done", OffCpuReason::Child),
    ("pipe_read", OffCpuReason::PipeOrSocket),
    ("anon_pipe_read", OffCpuReason::PipeOrSocket),
    ("pipe_write", OffCpuReason::PipeOrSocket),
    ("unix_stream_read", OffCpuReason::PipeOrSocket),
    ("sock_", OffCpuReason::PipeOrSocket),
    ("n_tty_read", OffCpuReason::PipeOrSocket),
    ("eventfd_read", OffCpuReason::PipeOrSocket),
    ("io_schedule", OffCpuReason::OtherIo),
    ("blk_mq_get_tag", OffCpuReason::OtherIo),
    ("jbd2_", OffCpuReason::OtherIo),
];

/// The same for system calls by name.
const CALLS: &[(&str, OffCpuReason)] = &[
    ("futex", OffCpuReason::Futex),
    ("nanosleep", OffCpuReason::Timer),
    ("clock_nanosleep", OffCpuReason::Timer),
    ("poll", OffCpuReason::Poll),
    ("ppoll", OffCpuReason::Poll),
    ("select", OffCpuReason::Poll),
    ("pselect6", OffCpuReason::Poll),
    ("epoll_wait", OffCpuReason::Poll),
    ("epoll_pwait", OffCpuReason::Poll),
    ("epoll_pwait2", OffCpuReason::Poll),
    ("io_uring_enter", OffCpuReason::Poll),
    ("rt_sigtimedwait", OffCpuReason::Poll),
    ("pause", OffCpuReason::Poll),
    ("wait4", OffCpuReason::Child),
    ("waitid", OffCpuReason::Child),
    ("vfork", OffCpuReason::Child),
    ("read", OffCpuReason::PipeOrSocket),
    ("write", OffCpuReason::PipeOrSocket),
    ("readv", OffCpuReason::PipeOrSocket),
    ("writev", OffCpuReason::PipeOrSocket),
    ("recvfrom", OffCpuReason::PipeOrSocket),
    ("recvmsg", OffCpuReason::PipeOrSocket),
    ("sendto", OffCpuReason::PipeOrSocket),
    ("sendmsg", OffCpuReason::PipeOrSocket),
    ("accept", OffCpuReason::PipeOrSocket),
    ("accept4", OffCpuReason::PipeOrSocket),
    ("connect", OffCpuReason::PipeOrSocket),
];

/// What a function of the kernel's waits for.
pub fn of_function(name: &str) -> Option<OffCpuReason> {
    let found = FUNCTIONS.iter().find(|(begin, _)| name.starts_with(begin));
    found.map(|(_, reason)| *reason)
}

/// What is known of why a thread stops running.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place<'a> {
    /// By its call stack.
    pub by_stack: Option<OffCpuReason>,
    /// The system call that it is in.
    pub call: Option<&'a str>,
}

/// A task's state in `sched_switch`, in numbers, as the kernel prints it (include/trace/events/sched.h).
pub fn state(bits: i64) -> &'static str {
    match bits {
        0 => "R",
        _ if bits & 0x30 != 0 => "X",
        _ if bits & 0x02 != 0 => "D",
        _ if bits & 0x01 != 0 => "S",
        _ if bits & 0x0c != 0 => "T",
        _ if bits & 0xff == 0 => "R",
        _ => "I",
    }
}

/// The reason for a state as `sched_switch` prints it: `R`, `R+`, `S`, `D`, `T`, `t`, `X`, `Z`, `P`, `I` (include/trace/events/sched.h).
/// None for a task that ends.
pub fn of_state(state: &str, place: Place<'_>) -> Option<OffCpuReason> {
    let waits_for_storage = state.starts_with('D');
    match state.chars().next()? {
        'R' => Some(OffCpuReason::Runnable),
        'T' | 't' => Some(OffCpuReason::Stopped),
        'X' | 'Z' => None,
        _ => {
            let by_call = || CALLS.iter().find(|(name, _)| place.call == Some(*name)).map(|(_, reason)| *reason);
            Some(match place.by_stack.or_else(by_call) {
                // A file whose data are not there yet, not a pipe: those wait interruptibly.
                Some(OffCpuReason::PipeOrSocket) if waits_for_storage => OffCpuReason::OtherIo,
                Some(reason) => reason,
                None => OffCpuReason::Kernel,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_says_who_could_run_and_the_place_says_what_the_others_waited_for() {
        let none = Place::default();
        assert_eq!(of_state("R+", none), Some(OffCpuReason::Runnable));
        assert_eq!(of_state("S", none), Some(OffCpuReason::Kernel));
        assert_eq!(of_state("X|K", none), None);
        assert_eq!(of_state("", none), None);
        let read = Place { call: Some("read"), ..none };
        assert_eq!(of_state("S", read), Some(OffCpuReason::PipeOrSocket));
        assert_eq!(of_state("D", read), Some(OffCpuReason::OtherIo));
        let by_stack = of_function("futex_wait_queue");
        assert_eq!(of_state("S", Place { by_stack, ..read }), Some(OffCpuReason::Futex));
        assert_eq!(of_function("schedule"), None);
    }
}
