//! Latency, inheritance and the trace of a miss on this machine: verdicts and counts, never times.

use slowpath_ipc::conditions::Conditions;
use slowpath_ipc::latency::inheritance::{Kind, probe};
use slowpath_ipc::latency::sample::Caller;
use slowpath_ipc::latency::work::burn;
use slowpath_ipc::latency::{Placement, Plan, outcome, run};
use slowpath_ipc::scheduling::{allowed_cpus, become_fifo};
use slowpath_ipc::trace::explain::{Cause, explain};
use slowpath_ipc::trace::{Instance, instance};
use slowpath_ipc::transport::{ALL, Transport, named};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

fn transport(name: &str) -> &'static Transport {
    named(name).unwrap()
}

/// Whether a thread here may be real-time; says so when not.
fn real_time() -> bool {
    let allowed = std::thread::spawn(|| become_fifo(1)).join().unwrap();
    if let Err(error) = &allowed {
        println!("skipped: no SCHED_FIFO here: {error}");
    }
    allowed.is_ok()
}

/// Keeps tests apart of which one takes a CPU with real-time threads, and another says whom a caller waited for.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[test]
fn every_iteration_of_every_transport_is_a_real_time_and_a_normal_transaction() {
    let fifo = real_time();
    for transport in ALL.iter().filter(|transport| (transport.check)().is_ok()) {
        let plan = Plan { iterations: 5, places: vec![Placement::default(); 2], ..Plan::new(transport) };
        let pairs = run(&plan, None, &|| false).unwrap();
        assert_eq!(pairs.len(), 2);
        for pair in pairs {
            assert_eq!(pair.ended, None, "{}", transport.name);
            let of = |caller| pair.samples.iter().filter(|sample| sample.caller == caller).count();
            assert_eq!((of(Caller::Fifo), of(Caller::Normal)), (if fifo { 5 } else { 0 }, 5), "{}", transport.name);
            assert!(
                pair.samples.iter().all(|one| one.start <= one.served && one.served <= one.end),
                "{}",
                transport.name
            );
        }
    }
}

#[test]
fn a_pinned_pair_stays_on_one_cpu_and_a_pair_kept_apart_never_does() {
    let cpus = allowed_cpus().unwrap();
    let pinned = |client: usize, server: usize| {
        let place = Placement { client: Some(client), server: Some(server) };
        let plan = Plan { iterations: 10, places: vec![place], ..Plan::new(transport("pipe")) };
        let pairs = run(&plan, None, &|| false).unwrap();
        outcome::pair(&pairs[0], 2_500_000, false)
    };
    let one = pinned(cpus[0], cpus[0]);
    assert_eq!((one.sync, one.ratio), (Some("GOOD"), Some(1.0)));
    if let Some(other) = cpus.get(1) {
        let apart = pinned(cpus[0], *other);
        assert_eq!((apart.sync, apart.same), (Some("POOR"), 0));
    } else {
        println!("skipped: one CPU");
    }
}

#[test]
fn a_fixed_rate_counts_from_the_intended_start() {
    let plan = Plan { iterations: 5, rate: Some(500.0), ..Plan::new(transport("pipe")) };
    let samples = run(&plan, None, &|| false).unwrap().remove(0).samples;
    let normal: Vec<_> = samples.iter().filter(|sample| sample.caller == Caller::Normal).collect();
    assert_eq!(normal.len(), 5);
    assert!(normal.windows(2).all(|two| two[1].intended - two[0].intended == 4_000_000));
    assert!(
        samples.iter().all(|sample| sample.start >= sample.intended && sample.latency() >= sample.end - sample.start)
    );
}

#[test]
fn a_futex_without_inheritance_fails_and_its_caller_waits_behind_a_normal_process() {
    let _alone = alone();
    if !real_time() {
        return;
    }
    let judged = probe(transport("futex-shm"), &Conditions::here(), &|| false).unwrap();
    assert_eq!((judged.kind, judged.verdict()), (Kind::None, "FAIL"), "{judged:?}");
    let inversion = judged.inversion.unwrap();
    assert!(inversion.is_inverted(), "{inversion:?}");
}

#[test]
fn a_pi_futex_passes_and_no_normal_process_runs_before_its_caller() {
    let _alone = alone();
    if !real_time() {
        return;
    }
    let judged = probe(transport("pi-futex-shm"), &Conditions::here(), &|| false).unwrap();
    assert_eq!((judged.kind, judged.verdict()), (Kind::Rt, "PASS"), "{judged:?}");
    let inversion = judged.inversion.unwrap();
    assert!(!inversion.is_inverted(), "{inversion:?}");
}

/// Sixty milliseconds of CPU time in the first service: a miss without an outside cause.
fn compute() {
    burn(60_000_000);
}

