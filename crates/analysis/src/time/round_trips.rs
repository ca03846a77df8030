//! Replies that threads waited for: requests to another process and what was done until they were answered.
//!
//! Found in the wake-ups alone, so for any transport: sockets, pipes, message queues, futexes in shared memory. A *round trip* is a wait
//! of a thread that a thread of another recorded process ended, where the work that led to that wake-up goes back, through
//! whatever processes it passed, to a wake-up by the process that waits: the request. What was done in the wait are the steps of that way
//! back ([`crate::time::critical_path`]). Its time is that of the wait: what the client does after its request is not in it.
//!
//! - A server that is still awake is not woken by a request. A wait counts all the same where that client had woken the server before
//!   and it did not rest since ([`Request::Awake`]), and in pairs of which other requests are seen where no wake-up shows the request,
//!   unless the server rested in the wait. In processes that run already such waits in which it slept count only where they
//!   are less than [`MOST_UNSEEN`] times the others: who was asked once, and sleeps and wakes the other again and again, sends news.
//! - Where another thread of the client asks while this one waits already, the wait for the reply begins with the request.
//! - Who reads from a unix socket wakes the other end if that waits there, too, which goes on waiting. A wait that is taken up again
//!   once, within [`TAKEN_UP`], is the same wait.
//! - A child that its parent waits for since it was made is the start of a child, and no reply.
//! - A process that hands a message on (a bus) is one of those passed. The pair is that of the client and of the process that woke it; which
//!   one took most of the time is said beside it.
//! - Missed, never guessed: what a process that is not recorded did, requests that wake nobody because everyone is busy with those of
//!   others, threads that poll without waiting, a client whose server takes its CPU as soon as it asks: it has the reply before it would
//!   wait, and its time is that of a thread which is ready to run.
//!
//! Wake-ups alone do not show who of two asks: a server waits for its client's next request as the client waits for its reply. Of a
//! launch, waits count on its critical path only, which goes from the one that asks to the other and comes back. Of processes that run
//! already see [`DirectionFrom`].
//!
//! Leaves whether a reply was slow to the finding `slow_ipc_reply`.

use crate::findings::fault_sums::{quantile, sorted};
use crate::processes::Processes;
use crate::time::critical_path::{Answered, Behind, Chain, Request, Step, Walk, chain, off_cpu_of};
use crate::time::ledger::lives::Lives;
use crate::time::ledger::{Account, Category};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_recording::Tables;
use slowpath_tables::{FileKey, Nanos, ProcessKey};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// Moves of a walk back: a reply through a bus takes some ten, and two more for each read of a file that a server waits for.
const MOST_MOVES: usize = 4096;

/// By how much more of the waits of one direction than of the other the worker has to rest.
const CLEAR: f64 = 0.5;

/// Waits in which a server slept and was not seen to be asked, for each other one. One that shares its CPU with its client is still awake
/// when the next request comes, mostly.
const MOST_UNSEEN: usize = 9;

/// From the end of a wait that was for nothing to the moment at which it is taken up: 3 to 5 us on a virtual machine, in the kernel alone.
const TAKEN_UP: Nanos = Nanos(10_000);

/// Generations of copies of one program: the workers of a worker of a server.
const MOST_COPIES: usize = 8;

/// A wait of another process that was on the way to a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerWait {
    /// Process that waited.
    pub process: ProcessKey,
    /// Its thread.
    pub tid: u32,
    /// What it waited for.
    pub category: Category,
    /// Begin of the wait, as in `off_cpu`.
    pub from: Nanos,
    /// Its time within the client's wait.
    pub time: Nanos,
}

