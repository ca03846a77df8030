//! Finding `slow_ipc_reply`: a program waits for another one that is slow to answer.
//!
//! **What is bad.** A thread asks another process (over a socket, a pipe, a bus, shared memory) and waits. In the profile of the one that
//! waits there is nothing; why it waits stands in that of the other.
//!
//! **Cost.** Of a launch: waits for replies ([`crate::round_trips`]) on the critical path to ready. Of what runs: all such waits of the
//! client's threads. Of each wait that in which those who worked for the reply waited themselves (for a timer, a lock, storage, a
//! process that is not recorded), and that in which they ran or stood in a run queue, where that is at least [`LONG`]: to serve takes time, and a
//! reply that is served at once is not slow. Replies of which that is less than [`SHORTEST`] do not count. The low end is without
//! run queues, the high end is the whole wait for slow replies.
//!
//! **Predicted saving.** None: what a reply has to take is not known. The cost is the most that its client can gain.
//!
//! **No finding** where waits or the server were not recorded; below [`LEAST_COST`] or [`LEAST_SHARE`] of the time to ready (of the length
//! of the recording where it holds no launch).
//!
//! **Confidence.** High on the critical path of a launch. Medium where a server went back to its event loop before it answered; of
//! what runs already also where the request of some replies is not seen, and where only the age of both tells who asks
//! ([`ToldBy`]); low there where most requests are not seen. Lost rows of `off_cpu` lower it.

use super::doubts::Doubts;
use super::fault_sums::{quantile, sorted};
use super::memory_evidence::short;
use super::wait_place::WaitPlace;
use crate::call_stacks::CallStacks;
use crate::critical_path::Request;
use crate::declaration::{Declaration, ShowsIn};
use crate::finding::{Confidence, Evidence, Finding, Row, milliseconds, row};
use crate::interval::summarize;
use crate::launch_facts::LaunchFacts;
use crate::ledger::Category;
use crate::round_trips::{Pair, RoundTrip, ToldBy, WaitOnTheWay, round_trips};
use serde_json::Value;
use slowpath_tables::{Nanos, ProcessKey, Quantity, Unit};
use std::collections::{BTreeMap, HashMap};

/// Name of the finding.
pub const NAME: &str = "slow_ipc_reply";

/// The finding.
pub const FINDING: Declaration = Declaration {
    name: NAME,
    former: &[],
    title: "waits for slow replies of another process",
    what: "A thread asks another process and waits, and the other waits itself before it answers, computes for long, or gets no CPU.",
    why: "Nothing runs in the one that waits, and its own profile shows nothing: the cause is in the process that answers.",
    helps: "Mend what the server waits for (the evidence names where), ask for several things at once, ask earlier, or keep the answer. \
            Where it stands in a run queue: a transport that inherits priority. Price: none for a wait that nobody needs.",
    by_hand: "perf trace -p CLIENT,SERVER -s, or strace -f -r -T -p SERVER: between the read of the request and the write of the reply \
              stands what it waited for; perf sched timehist --wakeup shows who woke whom",
    least: || {
        let (ms, share) = (LEAST_COST.as_ms(), LEAST_SHARE * 100.0);
        format!("{ms:.0} ms and {share:.0} % of the time to ready, or of the recording of what runs")
    },
    shows_in: ShowsIn::AnyWork,
    find: |input| find(input.observation.launches, input.call_stacks),
};

/// Least share of the time to ready, or of the length of the recording: as for [`super::timed_wait`].
pub const LEAST_SHARE: f64 = super::timed_wait::LEAST_SHARE;

/// Least cost: below, a server that was displaced once could be all of it.
pub const LEAST_COST: Nanos = Nanos(5_000_000);

/// From here on it counts that a server ran, or stood in a run queue: most of a frame (1/60 s), so somebody can notice one reply.
pub const LONG: Nanos = Nanos(10_000_000);

/// Replies with less that counts are left out. A server that hands work to a thread of its own waits for it for some 0.1 ms.
pub const SHORTEST: Nanos = Nanos(1_000_000);

/// Rows of evidence.
const MOST_ROWS: usize = 10;

/// What counts of one reply.
#[derive(Clone, Copy, Default)]
struct Slow {
    cost: Nanos,
    certain: Nanos,
    whole: Nanos,
}

impl Slow {
    /// `None` for a reply that was not slow.
    fn of(trip: &RoundTrip) -> Option<Self> {
        let long = |time: Nanos| if time >= LONG { time } else { Nanos(0) };
        let certain = trip.waiting() + long(trip.serving());
        let cost = certain + long(trip.runnable());
        (cost >= SHORTEST).then_some(Self { cost, certain, whole: trip.waited() })
    }

    fn add(&mut self, more: Self) {
        self.cost += more.cost;
        self.certain += more.certain;
        self.whole += more.whole;
    }
}

/// The replies of programs of one name to those of another, in one launch.
struct Found<'a> {
    facts: &'a LaunchFacts<'a>,
    call_stacks: Option<&'a CallStacks<'a>>,
    /// With what counts of each.
    slow: Vec<(RoundTrip, Slow)>,
    sum: Slow,
    /// All, also for replies that were not slow.
    waits: Vec<Nanos>,
    client: ProcessKey,
    server: ProcessKey,
    /// The least sure of what tells who asks.
    told_by: ToldBy,
}

