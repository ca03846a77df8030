//! Finding `slow_ipc_reply`: a program waits for another one that is slow to answer.
//!
//! **What is bad.** A thread asks another process (over a socket, a pipe, a bus, shared memory) and waits. In the profile of the one that
//! waits there is nothing; why it waits stands in that of the other.
//!
//! **Cost.** Of a launch: waits for replies ([`crate::time::round_trips`]) on the critical path to ready, of several at one time the outermost.
//! Of what runs: all such waits of the client's threads, without those of a server that itself works for a reply meanwhile. Of each
//! wait that in which those who worked for the reply waited themselves (for a timer, a lock, storage, a process that is not recorded),
//! and that in which they ran or stood in a run queue, where that is at least [`LONG`]: to serve takes time, and a reply that is
//! served at once is not slow. Sleeps by which a server keeps a pace (frames, ticks: `crate::time::paced_threads`) are no cost. Replies of
//! which it is less than [`SHORTEST`] do not count. The low end is without run queues, and
//! without waits of a server in its event loop, which may have had nothing to say; the high end is the whole wait for slow replies.
//!
//! **Predicted saving.** None: what a reply has to take is not known. The cost is the most that its client can gain.
//!
//! **No finding** where waits or the server were not recorded; below [`LEAST_COST`] or [`LEAST_SHARE`] of the time to ready (of the length
//! of the recording where it holds no launch).
//!
//! **Confidence.** High on the critical path of a launch, and where only one of two waits for the other. Medium where a server went back to
//! its event loop before it answered, where it sleeps for less than 100 ms before each reply, where the client waits on a futex, which may
//! be a lock that the other held, and of what runs already where no wake-up shows the request of some replies, or where age and rest show
//! who asks ([`DirectionFrom`]). Low of what runs already where only age does, where no wake-up shows most requests, and where most of the
//! cost are rests of a server while the client waited for events. Low where most of the cost is time in run queues of fewer than
//! [`REPEATED`] replies. Lost rows of `off_cpu` lower it.

use super::doubts::Doubts;
use super::fault_sums::{quantile, sorted};
use super::memory_evidence::short;
use super::timed_wait;
use super::wait_place::WaitPlace;
use crate::declaration::{Declaration, ShowsIn};
use crate::finding::{Confidence, Evidence, Finding, Row, milliseconds, row};
use crate::fix_inputs::FixInputs;
use crate::integer_hash::IntegerSet;
use crate::interval::summarize;
use crate::launch_facts::LaunchFacts;
use crate::needs::Need;
use crate::stacks::call_stacks::CallStacks;
use crate::threshold::{Condition, Threshold, Whole};
use crate::time::critical_path::Request;
use crate::time::ledger::Category;
use crate::time::paced_threads::{self, paced_threads};
use crate::time::round_trips::{DirectionFrom, Pair, RoundTrip, ServerWait};
use serde_json::Value;
use slowpath_tables::{Nanos, ProcessKey, Quantity, Unit};
use std::collections::{BTreeMap, HashMap, HashSet};

/// Name of the finding.
pub const NAME: &str = "slow_ipc_reply";

/// The finding.
pub const FINDING: Declaration = Declaration {
    name: NAME,
    former: &[],
    title: "waits for slow replies of another process",
    what: "A thread sends a request to another process and waits; before it replies, that process waits itself, computes for a long \
        time, or gets no CPU.",
    why: "The waiting process is off-CPU, so its own profile shows nothing: the cause is in the process that replies.",
    helps: "Fix what the server waits for (the evidence shows where), batch requests, send them earlier, or cache the reply. If the \
        server is runnable but not running: use a transport with priority inheritance. Trade-off: none for an unnecessary wait.",
    by_hand: "perf trace -p CLIENT,SERVER -s, or strace -f -r -T -p SERVER: between the read of the request and the write of the reply \
              stands what it waited for; perf sched timehist --wakeup shows who woke whom",
    threshold: THRESHOLD,
    needs: &[Need::Waits],
    shows_in: ShowsIn::AnyWork,
    find: |input| find(input.observation.launches, input.call_stacks),
};

/// Least share of the time to ready, or of the length of the recording: as for [`timed_wait`].
pub const LEAST_SHARE: f64 = timed_wait::LEAST_SHARE;