/// A wait for a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    /// Thread that waited.
    pub tid: u32,
    /// What is seen of its request.
    pub request: Request,
    /// When it began to wait.
    pub from: Nanos,
    /// When it was woken.
    pub replied: Nanos,
    /// When it ran again.
    pub to: Nanos,
    /// What its wait was spent on, from `from` to `to`, by what those did who worked for it: [`Category::OnCpu`] for all the time that
    /// they ran. The time in which the client stood in a run queue itself is part of [`Category::Runnable`].
    pub account: Account,
    /// The part of its wait of which nothing was recorded.
    pub unknown: Nanos,
    /// The longest wait on the way.
    pub longest: Option<ServerWait>,
    /// Whether one of those who worked for it went back to where it waits for requests, until something that is not recorded ended that: a
    /// timer of its own, a device, a process that is not recorded.
    pub rested: bool,
    /// Whether a wait on the way was for something else that no recorded task ended: it slept, or waited until a time-out was over.
    slept: bool,
    /// What it waited for: data, events, or a futex.
    pub wait: Category,
    /// Whether it goes on with one that was for nothing.
    is_taken_up: bool,
    /// Processes that worked for it, where they are others than the one that woke it.
    pub others: Box<[ProcessKey]>,
    /// Process that most of the time went to, run queues left out.
    pub worker: ProcessKey,
    /// Thread that woke it.
    pub waker_tid: u32,
}

impl RoundTrip {
    /// Whether it goes on with a wait, for the same server, out of which the thread was woken for nothing: by the server's read of the
    /// request, which that wait is seen to have followed.
    fn takes_up(&self, before: &Self) -> bool {
        let reads = |trip: &Self| trip.wait == Category::PipeOrSocket;
        let follows_a_request = before.request == Request::Woke && !before.is_taken_up;
        reads(self)
            && reads(before)
            && follows_a_request
            && self.request != Request::Woke
            && self.from - before.to <= TAKEN_UP
    }

    /// Makes it one with that wait.
    fn goes_on_from(&mut self, before: Self) {
        self.account.merge(&before.account);
        self.account.add(Category::OnCpu, self.from - before.to);
        self.unknown += before.unknown;
        self.longest = [self.longest, before.longest].into_iter().flatten().max_by_key(|wait| wait.time);
        self.rested |= before.rested;
        self.slept |= before.slept;
        self.request = self.request.min(before.request);
        if before.waited() > self.waited() {
            self.worker = before.worker;
        }
        self.from = before.from;
        self.is_taken_up = true;
    }

    /// How long the client waited, until it ran again.
    pub fn waited(&self) -> Nanos {
        self.to - self.from
    }

    /// Time in which somebody ran for it.
    pub fn serving(&self) -> Nanos {
        self.account.get(Category::OnCpu)
    }

    /// Time in which who was to work for it stood in a run queue, or the client did once it was answered.
    pub fn runnable(&self) -> Nanos {
        self.account.get(Category::Runnable)
    }

    /// Time in which those who worked for it waited, or were throttled.
    pub fn waiting(&self) -> Nanos {
        self.account.total() - self.serving() - self.runnable()
    }
}

/// From what it follows who of a pair asks, the surest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DirectionFrom {
    /// The critical path of a launch.
    CriticalPath,
    /// Only one of them waits for the other.
    OneWay,
    /// The program of the client was started later, and the client goes back to where it waits for others between its requests, until a
    /// user, a device or a timer ends that.
    AgeAndRest,
    /// The program of the client was started later. Either could be the one that asks.
    Age,
}

/// A client and who answered it.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// Who waited.
    pub client: ProcessKey,
    /// Who woke it.
    pub server: ProcessKey,
    /// From what it follows which one is which.
    pub direction_from: DirectionFrom,
    /// Its waits, in the order of the client's threads and of time.
    pub trips: Vec<RoundTrip>,
}

impl Pair {
    /// How long the client waited in all.
    pub fn waited(&self) -> Nanos {
        self.trips.iter().map(RoundTrip::waited).sum()
    }

    /// Its waits by nearest rank, at these shares of all.
    pub fn quantiles<const N: usize>(&self, shares: [f64; N]) -> [Nanos; N] {
        let waits = sorted(self.trips.iter().map(|trip| trip.waited().0));
        shares.map(|share| Nanos(quantile(&waits, share)))
    }
}

/// Pairs by client and server.
type Pairs = BTreeMap<(ProcessKey, ProcessKey), Vec<RoundTrip>>;

/// The pairs of a recording, those with the longest waits first; of a launch those on its critical path. Empty where waits were not
/// recorded. Rows may be in any order.
pub fn round_trips(tables: &Tables) -> Vec<Pair> {
    if tables.off_cpu.is_empty() {
        return Vec::new();
    }
    let mut pairs = match tables.manifest.launch {
        Some(_) => chain(tables).map(|chain| on_path(waits_for_others(tables), &chain)).unwrap_or_default(),
        None => oriented(waits_for_others(tables), tables),
    };
    pairs.sort_by_key(|pair| (std::cmp::Reverse(pair.waited()), pair.client, pair.server));
    pairs
}