/// Names of a client and of the process that most of the time went to.
type Names = (String, String);

/// Looks for the finding in recordings of one command.
fn find(launches: &[LaunchFacts<'_>], call_stacks: &[Option<CallStacks<'_>>]) -> Vec<Finding> {
    let mut by_names: BTreeMap<Names, Vec<Found<'_>>> = BTreeMap::new();
    for (facts, stacks) in launches.iter().zip(call_stacks) {
        for (names, found) in of_recording(facts, stacks.as_ref()) {
            by_names.entry(names).or_default().push(found);
        }
    }
    let in_all = by_names.into_iter().filter(|(_, found)| found.len() == launches.len());
    in_all.filter_map(|(names, found)| of_all(&names, found)).collect()
}

fn of_recording<'a>(facts: &'a LaunchFacts<'a>, stacks: Option<&'a CallStacks<'a>>) -> BTreeMap<Names, Found<'a>> {
    let mut by_names = BTreeMap::new();
    let is_launch = facts.tables.manifest.launch.is_some();
    if is_launch && facts.ready.is_none() {
        return by_names;
    }
    for Pair { client, server, told_by, trips } in round_trips(&facts.tables) {
        for trip in trips {
            let names = (facts.processes.name(client), facts.processes.name(trip.worker));
            let new = || Found {
                facts,
                call_stacks: stacks,
                slow: Vec::new(),
                sum: Slow::default(),
                waits: Vec::new(),
                client,
                server,
                told_by,
            };
            let found = by_names.entry(names).or_insert_with(new);
            found.told_by = found.told_by.max(told_by);
            found.waits.push(trip.waited());
            if let Some(slow) = Slow::of(&trip) {
                found.sum.add(slow);
                found.slow.push((trip, slow));
            }
        }
    }
    by_names
}

fn of_all(names: &Names, mut found: Vec<Found<'_>>) -> Option<Finding> {
    found.sort_by_key(|found| found.sum.cost);
    // Details are those of the launch in the middle.
    let shown = &found[(found.len() - 1) / 2];
    let is_material =
        shown.sum.cost >= LEAST_COST && shown.sum.cost.0 as f64 >= shown.facts.duration().0 as f64 * LEAST_SHARE;
    is_material.then(|| finding(names, &found, shown))
}