/// Least cost: below, a server that was displaced once could be all of it.
pub const LEAST_COST: Nanos = Nanos(5_000_000);

/// From here on it counts that a server ran, or stood in a run queue: most of a frame (1/60 s), so somebody can notice one reply.
pub const LONG: Nanos = Nanos(10_000_000);

/// Replies with less that counts are left out. A server that hands work to a thread of its own waits for it for some 0.1 ms.
pub const SHORTEST: Nanos = Nanos(1_000_000);

/// From here on it is reported.
const THRESHOLD: Threshold = Threshold {
    cost: LEAST_COST,
    share: LEAST_SHARE,
    of: Whole::TimeToReadyOrRecording,
    condition: Some(Condition::Replies(SHORTEST)),
};

/// Replies that stood in a run queue for [`LONG`], from which on load that came and went is no explanation.
const REPEATED: usize = 3;

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
    fn of(trip: &RoundTrip, paced: &IntegerSet<(ProcessKey, u32)>) -> Option<Self> {
        let sleep = trip.longest.filter(|wait| wait.category == Category::Timer);
        let pace = sleep.filter(|wait| paced.contains(&(wait.process, wait.tid))).map_or(Nanos(0), |wait| wait.time);
        let waiting = trip.waiting() - pace;
        let cost = waiting + long(trip.serving()) + in_queue(trip);
        let certain = if trip.rested { Nanos(0) } else { waiting } + long(trip.serving());
        (cost >= SHORTEST).then_some(Self { cost, certain, whole: trip.waited() })
    }

    fn add(&mut self, more: Self) {
        self.cost += more.cost;
        self.certain += more.certain;
        self.whole += more.whole;
    }
}

/// A time that counts although to serve takes time.
fn long(time: Nanos) -> Nanos {
    if time >= LONG { time } else { Nanos(0) }
}

/// The time in run queues that counts.
fn in_queue(trip: &RoundTrip) -> Nanos {
    long(trip.runnable())
}

/// The replies of programs of one name to those of another, in one launch.
struct SlowReplies<'a> {
    facts: &'a LaunchFacts<'a>,
    call_stacks: Option<&'a CallStacks<'a>>,
    /// With the client, and what counts of each.
    slow: Vec<(ProcessKey, RoundTrip, Slow)>,
    sum: Slow,
    /// All, also for replies that were not slow.
    waits: Vec<Nanos>,
    /// The least sure of all.
    direction_from: DirectionFrom,
}

/// Names of a client and of the process that most of the time went to.
type Names = (String, String);

/// Looks for the finding in recordings of one command.
fn find(launches: &[LaunchFacts<'_>], call_stacks: &[Option<CallStacks<'_>>]) -> Vec<Finding> {
    let mut by_names: BTreeMap<Names, Vec<SlowReplies<'_>>> = BTreeMap::new();
    for (facts, stacks) in launches.iter().zip(call_stacks) {
        for (names, found) in of_recording(facts, stacks.as_ref()) {
            by_names.entry(names).or_default().push(found);
        }
    }
    let in_all = by_names.into_iter().filter(|(_, found)| found.len() == launches.len());
    let material: Vec<(Names, Vec<SlowReplies<'_>>)> = in_all.filter_map(material).collect();
    // Sleeps and time-outs of the server are on the path of the launch, too.
    let is_timed = !material.is_empty() && timed_wait::is_found(launches, call_stacks);
    material.iter().map(|(names, found)| finding(names, found, is_timed)).collect()
}

fn of_recording<'a>(
    facts: &'a LaunchFacts<'a>,
    stacks: Option<&'a CallStacks<'a>>,
) -> BTreeMap<Names, SlowReplies<'a>> {
    let mut by_names = BTreeMap::new();
    let is_launch = facts.tables.manifest.launch.is_some();
    if is_launch && facts.ready.is_none() {
        return by_names;
    }
    let mut pairs = facts.round_trips().to_vec();
    let paced = if pairs.is_empty() { IntegerSet::default() } else { paced_threads(&facts.tables) };
    if is_launch {
        keep_outermost(&mut pairs)
    } else {
        keep_unasked(&mut pairs)
    }
    for Pair { client, direction_from, trips, .. } in pairs {
        for trip in trips {
            let names = (facts.processes.name(client), facts.processes.name(trip.worker));
            let new = || SlowReplies {
                facts,
                call_stacks: stacks,
                slow: Vec::new(),
                sum: Slow::default(),
                waits: Vec::new(),
                direction_from,
            };
            let found = by_names.entry(names).or_insert_with(new);
            found.direction_from = found.direction_from.max(direction_from);
            found.waits.push(trip.waited());
            if let Some(slow) = Slow::of(&trip, &paced) {
                found.sum.add(slow);
                found.slow.push((client, trip, slow));
            }
        }
    }
    by_names
}