/// All waits that another process ended, of pairs of which at least one is seen from request to reply.
fn waits_for_others(tables: &Tables) -> Pairs {
    let lives = Lives::new(tables);
    let off = off_cpu_of(tables, &lives);
    let mut walk = Walk::new(tables, &lives, &off);
    let mut pairs = Pairs::new();
    for (number, life) in (0u32..).zip(&lives.all) {
        // The last one, which may be taken up again.
        let mut last: Option<(ProcessKey, RoundTrip)> = None;
        for wait in walk.answered(number) {
            let Some(behind) = walk.behind(life.process, &wait, MOST_MOVES) else { continue };
            let server = behind.waker;
            let Some(mut trip) = of_wait(life.tid, &wait, behind) else { continue };
            if let Some((of, before)) = last.take() {
                if of == server && trip.takes_up(&before) {
                    trip.goes_on_from(before);
                } else {
                    pairs.entry((life.process, of)).or_default().push(before);
                }
            }
            last = Some((server, trip));
        }
        if let Some((server, trip)) = last {
            pairs.entry((life.process, server)).or_default().push(trip);
        }
    }
    pairs.retain(|_, trips| trips.iter().any(|trip| trip.request == Request::Woke));
    pairs
}

/// The wait as one for a reply; `None` where it was none.
fn of_wait(tid: u32, wait: &Answered, behind: Behind) -> Option<RoundTrip> {
    let Behind { waker, steps, request, from, rested } = behind;
    let mut account = Account::default();
    let mut unknown = Nanos(0);
    let mut of_process: BTreeMap<ProcessKey, Nanos> = BTreeMap::new();
    let (mut longest, mut idled): (Option<ServerWait>, bool) = (None, false);
    for step in steps.iter().filter(|step| step.to > from) {
        let time = step.to - step.from.max(from);
        let Some(category) = step.category else {
            unknown += time;
            continue;
        };
        account.add(category, time);
        if category != Category::Runnable {
            *of_process.entry(step.process).or_default() += time;
        }
        idled |= step.is_idle();
        if step.ended_by.is_some() && longest.is_none_or(|longest| longest.time < time) {
            longest = Some(ServerWait { process: step.process, tid: step.tid, category, from: step.from, time });
        }
    }
    // What the walk did not come to.
    unknown += (wait.woken - from) - (account.total() + unknown);
    // Who rests and then wakes somebody by whom it was not asked had news: that was no reply.
    if request == Request::NotSeen && (rested || unknown.0 > 0) {
        return None;
    }
    account.add(Category::Runnable, wait.to - wait.woken);
    let worker = of_process.iter().max_by_key(|(process, time)| (**time, std::cmp::Reverse(**process)));
    Some(RoundTrip {
        tid,
        request,
        from,
        replied: wait.woken,
        to: wait.to,
        account,
        unknown,
        longest,
        rested,
        slept: idled && !rested,
        wait: wait.wait,
        is_taken_up: false,
        worker: worker.map_or(waker, |(process, _)| *process),
        others: of_process.into_keys().filter(|process| *process != waker).collect(),
        waker_tid: wait.waker.1,
    })
}

