//! Whether the kernel's trace shows when a CPU leaves its idle task, and CPUs that are never idle where it does not.
//!
//! On one machine the events of a CPU's idle task were missing, those of perf too; why is not known. A server that is woken there gets
//! the CPU without an event, and what it did is unknown. The explanation says so, and no injected bubble can be named. While a thread of
//! the lowest class runs whenever nothing else does, the CPU has no idle task to leave.

use slowpath_ipc::scheduling::pin;
use slowpath_ipc::trace::Instance;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Naps on each CPU: most of them find it idle.
const NAPS: u32 = 20;

/// What the trace shows of CPUs and their idle tasks.
pub enum Trace {
    /// When each leaves its idle task.
    Complete,
    /// Too few switches to decide: they were busy.
    Busy,
    /// That one enters it and does not leave it; said in words.
    Incomplete(String),
}

/// Looks at these CPUs.
pub fn seen(cpus: &[usize]) -> Trace {
    let instance = Instance::start().unwrap();
    for cpu in cpus.iter().copied() {
        let naps = move || {
            pin(cpu).unwrap();
            (0..NAPS).for_each(|_| std::thread::sleep(Duration::from_millis(1)));
        };
        std::thread::spawn(naps).join().unwrap();
    }
    let text = String::from_utf8_lossy(&instance.text().unwrap().bytes).into_owned();
    let counted = cpus.iter().map(|cpu| {
        let on_cpu = format!("[{cpu:03}]");
        let switches = text.lines().filter(|line| line.contains(&on_cpu) && line.contains(" sched_switch: "));
        switches.fold((0, 0), |(to, from), line| {
            (to + u32::from(line.contains(" next_pid=0 ")), from + u32::from(line.contains(" prev_pid=0 ")))
        })
    });
    let mut result = Trace::Complete;
    for (cpu, (to_idle, from_idle)) in cpus.iter().zip(counted) {
        if to_idle < NAPS / 2 {
            result = Trace::Busy;
        } else if from_idle * 2 < to_idle {
            return Trace::Incomplete(format!(
                "the kernel's trace shows {to_idle} switches of CPU {cpu} to its idle task and {from_idle} away from it"
            ));
        }
    }
    result
}

/// Threads that leave no CPU idle, until this is dropped.
pub struct Busy {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Busy {
    /// One on each of these CPUs, of SCHED_IDLE: it runs only where nothing else would.
    pub fn on(cpus: &[usize]) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let spin = |cpu: usize| {
            let is_over = Arc::clone(&is_over);
            std::thread::spawn(move || {
                pin(cpu).unwrap();
                let parameter = libc::sched_param { sched_priority: 0 };
                // SAFETY: the parameter is alive; 0 is the calling thread.
                assert_eq!(unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const parameter) }, 0);
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        };
        let threads = cpus.iter().copied().map(spin).collect();
        Self { is_over, threads }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }
}