fn finding((client, worker): &Names, found: &[Found<'_>], shown: &Found<'_>) -> Finding {
    let places = by_place(shown);
    let (of_launch, cost) = (shown.facts.tables.manifest.launch.is_some(), shown.sum.cost.as_ms());
    let function = places.first().and_then(|(place, _)| place.named());
    let within = function.map(|function| format!(", which waits in {}", short(function))).unwrap_or_default();
    let when = if of_launch { " before it is ready" } else { "" };
    let length = shown.facts.duration().as_ms();
    // Several threads, or several processes of that name, can wait for longer than it takes.
    let of = if cost <= length { format!("of {length:.0} ms") } else { format!("ms in {length:.0} ms") };
    let process = shown.slow.iter().max_by_key(|(_, slow)| slow.cost).map_or(shown.server, |(trip, _)| trip.worker);
    let mut subject = row([
        ("process", Value::from(client.as_str())),
        ("pid", Value::from(shown.client.pid)),
        ("server", Value::from(worker.as_str())),
        ("server_pid", Value::from(process.pid)),
    ]);
    if let Some(function) = function {
        subject.insert("function".to_owned(), Value::from(function));
    }
    let Doubts { confidence, reasons } = doubts(shown, of_launch);
    Finding {
        name: NAME.to_owned(),
        former_name: None,
        title: format!("{client} waits {cost:.0} {of}{when} for slow replies of {worker}{within}"),
        subject,
        cost: cost_of(found),
        predicted_saving: None,
        confidence,
        reasons,
        evidence: vec![reply_rows(shown), place_rows(&places), slowest_rows(shown)],
        fixes: Vec::new(),
        see_by_hand: FINDING.by_hand.to_owned(),
    }
}

/// Of one launch from the certain part to the whole waits, of several the interval of all.
fn cost_of(found: &[Found<'_>]) -> Quantity {
    match found {
        [one] => {
            let [value, low, high] = [one.sum.cost, one.sum.certain, one.sum.whole].map(Nanos::as_ms);
            Quantity::interval(value, low, high, Unit::Ms)
        }
        several => {
            let costs: Vec<f64> = several.iter().map(|one| one.sum.cost.as_ms()).collect();
            summarize(&costs, Unit::Ms).unwrap_or(Quantity::exact(0.0, Unit::Ms))
        }
    }
}

fn doubts(shown: &Found<'_>, of_launch: bool) -> Doubts {
    let mut doubts = Doubts::none();
    if shown.slow.iter().any(|(trip, _)| trip.rested) {
        doubts.lower(
            Confidence::Medium,
            "before it answered a server went back to where it waits for requests, until a timer of its own woke it, a device, or a \
             process that is not recorded",
        );
    }
    let unseen = shown.slow.iter().filter(|(trip, _)| trip.request == Request::NotSeen).count();
    // Of a launch its critical path tells.
    if unseen > 0 && shown.told_by != ToldBy::CriticalPath {
        let reason = format!(
            "of {unseen} of {} slow replies the request is not seen: the server was awake when it came",
            shown.slow.len()
        );
        let is_mostly_so = unseen * 2 > shown.slow.len();
        doubts.lower(if is_mostly_so { Confidence::Low } else { Confidence::Medium }, reason);
    }
    if shown.told_by == ToldBy::Age {
        doubts.lower(
            Confidence::Medium,
            "both wait for each other in turn; that this one asks is told from its program, which was started later",
        );
    }
    let tables = &shown.facts.tables;
    doubts.of_losses(tables.manifest.losses.of("off_cpu"), tables.off_cpu.len(), "rows of off_cpu");
    let in_queue = shown.sum.cost - shown.sum.certain;
    if in_queue.0 > 0 {
        doubts.reasons.push(format!("in {:.0} ms of it who was to work stood in a run queue", in_queue.as_ms()));
    }
    let most = if of_launch {
        "it is the most that a launch can gain: what a reply has to take is not known"
    } else {
        "it is the time of the client's threads together, and the most that they can gain"
    };
    doubts.reasons.push(most.to_owned());
    doubts
}

/// Places of the longest waits on the way to slow replies, with count and sum, most costly first.
fn by_place(found: &Found<'_>) -> Vec<(WaitPlace, (u64, Nanos))> {
    let waits = found.slow.iter().filter_map(|(trip, _)| trip.longest);
    let wanted: HashMap<(ProcessKey, u32, Nanos), WaitOnTheWay> =
        waits.map(|wait| ((wait.process, wait.tid, wait.from), wait)).collect();
    let mut places: BTreeMap<WaitPlace, (u64, Nanos)> = BTreeMap::new();
    for off in &found.facts.tables.off_cpu {
        let Some(wait) = wanted.get(&(off.process(), off.tid, off.ts)) else { continue };
        let stack = found.call_stacks.and_then(|stacks| stacks.path(off.stack));
        let place = WaitPlace::of(Category::of_wait(off.reason), off.syscall, stack, found.call_stacks);
        let (count, sum) = places.entry(place).or_default();
        (*count, *sum) = (*count + 1, *sum + wait.time);
    }
    let mut places: Vec<_> = places.into_iter().collect();
    places.sort_by_key(|(_, (_, sum))| std::cmp::Reverse(*sum));
    places
}

fn reply_rows(found: &Found<'_>) -> Evidence {
    let waits = sorted(found.waits.iter().map(|time| time.0));
    let at = |share| milliseconds(Nanos(quantile(&waits, share)));
    let sum = |of: fn(&RoundTrip) -> Nanos| milliseconds(found.slow.iter().map(|(trip, _)| of(trip)).sum());
    let all = row([
        ("replies", Value::from(found.waits.len())),
        ("p50_ms", at(0.5)),
        ("p95_ms", at(0.95)),
        ("p99_ms", at(0.99)),
        ("slow_replies", Value::from(found.slow.len())),
        ("waited_ms", sum(RoundTrip::waited)),
        ("serving_ms", sum(RoundTrip::serving)),
        ("waiting_ms", sum(RoundTrip::waiting)),
        ("runnable_ms", sum(RoundTrip::runnable)),
        ("unknown_ms", sum(|trip| trip.unknown)),
    ]);
    Evidence { text: "Replies, and what the waits for slow ones were spent on.".to_owned(), rows: vec![all] }
}

fn place_rows(places: &[(WaitPlace, (u64, Nanos))]) -> Evidence {
    let rows = places.iter().take(MOST_ROWS).map(|(place, (count, sum))| -> Row {
        row([
            ("wait", Value::from(place.category.as_str())),
            ("syscall", Value::from(place.syscall)),
            ("function", place.named().map_or(Value::Null, Value::from)),
            ("stack", Value::from(place.functions.join(";"))),
            ("waits", Value::from(*count)),
            ("wait_ms", milliseconds(*sum)),
        ])
    });
    Evidence { text: "The longest wait on the way to each slow reply, by place.".to_owned(), rows: rows.collect() }
}

fn slowest_rows(found: &Found<'_>) -> Evidence {
    let mut slow: Vec<&(RoundTrip, Slow)> = found.slow.iter().collect();
    slow.sort_by_key(|(trip, slow)| (std::cmp::Reverse(slow.cost), trip.from));
    let rows = slow.into_iter().take(MOST_ROWS).map(|(trip, _)| {
        row([
            ("tid", Value::from(trip.tid)),
            ("at_ms", milliseconds(trip.from - found.facts.released)),
            ("waited_ms", milliseconds(trip.waited())),
            ("serving_ms", milliseconds(trip.serving())),
            ("waiting_ms", milliseconds(trip.waiting())),
            ("runnable_ms", milliseconds(trip.runnable())),
        ])
    });
    Evidence { text: "The slowest replies.".to_owned(), rows: rows.collect() }
}