/// The waits in whose end the critical path of a launch is with the one that woke, after it had left the one that waited, to which
/// it comes back. (Not always at once: a server that is awake when the next request comes keeps the path.)
fn on_path(pairs: Pairs, chain: &Chain<'_>) -> Vec<Pair> {
    let mut stack: Vec<ProcessKey> = Vec::new();
    // For each step those that the path had left.
    let mut left: Vec<Rc<[ProcessKey]>> = Vec::new();
    let mut last: HashMap<ProcessKey, usize> = HashMap::new();
    for (number, step) in chain.steps.iter().enumerate() {
        let is_same = stack.last() == Some(&step.process);
        match stack.iter().position(|process| *process == step.process) {
            None => stack.push(step.process),
            Some(at) => stack.truncate(at + 1),
        }
        left.push(match left.last() {
            Some(before) if is_same => Rc::clone(before),
            _ => stack[..stack.len() - 1].into(),
        });
        last.insert(step.process, number);
    }
    let is_on_it = |client: ProcessKey, trip: &RoundTrip| {
        let number = chain.steps.partition_point(|step| step.to < trip.replied);
        let is_with = |step: &Step| step.tid == trip.waker_tid && step.from < trip.replied;
        let comes_back = last.get(&client).is_some_and(|last| *last > number);
        comes_back && chain.steps.get(number).is_some_and(is_with) && left[number].contains(&client)
    };
    let of_pair = |((client, server), mut trips): ((ProcessKey, ProcessKey), Vec<RoundTrip>)| {
        trips.retain(|trip| is_on_it(client, trip));
        (!trips.is_empty()).then_some(Pair { client, server, direction_from: DirectionFrom::CriticalPath, trips })
    };
    pairs.into_iter().filter_map(of_pair).collect()
}

/// Leaves waits out in which the server slept and no wake-up shows the request, where these are too many.
fn without_news(trips: &mut Vec<RoundTrip>) {
    let is_news = |trip: &RoundTrip| trip.request == Request::NotSeen && trip.slept;
    let news = trips.iter().filter(|trip| is_news(trip)).count();
    if news > (trips.len() - news) * MOST_UNSEEN {
        trips.retain(|trip| !is_news(trip));
    }
}

/// The pairs in which one asks the other, where both can be the one that asks.
fn oriented(mut pairs: Pairs, tables: &Tables) -> Vec<Pair> {
    pairs.values_mut().for_each(without_news);
    let ages = Ages::new(tables);
    // Without stacks all waits in one system call look like one place.
    let has_places = tables.off_cpu.iter().any(|row| row.stack.is_some());
    let rests: HashMap<(ProcessKey, ProcessKey), f64> =
        pairs.iter().map(|(pair, trips)| (*pair, rested(trips))).collect();
    let of_pair = |((client, server), trips): ((ProcessKey, ProcessKey), Vec<RoundTrip>)| {
        let (own, other) = (rests.get(&(client, server))?, rests.get(&(server, client)));
        let direction_from = match other {
            None => DirectionFrom::OneWay,
            // Of two that were started together, as copies of one program, the older one asks.
            Some(_) if (ages.began(client), server.start) <= (ages.began(server), client.start) => return None,
            Some(other) if has_places && other - own >= CLEAR => DirectionFrom::AgeAndRest,
            Some(_) => DirectionFrom::Age,
        };
        Some(Pair { client, server, direction_from, trips })
    };
    pairs.into_iter().filter_map(of_pair).collect()
}

/// The share of waits in which who worked for the reply rested.
fn rested(trips: &[RoundTrip]) -> f64 {
    trips.iter().filter(|trip| trip.rested).count() as f64 / trips.len().max(1) as f64
}

/// When programs were started.
struct Ages {
    processes: Processes,
    /// Parents of processes that were there before.
    parents: HashMap<ProcessKey, ProcessKey>,
    programs: HashMap<ProcessKey, FileKey>,
}

impl Ages {
    fn new(tables: &Tables) -> Self {
        let processes = Processes::new(&tables.forks, &tables.execs, &tables.exits);
        let of_pid: HashMap<u32, ProcessKey> = processes.iter().map(|one| (one.key.pid, one.key)).collect();
        let present = tables.execs.iter().filter(|exec| exec.present);
        let parents = present.filter_map(|exec| Some((exec.process(), *of_pid.get(&exec.parent_pid)?))).collect();
        Self { parents, programs: processes.executables(&tables.execs), processes }
    }

    /// When a process was started, or the one that it is a copy of.
    fn began(&self, process: ProcessKey) -> Nanos {
        let mut of = process;
        for _ in 0..MOST_COPIES {
            let parent = self.processes.get(of).and_then(|one| one.parent).or_else(|| self.parents.get(&of).copied());
            match parent.filter(|parent| *parent != of && self.programs.get(parent) == self.programs.get(&of)) {
                Some(parent) => of = parent,
                None => break,
            }
        }
        of.start
    }
}

#[cfg(test)]
mod tests;
