//! Bubbles that are put into a transaction on purpose: each is caught at the miss and named right, and a miss without a cause is
//! `unexplained`.
//!
//! Owns the cases and the counting; [`injected`] owns how a bubble is made. One run of each here; `bench/accept/ipc-bubbles` asks for
//! more with `SLOWPATH_BUBBLES`. Needs root and tracefs; without them the cases are skipped with the reason.

mod idle_switches;
mod injected;

use idle_switches::{Busy, Trace};
use injected::Injection;
use slowpath_ipc::latency::{Placement, Plan, run};
use slowpath_ipc::scheduling::{allowed_cpus, become_fifo};
use slowpath_ipc::trace::Instance;
use slowpath_ipc::trace::explain::{Cause, Explanation, explain_text};
use slowpath_ipc::trace::timeline::State;
use slowpath_ipc::transport::named;
use std::time::Duration;

/// The call in which the bubble is: a real-time caller's, for those alternate with normal ones.
const DISTURBED: u32 = 10;
/// Runs at most for each that counts: on a busy machine a deadline may be missed before the bubble, a hypervisor may take more time than the
/// bubble, and the trace may lack a switch.
const PATIENCE: usize = 10;

/// What a run came to.
enum Run {
    /// The disturbed call missed, and this is what was said of it.
    Caught(Box<Explanation>),
    /// Another one missed before.
    Earlier,
    /// None did.
    Missing,
}

fn once(injection: &Injection, cpus: &[usize]) -> Run {
    let instance = Instance::start().unwrap();
    let (client, server) = (cpus[0], *cpus.last().unwrap());
    let bubble = injection.prepare(client, server, DISTURBED);
    let plan = Plan {
        iterations: DISTURBED,
        places: vec![Placement { client: Some(client), server: Some(server) }],
        deadline: Duration::from_micros(injection.deadline_us),
        work: Some(injection.work),
        ..Plan::new(named("pipe").unwrap())
    };
    // Both processes are real-time from the beginning: on a busy machine the first call would miss before it is served.
    let pairs = std::thread::scope(|scope| {
        let forking = scope.spawn(|| {
            become_fifo(injected::PRIORITY).unwrap();
            run(&plan, instance.stopper(), &|| false).unwrap()
        });
        forking.join().unwrap()
    });
    drop(bubble);
    assert_eq!(pairs[0].ended, None);
    let Some(missed) = &pairs[0].missed else { return Run::Missing };
    match u32::try_from(pairs[0].samples.len()).unwrap() {
        calls if calls == DISTURBED + 1 => {
            Run::Caught(Box::new(explain_text(&instance.text().unwrap(), missed).unwrap()))
        }
        _ => Run::Earlier,
    }
}

/// A wrong explanation, with the longest parts of its timeline.
fn shown(explained: &Explanation) -> String {
    let mut parts = explained.timeline.clone();
    parts.sort_by(|one, other| other.us.total_cmp(&one.us));
    parts.truncate(12);
    format!("{:?} of {:.0} us: {}; {parts:#?}", explained.cause, explained.took_us, explained.text)
}

/// Whether nothing is named because the trace does not show what a thread did: where the kernel does not record that certain threads leave
/// their CPU (see [`idle_switches`]), who follows them comes without an event.
fn lacks_switches(explained: &Explanation) -> bool {
    let unknown: f64 = explained.timeline.iter().filter(|part| part.state == State::Unknown).map(|part| part.us).sum();
    explained.cause == Cause::Unexplained && unknown > explained.took_us / 10.0
}

/// Runs a case, prints its row, and fails where a bubble is not caught or gets another name.
fn named_right(injection: &Injection) {
    let _alone = injected::alone();
    let cpus = allowed_cpus().unwrap();
    if let Err(reason) = injection.possible(&cpus) {
        println!("skipped: {}: {reason}", injection.name);
        return;
    }
    let both = [cpus[0], *cpus.last().unwrap()];
    let busy = match idle_switches::seen(&both) {
        Trace::Complete => None,
        // What keeps them busy now may end.
        Trace::Busy | Trace::Incomplete(_) => Some(Busy::on(&both)),
    };
    if busy.is_some() {
        println!("both CPUs are kept busy");
        if let Trace::Incomplete(reason) = idle_switches::seen(&both) {
            println!("skipped: {}: {reason}", injection.name);
            return;
        }
    }
    let wanted = std::env::var("SLOWPATH_BUBBLES").ok().and_then(|number| number.parse().ok()).unwrap_or(1);
    let (mut right, mut wrong, mut earlier, mut stolen, mut unseen) = (0, Vec::new(), 0, 0, 0);
    for _ in 0..wanted * PATIENCE {
        if right + wrong.len() == wanted {
            break;
        }
        match once(injection, &cpus) {
            Run::Earlier => earlier += 1,
            Run::Missing => wrong.push("not caught".to_owned()),
            // Nobody injects that one; where the hypervisor did, it is true.
            Run::Caught(explained) if explained.cause == Cause::Stolen => stolen += 1,
            Run::Caught(explained) if lacks_switches(&explained) => unseen += 1,
            Run::Caught(explained) => match injection.is_named_in(&explained) {
                true => right += 1,
                false => wrong.push(shown(&explained)),
            },
        }
    }
    let expected = serde_json::to_value(injection.cause).unwrap();
    let expected = expected.as_str().unwrap();
    println!("| {} | {expected} | {right} of {wanted} | {earlier} | {stolen} | {unseen} |", injection.name);
    assert_eq!((right, &wrong), (wanted, &Vec::new()), "{}", injection.name);
}

macro_rules! cases {
    ($($name:ident = $injection:ident;)*) => {
        $(
            #[test]
            fn $name() {
                named_right(&injected::$injection);
            }
        )*
    };
}

cases! {
    a_fifo_hog_on_the_servers_cpu_is_named_with_its_thread = HOG;
    a_hog_that_the_caller_outranks_is_a_missing_inheritance = OUTRANKED_HOG;
    a_storm_of_timer_interrupts_is_named = INTERRUPTS;
    a_server_that_is_moved_back_and_forth_is_named_as_migration = MIGRATION;
    a_held_lock_is_named_with_the_thread_that_held_it = LOCK;
    a_throttled_group_is_named = THROTTLE;
    a_server_that_sleeps_is_unexplained = SLEEP;
    a_server_that_computes_is_unexplained = COMPUTATION;
}
