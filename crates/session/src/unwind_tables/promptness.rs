//! Being scheduled soon after a wake-up, on a busy machine too.

/// How long a process that does little at a time wants to run at once, in ns: the least that the kernel takes (`sched(7)` and
/// `kernel/sched/syscalls.c`, `__setparam_fair`, since Linux 6.12).
const SLICE_NS: u64 = 100_000;

/// The slices that a thread had before it asked for short ones.
#[derive(Clone, Copy)]
pub struct UsualSlices(libc::sched_attr);

impl UsualSlices {
    /// Goes back to them: what is started from now on is scheduled as if nobody had asked.
    pub fn again(&self) {
        set(&self.0);
    }
}

/// Asks for short slices for this thread and what it starts from now on. Who asks for shorter ones than the others gets the same
/// share of a CPU, in more parts, and with it the CPU at once when it wakes up. Kernels before 6.12 take no notice.
/// Returns what there was before; `None` where nothing was asked for.
pub fn ask_for_short_slices() -> Option<UsualSlices> {
    let size = size_of::<libc::sched_attr>() as u32;
    // SAFETY: the structure consists of integers.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel fills at most `size` bytes of it, of this thread (0).
    let got = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) };
    if got != 0 || attributes.sched_policy != libc::SCHED_OTHER as u32 {
        return None;
    }
    let usual = UsualSlices(attributes);
    attributes.sched_runtime = SLICE_NS;
    set(&attributes);
    Some(usual)
}

/// Without it, tables come later.
fn set(attributes: &libc::sched_attr) {
    // SAFETY: the kernel reads the structure, whose size it was passed when it was filled.
    let _ = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const *attributes, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_and_what_it_starts_have_the_slice_that_was_asked_for() {
        let slice = || {
            // SAFETY: as above.
            let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
            let size = size_of::<libc::sched_attr>() as u32;
            // SAFETY: as above.
            assert_eq!(unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, size, 0) }, 0);
            (attributes.sched_policy, attributes.sched_nice, attributes.sched_runtime)
        };
        let asked = std::thread::spawn(move || {
            let before = slice();
            let usual = ask_for_short_slices().unwrap();
            let (after, inherited) = (slice(), std::thread::spawn(slice).join().unwrap());
            usual.again();
            assert_eq!(slice(), before);
            (before, after, inherited)
        });
        let (before, after, inherited) = asked.join().unwrap();
        assert_eq!((before.0, before.1), (after.0, after.1));
        // A kernel that knows slices says what they are.
        if before.2 != 0 {
            assert_eq!((after.2, inherited.2), (SLICE_NS, SLICE_NS));
        }
    }
}