#[test]
fn a_miss_stops_the_trace_with_the_transaction_in_it_and_no_cause_is_invented() {
    let _alone = alone();
    if !real_time() {
        return;
    }
    let instance = match Instance::start() {
        Ok(instance) => instance,
        Err(error) => {
            println!("skipped: {error}");
            return;
        }
    };
    let cpu = *allowed_cpus().unwrap().last().unwrap();
    // A PI futex: nothing of normal priority comes between.
    let plan = Plan {
        iterations: 50,
        places: vec![Placement { client: Some(cpu), server: Some(cpu) }],
        deadline: Duration::from_millis(50),
        work: Some(compute),
        ..Plan::new(transport("pi-futex-shm"))
    };
    let pairs = run(&plan, instance.stopper(), &|| false).unwrap();
    let missed = pairs[0].missed.clone().unwrap();
    // The first transaction of a real-time caller missed, and nothing came after it.
    assert_eq!((pairs[0].samples.len(), missed.sample.caller), (1, Caller::Fifo));
    let explained = explain(&instance.text().unwrap().bytes, &missed);
    assert!(explained.events > 0);
    // A hypervisor that took the CPU away is a cause, and may be one here.
    let stolen = missed.beside.stolen.get(&u32::try_from(cpu).unwrap()).copied().unwrap_or(0);
    let expected = if explained.cause == Cause::Stolen && stolen > 30_000_000 {
        println!("skipped: steal on CPU {cpu} grew by {stolen} ns");
        Cause::Stolen
    } else {
        Cause::Unexplained
    };
    assert_eq!(explained.cause, expected, "{explained:?} {missed:?}");
    let server_ran: f64 = explained.timeline.iter().map(|part| part.us).sum();
    assert!((server_ran - explained.took_us).abs() < 1.0, "{explained:?}");
}

#[test]
fn a_server_that_waits_behind_a_computing_process_is_explained_by_name() {
    let _alone = alone();
    if !real_time() {
        return;
    }
    let Ok(instance) = Instance::start() else {
        println!("skipped: no tracefs");
        return;
    };
    let cpus = allowed_cpus().unwrap();
    let cpu = *cpus.last().unwrap();
    // A real-time thread of the highest priority on the server's CPU: 40 ms of each 50, until a caller met it.
    let met = Arc::new(AtomicBool::new(false));
    let until = Arc::clone(&met);
    let hog = std::thread::spawn(move || {
        slowpath_ipc::scheduling::pin(cpu)?;
        become_fifo(99)?;
        while !until.load(Ordering::Relaxed) {
            burn(40_000_000);
            std::thread::sleep(Duration::from_millis(10));
        }
        std::io::Result::Ok(())
    });
    let plan = Plan {
        iterations: 100_000,
        places: vec![Placement { client: cpus.first().copied(), server: Some(cpu) }],
        deadline: Duration::from_millis(15),
        ..Plan::new(transport("pi-futex-shm"))
    };
    let pairs = run(&plan, instance.stopper(), &|| false);
    met.store(true, Ordering::Relaxed);
    let pairs = pairs.unwrap();
    hog.join().unwrap().unwrap();
    let missed = pairs[0].missed.clone().expect("a caller met the process");
    let explained = explain(&instance.text().unwrap().bytes, &missed);
    // On a busy machine the caller may meet another one first: a system call that this kernel does not preempt. That is a
    // busy CPU too, and the trace names who it was.
    let stolen: u64 = missed.beside.stolen.values().sum();
    if cpus.len() > 1 && stolen > 0 && explained.cause != Cause::CpuBusy {
        // Taken from the client's CPU too: then that is the cause, or half of the time has none.
        println!("skipped: steal grew by {stolen} ns");
        assert!([Cause::Stolen, Cause::Unexplained].contains(&explained.cause), "{explained:?}");
    } else if cpus.len() > 1 {
        assert_eq!(explained.cause, Cause::CpuBusy, "{explained:?}");
        let who = explained.who.clone().unwrap();
        let named = |note: &String| note.contains(&format!("({},", who.tid));
        assert!(explained.timeline.iter().filter_map(|part| part.note.as_ref()).any(named), "{explained:?}");
        assert!(explained.explained_us * 2.0 >= explained.took_us, "{explained:?}");
    }
}

#[test]
fn an_instance_ends_with_its_owner_even_when_that_one_is_killed() {
    use std::io::Read;
    let (mut read, mut write) = std::io::pipe().unwrap();
    let owner = slowpath_ipc::children::Child::start(move || {
        use std::io::Write;
        let text = match Instance::start() {
            Ok(instance) => {
                let path = instance.path();
                std::mem::forget(instance);
                path
            }
            Err(_) => String::new(),
        };
        if write.write_all(text.as_bytes()).and_then(|()| write.write_all(b"\n")).is_err() {
            return 1;
        }
        loop {
            std::thread::park();
        }
    })
    .unwrap();
    let mut path = Vec::new();
    let mut byte = [0];
    while read.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
        path.push(byte[0]);
    }
    if path.is_empty() {
        println!("skipped: no tracefs");
        return;
    }
    let path = String::from_utf8(path).unwrap();
    let name = path.rsplit('/').next().unwrap();
    assert!(instance::names().unwrap().contains(&name.to_owned()));
    // Killed, as by anybody.
    drop(owner);
    let gone = || !instance::names().unwrap().contains(&name.to_owned());
    for _ in 0..600 {
        if gone() {
            break;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(gone(), "{name} is still there");
}