/// A launch waits for one thing at a time: of waits that overlap, as those of a bus for the service behind it, the first counts, which is
/// that of who asked.
fn keep_outermost(pairs: &mut [Pair]) {
    let all = pairs.iter().flat_map(|pair| pair.trips.iter().map(|trip| (trip.from, trip.to, pair.client, trip.tid)));
    let mut all: Vec<(Nanos, Nanos, ProcessKey, u32)> = all.collect();
    all.sort_by_key(|(from, to, client, tid)| (*from, std::cmp::Reverse(*to), *client, *tid));
    let mut until = Nanos(0);
    all.retain(|(from, to, ..)| {
        let is_outer = *from >= until;
        if is_outer {
            until = *to;
        }
        is_outer
    });
    let kept: HashSet<(Nanos, ProcessKey, u32)> =
        all.into_iter().map(|(from, _, client, tid)| (from, client, tid)).collect();
    for pair in pairs {
        pair.trips.retain(|trip| kept.contains(&(trip.from, pair.client, trip.tid)));
    }
}

/// Leaves waits of a process out while it works for the reply to another one: they are part of that one's wait.
fn keep_unasked(pairs: &mut [Pair]) {
    let mut asked: HashMap<ProcessKey, Vec<(Nanos, Nanos)>> = HashMap::new();
    for pair in &*pairs {
        for trip in &pair.trips {
            for worker in trip.others.iter().chain([&pair.server]) {
                asked.entry(*worker).or_default().push((trip.from, trip.to));
            }
        }
    }
    // One after the other, without those that overlap.
    for times in asked.values_mut() {
        times.sort_unstable();
        times.dedup_by(|next, before| {
            let overlaps = next.0 <= before.1;
            if overlaps {
                before.1 = before.1.max(next.1);
            }
            overlaps
        });
    }
    for pair in pairs {
        let Some(times) = asked.get(&pair.client) else { continue };
        // It may wait already when the other begins to.
        pair.trips.retain(|trip| {
            let before = times.partition_point(|(from, _)| *from < trip.replied);
            let Some((from, to)) = before.checked_sub(1).map(|last| times[last]) else { return true };
            let shared = trip.to.min(to) - trip.from.max(from);
            shared.0 * 2 < trip.waited().0
        });
    }
}

/// Those of one pair of names, the least costly first, where they are worth a finding.
fn material((names, mut found): (Names, Vec<SlowReplies<'_>>)) -> Option<(Names, Vec<SlowReplies<'_>>)> {
    found.sort_by_key(|found| found.sum.cost);
    let shown = middle(&found);
    let is_material = THRESHOLD.is_met(shown.sum.cost.as_ms(), shown.facts.duration().as_ms());
    is_material.then_some((names, found))
}

/// The launch in the middle: details are those of it. There is at least one.
fn middle<'a, 'b>(found: &'b [SlowReplies<'a>]) -> &'b SlowReplies<'a> {
    &found[(found.len() - 1) / 2]
}

/// `is_timed`: finding `timed_wait` is in these launches.
fn finding((client, worker): &Names, found: &[SlowReplies<'_>], is_timed: bool) -> Finding {
    let shown = middle(found);
    let places = by_place(shown);
    let (of_launch, cost) = (shown.facts.tables.manifest.launch.is_some(), shown.sum.cost.as_ms());
    let function = places.first().and_then(|(place, _)| place.named());
    let within = function.map(|function| format!(", which waits in {}", short(function))).unwrap_or_default();
    let when = if of_launch { " before it is ready" } else { "" };
    let length = shown.facts.duration().as_ms();
    // Several threads, or several processes of that name, can wait for longer than it takes.
    let of = if cost <= length { format!("of {length:.0} ms") } else { format!("ms in {length:.0} ms") };
    let mut subject = row([("process", Value::from(client.as_str())), ("server", Value::from(worker.as_str()))]);
    let (mut asks, mut answers) = (client.clone(), worker.clone());
    // Those of the most costly reply, where there are several of a name.
    if let Some((of, trip, _)) = shown.slow.iter().max_by_key(|(_, _, slow)| slow.cost) {
        subject.insert("pid".to_owned(), Value::from(of.pid));
        subject.insert("server_pid".to_owned(), Value::from(trip.worker.pid));
        if client == worker {
            (asks, answers) = (format!("{client} ({})", of.pid), format!("{worker} ({})", trip.worker.pid));
        }
    }
    if let Some(function) = function {
        subject.insert("function".to_owned(), Value::from(function));
    }
    let Doubts { confidence, reasons } = doubts(shown, of_launch, is_timed);
    Finding {
        name: NAME.to_owned(),
        former_name: None,
        title: format!("{asks} waits {cost:.0} {of}{when} for slow replies of {answers}{within}"),
        subject,
        cost: cost_of(found),
        predicted_saving: None,
        confidence,
        reasons,
        evidence: vec![reply_rows(shown), place_rows(&places), slowest_rows(shown)],
        fixes: Vec::new(),
        fix_inputs: FixInputs::default(),
        see_by_hand: FINDING.by_hand.to_owned(),
    }
}

/// Of one launch from the certain part to the whole waits, of several the interval of all.
fn cost_of(found: &[SlowReplies<'_>]) -> Quantity {
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

fn doubts(shown: &SlowReplies<'_>, of_launch: bool, is_timed: bool) -> Doubts {
    let mut doubts = Doubts::none();
    let cost_of = |counts: fn(&RoundTrip) -> bool| -> Nanos {
        shown.slow.iter().filter(|(_, trip, _)| counts(trip)).map(|(_, _, slow)| slow.cost).sum()
    };
    if cost_of(|trip| trip.rested).0 > 0 {
        let in_events = cost_of(|trip| trip.rested && trip.wait == Category::Events);
        let is_mostly_so = !of_launch && in_events.0 * 2 > shown.sum.cost.0;
        doubts.lower(
            if is_mostly_so { Confidence::Low } else { Confidence::Medium },
            "before it woke the client a server went back to where it waits for requests, until a timer of its own, a device or a process \
             that is not recorded ended that: it may have had nothing to say",
        );
    }
    let short_sleeps = |trip: &RoundTrip| {
        trip.longest.is_some_and(|wait| wait.category == Category::Timer && wait.time < paced_threads::LONGEST)
    };
    if cost_of(short_sleeps).0 * 2 > shown.sum.cost.0 {
        let reason =
            "a server sleeps for less than 100 ms before each reply: if that is intended pacing, it is not a cost";
        doubts.lower(Confidence::Medium, reason);
    }
    if cost_of(|trip| trip.wait == Category::Lock).0 > 0 {
        let reason = "the client waits on a futex in shared memory, which may be a lock that the other held";
        doubts.lower(Confidence::Medium, reason);
    }
    let unseen = shown.slow.iter().filter(|(_, trip, _)| trip.request == Request::NotSeen).count();
    // Of a launch its critical path is enough.
    if unseen > 0 && !of_launch {
        let reason = format!("no wake-up shows the requests of {unseen} of {} slow replies", shown.slow.len());
        let is_mostly_so = unseen * 2 > shown.slow.len();
        doubts.lower(if is_mostly_so { Confidence::Low } else { Confidence::Medium }, reason);
    }
    match shown.direction_from {
        DirectionFrom::CriticalPath | DirectionFrom::OneWay => {}
        DirectionFrom::AgeAndRest => doubts.lower(
            Confidence::Medium,
            "both wait for each other in turn; the client is the one whose program was started later, and which rests in between",
        ),
        DirectionFrom::Age => doubts.lower(
            Confidence::Low,
            "both wait for each other in turn; that this one asks is taken from its program, which was started later",
        ),
    }
    if of_launch && is_timed {
        doubts.reasons.push("sleeps and time-outs of the server are counted by finding timed_wait, too".to_owned());
    }
    let tables = &shown.facts.tables;
    doubts.of_losses(&tables.manifest.losses, &["off_cpu"], tables.off_cpu.len(), "rows of off_cpu");
    let queued: Vec<Nanos> = shown.slow.iter().map(|(_, trip, _)| in_queue(trip)).filter(|time| time.0 > 0).collect();
    let in_queues: Nanos = queued.iter().copied().sum();
    if in_queues.0 > 0 {
        let (ms, replies, all) = (in_queues.as_ms(), queued.len(), shown.waits.len());
        let text = format!(
            "for {ms:.0} ms of it, in {replies} of {all} replies, the server, or the client once it was answered, waited for a CPU"
        );
        if queued.len() < REPEATED && in_queues.0 * 2 > shown.sum.cost.0 {
            doubts.lower(Confidence::Low, format!("{text}: other load that came and went can be all of it"));
        } else {
            doubts.reasons.push(text);
        }
    }
    let most = if of_launch {
        "it is an upper bound of the gain: the least time of a reply is not known"
    } else {
        "it is the time of the client's threads together, and the most that they can gain"
    };
    doubts.reasons.push(most.to_owned());
    doubts
}

/// Places of the longest waits on the way to slow replies, with count and sum, most costly first.
fn by_place(found: &SlowReplies<'_>) -> Vec<(WaitPlace, (u64, Nanos))> {
    // One wait of a server can hold up several clients.
    let mut wanted: HashMap<(ProcessKey, u32, Nanos), Vec<ServerWait>> = HashMap::new();
    for wait in found.slow.iter().filter_map(|(_, trip, _)| trip.longest) {
        wanted.entry((wait.process, wait.tid, wait.from)).or_default().push(wait);
    }
    let mut places: BTreeMap<WaitPlace, (u64, Nanos)> = BTreeMap::new();
    for off in &found.facts.tables.off_cpu {
        let Some(waits) = wanted.get(&(off.process(), off.tid, off.ts)) else { continue };
        let stack = found.call_stacks.and_then(|stacks| stacks.path(off.stack));
        let place = WaitPlace::of(Category::of_wait(off.reason), off.syscall, stack, found.call_stacks);
        let (count, sum) = places.entry(place).or_default();
        (*count, *sum) = (*count + waits.len() as u64, *sum + waits.iter().map(|wait| wait.time).sum());
    }
    let mut places: Vec<_> = places.into_iter().collect();
    places.sort_by_key(|(_, (_, sum))| std::cmp::Reverse(*sum));
    places
}

fn reply_rows(found: &SlowReplies<'_>) -> Evidence {
    let waits = sorted(found.waits.iter().map(|time| time.0));
    let at = |share| milliseconds(Nanos(quantile(&waits, share)));
    let sum = |of: fn(&RoundTrip) -> Nanos| milliseconds(found.slow.iter().map(|(_, trip, _)| of(trip)).sum());
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
    Evidence { text: "Replies, and what the waits for slow ones consist of.".to_owned(), rows: vec![all] }
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
    Evidence { text: "The longest wait before each slow reply, by place.".to_owned(), rows: rows.collect() }
}

fn slowest_rows(found: &SlowReplies<'_>) -> Evidence {
    let mut slow: Vec<&(ProcessKey, RoundTrip, Slow)> = found.slow.iter().collect();
    slow.sort_by_key(|(_, trip, slow)| (std::cmp::Reverse(slow.cost), trip.from));
    let rows = slow.into_iter().take(MOST_ROWS).map(|(client, trip, _)| {
        row([
            ("pid", Value::from(client.pid)),
            ("tid", Value::from(trip.tid)),
            ("server_pid", Value::from(trip.worker.pid)),
            ("at_ms", milliseconds(trip.from - found.facts.released)),
            ("waited_ms", milliseconds(trip.waited())),
            ("serving_ms", milliseconds(trip.serving())),
            ("waiting_ms", milliseconds(trip.waiting())),
            ("runnable_ms", milliseconds(trip.runnable())),
        ])
    });
    Evidence { text: "The slowest replies.".to_owned(), rows: rows.collect() }
}
