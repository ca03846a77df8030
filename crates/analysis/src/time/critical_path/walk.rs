//! The walk back through threads, from the end of a launch to its begin.
//!
//! At every point there is a thread and a moment. Each move either goes back in time, or to a thread where the walk has not been at
//! this very moment, so it ends whatever the rows say.

use super::step::{EndedBy, Step};
use crate::integer_hash::IntegerMap;
use crate::time::ledger::lives::Lives;
use crate::time::ledger::{Category, Grouped};
use slowpath_recording::Tables;
use slowpath_tables::{Nanos, OffCpu, OffCpuReason, ProcessKey};
use std::rc::Rc;

/// Threads that are looked at to find the one that made another, of a process with very many.
const MOST_SIBLINGS: u32 = 512;

/// Threads that wake each other at one moment, at most: rows in which more do are made up.
const MOST_AT_ONCE: usize = 64;

/// An interval in which a thread did not run: it waits until `woken`, and can run from then on, or as soon as the kernel has put it into a
/// run queue.
#[derive(Clone, Copy, Debug)]
struct Away {
    from: Nanos,
    woken: Nanos,
    to: Nanos,
    /// What it waits for.
    wait: Category,
    /// What it is from `woken` on.
    then: Category,
    /// Pid and thread id.
    waker: Option<(u32, u32)>,
    place: WaitSite,
}

/// Where in its program a thread waits: the system call, and its stack where one was recorded.
type WaitSite = (i32, Option<u32>);

impl Away {
    /// `None` for what is no interval off the CPU.
    fn of(row: &OffCpu) -> Option<Self> {
        let (from, to) = (row.ts, Nanos(row.ts.0.saturating_add(row.duration.0)));
        let category = Category::of_wait(row.reason);
        let (woken, then) = match row.reason {
            OffCpuReason::Stolen => return None,
            OffCpuReason::Runnable | OffCpuReason::Throttled => (from, category),
            _ => {
                // Who woke it ran then, and may wait itself by the time that the thread stands in a run queue.
                let queued = to - row.runnable.min(row.duration);
                (row.woken.unwrap_or(queued), Category::Runnable)
            }
        };
        Some(Self {
            from,
            woken,
            to,
            wait: category,
            then,
            waker: row.waker_pid.zip(row.waker_tid),
            place: (row.syscall, row.stack),
        })
    }
}

/// A wait of a thread that a thread of another process ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    /// When the thread last had news of another process, or began: what it did since can have led to this wake-up.
    pub since: Nanos,
    /// Begin of the wait.
    pub from: Nanos,
    /// The wake-up.
    pub woken: Nanos,
    /// When the thread ran again.
    pub to: Nanos,
    /// Pid and thread id of who woke it.
    pub waker: (u32, u32),
    /// What it waited for: data, events, or a futex.
    pub wait: Category,
}

/// What led to a wake-up.
#[derive(Clone, Debug)]
pub(crate) struct Behind {
    /// Process of the thread that woke.
    pub waker: ProcessKey,
    /// The steps until then, in order. Those before the wait may be left out.
    pub steps: Vec<Step>,
    /// Whether the process that was woken had asked for it.
    pub request: Request,
    /// When it had, where that is within the wait: another of its threads asked. Else the begin of the wait.
    pub from: Nanos,
    /// Whether one of those who worked for it waited meanwhile where it waits for requests, and no recorded task ended that: a timer, a
    /// device, or a process that is not recorded.
    pub rested: bool,
}

/// What is seen of a request, the most first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Request {
    /// It woke the first of those who worked for the reply.
    Woke,
    /// The one that answered was woken before, by the same process, and did not rest since.
    Awake,
    /// Nothing.
    NotSeen,
}

/// What the walk needs of a recording.
pub(crate) struct Walk<'a> {
    lives: &'a Lives<'a>,
    off: &'a Grouped<'a, OffCpu>,
    /// Lives by thread id, in the order of their begin.
    of_tid: IntegerMap<u32, Vec<u32>>,
    /// Parents by thread, with the moments at which they made it.
    forks: IntegerMap<(ProcessKey, u32), Vec<(Nanos, ProcessKey)>>,
    /// Intervals of the threads that the walk came to: in order, none reaching into another.
    away: IntegerMap<u32, Rc<[Away]>>,
    /// Places at which other processes ended waits of these threads.
    resting: IntegerMap<u32, Rc<[WaitSite]>>,
}

/// Where a walk is.
struct At {
    life: u32,
    now: Nanos,
    /// Where it was at this moment.
    been: Vec<u32>,
}

impl At {
    fn go_back_to(&mut self, now: Nanos) {
        if now < self.now {
            self.been.clear();
            self.now = now;
        }
    }

    /// Goes to a thread, unless it was there.
    fn hop(&mut self, life: u32) -> bool {
        if life == self.life || self.been.contains(&life) {
            return false;
        }
        self.been.push(self.life);
        self.life = life;
        true
    }
}

impl<'a> Walk<'a> {
    pub(crate) fn new(tables: &Tables, lives: &'a Lives<'a>, off: &'a Grouped<'a, OffCpu>) -> Self {
        let mut of_tid: IntegerMap<u32, Vec<u32>> = IntegerMap::default();
        for (number, life) in (0u32..).zip(&lives.all) {
            of_tid.entry(life.tid).or_default().push(number);
        }
        of_tid.values_mut().for_each(|numbers| numbers.sort_by_key(|number| lives.all[*number as usize].began));
        let mut forks: IntegerMap<(ProcessKey, u32), Vec<(Nanos, ProcessKey)>> = IntegerMap::default();
        for row in &tables.forks {
            let parent =
                if row.thread { row.process() } else { ProcessKey { pid: row.parent_pid, start: row.parent_start } };
            forks.entry((row.process(), row.tid)).or_default().push((row.ts, parent));
        }
        Self { lives, off, of_tid, forks, away: IntegerMap::default(), resting: IntegerMap::default() }
    }

    /// The path that ends at `to` with a thread, in order.
    pub(super) fn back(mut self, last: u32, from: Nanos, to: Nanos) -> Vec<Step> {
        let mut at = At { life: last, now: to, been: Vec::new() };
        let mut steps = Vec::new();
        while at.now > from {
            let step = self.next(&mut at, from);
            steps.extend(step.filter(|step| step.from < step.to));
        }
        steps.reverse();
        steps
    }

    /// The waits of a thread for data, events or a futex that a thread of another process ended, in order.
    pub(crate) fn answered(&mut self, number: u32) -> Vec<Answered> {
        let pid = self.lives.all[number as usize].process.pid;
        let mut since = self.lives.all[number as usize].began;
        let mut answered = Vec::new();
        for away in self.intervals(number).iter() {
            let is_for_others = matches!(away.wait, Category::PipeOrSocket | Category::Events | Category::Lock);
            let waker = away.waker.filter(|(of, _)| is_for_others && *of != pid && away.woken > away.from);
            if let Some(waker) = waker {
                let Away { from, woken, to, wait, .. } = *away;
                answered.push(Answered { since, from, woken, to, waker, wait });
            }
            if waker.is_some() || matches!(away.wait, Category::PipeOrSocket | Category::Events) {
                since = away.to;
            }
        }
        answered
    }

    /// What led to the wake-up of a thread of `client`, as far back as it has to do with it: to the moment at which a thread of
    /// `client` had woken the first of those who worked for it. Before the client had its last news ([`Answered::since`]) only as far
    /// as one of them was awake, and nobody else had woken it. `None` where the waker was not recorded or did not run, and where the
    /// work began with a fork by `client` (that is the start of a child, and no reply). Beyond `most` moves the request is not seen.
    pub(crate) fn behind(&mut self, client: ProcessKey, wait: &Answered, most: usize) -> Option<Behind> {
        let life =
            self.thread(wait.waker.0, wait.waker.1, wait.woken).filter(|waker| !self.is_away(*waker, wait.woken))?;
        let waker = self.lives.all[life as usize].process;
        if waker == client {
            return None;
        }
        let mut at = At { life, now: wait.woken, been: Vec::new() };
        let mut behind = Behind { waker, steps: Vec::new(), request: Request::NotSeen, from: wait.from, rested: false };
        for _ in 0..most {
            if at.now == Nanos(0) || at.been.len() > MOST_AT_ONCE {
                break;
            }
            let (life, now) = (at.life, at.now);
            let (process, began) = (self.lives.all[life as usize].process, self.lives.all[life as usize].began);
            let step = self.next(&mut at, Nanos(0));
            let is_before = now <= wait.since;
            if let Some(step) = &step {
                if is_before && (step.category.is_none() || step.is_idle()) {
                    break;
                }
                behind.rested |= step.is_idle() && self.rests(life, step);
            }
            behind.steps.extend(step.filter(|step| step.from < step.to));
            let came_to = self.lives.all[at.life as usize].process;
            if came_to == client {
                if now <= began {
                    return None;
                }
                behind.request = if is_before { Request::Awake } else { Request::Woke };
                behind.from = wait.from.max(at.now);
                break;
            }
            if is_before && came_to != process {
                break;
            }
        }
        behind.steps.reverse();
        Some(behind)
    }

    /// Whether a wait of a thread is at a place where other processes end its waits, mostly an event loop.
    fn rests(&mut self, number: u32, step: &Step) -> bool {
        if !matches!(step.category, Some(Category::Events | Category::PipeOrSocket)) {
            return false;
        }
        let pid = step.process.pid;
        let all = self.intervals(number);
        let Some(away) = all[..all.partition_point(|away| away.from <= step.from)].last() else { return false };
        let resting = self.resting.entry(number).or_insert_with(|| {
            let by_others = all.iter().filter(|away| away.waker.is_some_and(|(of, _)| of != pid));
            let mut places: Vec<WaitSite> = by_others.map(|away| away.place).collect();
            places.sort_unstable();
            places.dedup();
            places.into()
        });
        resting.binary_search(&away.place).is_ok()
    }

    /// Moves back by a step, or to another thread.
    fn next(&mut self, at: &mut At, first: Nanos) -> Option<Step> {
        let lives = self.lives;
        let (number, now, life) = (at.life, at.now, &lives.all[at.life as usize]);
        let step = |from: Nanos, category: Option<Category>, ended_by: Option<EndedBy>| {
            Some(Step { process: life.process, tid: life.tid, from: from.max(first), to: now, category, ended_by })
        };
        if now <= life.began {
            let made = self.made(number);
            if let Some((made, _)) = made.filter(|(made, _)| *made < now) {
                at.go_back_to(made);
                return step(made, None, None);
            }
            let maker = made.and_then(|(_, parent)| self.that_ran(parent, now));
            if maker.is_some_and(|maker| at.hop(maker)) {
                return None;
            }
            at.go_back_to(first);
            return step(first, None, None);
        }
        if now > life.ended {
            at.go_back_to(life.ended);
            return step(life.ended, None, None);
        }
        let away = match self.last_away(number, now) {
            Some(away) if now <= away.to => away,
            ran_since => {
                let since = ran_since.map_or(life.began, |away| away.to);
                at.go_back_to(since);
                return step(since, Some(Category::OnCpu), None);
            }
        };
        if now > away.woken {
            at.go_back_to(away.woken);
            return step(away.woken, Some(away.then), None);
        }
        let ended_by = match (now < away.woken, away.waker) {
            (true, _) => EndedBy::NotOver,
            (false, None) => EndedBy::Interrupt,
            (false, Some((pid, tid))) => match self.thread(pid, tid, now) {
                None => EndedBy::NotRecorded,
                Some(waker) if !self.is_away(waker, now) && at.hop(waker) => return None,
                Some(_) => EndedBy::Contradicted,
            },
        };
        at.go_back_to(away.from);
        step(away.from, Some(away.wait), Some(ended_by))
    }

    /// When a thread was made, and by which process; `None` for one that was there before.
    fn made(&self, number: u32) -> Option<(Nanos, ProcessKey)> {
        let life = &self.lives.all[number as usize];
        let forks = self.forks.get(&(life.process, life.tid))?;
        forks.iter().filter(|(ts, _)| *ts <= life.began).max_by_key(|(ts, _)| *ts).copied()
    }

    /// The thread with these ids at a moment.
    fn thread(&self, pid: u32, tid: u32, now: Nanos) -> Option<u32> {
        let of_tid = self.of_tid.get(&tid)?;
        let begun = of_tid.partition_point(|number| self.lives.all[*number as usize].began <= now);
        let last = of_tid[..begun].last().copied()?;
        (self.lives.all[last as usize].process.pid == pid).then_some(last)
    }

    /// The thread of a process that ran at a moment: its main thread where several did, and where none did by the rows.
    fn that_ran(&mut self, process: ProcessKey, now: Nanos) -> Option<u32> {
        let lives = self.lives;
        let all = &lives.all;
        // Lives are in the order of their processes.
        let (from, to) =
            (all.partition_point(|life| life.process < process), all.partition_point(|life| life.process <= process));
        let alive: Vec<u32> = (from as u32..to as u32)
            .take(MOST_SIBLINGS as usize)
            .filter(|number| {
                let life = &all[*number as usize];
                life.began <= now && now <= life.ended
            })
            .collect();
        let main = alive.iter().copied().find(|number| all[*number as usize].tid == process.pid);
        if main.is_some_and(|main| !self.is_away(main, now)) {
            return main;
        }
        alive.into_iter().find(|number| !self.is_away(*number, now)).or(main)
    }

    /// Whether a thread did not run at a moment.
    fn is_away(&mut self, number: u32, now: Nanos) -> bool {
        self.last_away(number, now).is_some_and(|away| now < away.to)
    }

    /// The last interval of a thread that began before a moment.
    fn last_away(&mut self, number: u32, now: Nanos) -> Option<Away> {
        let all = self.intervals(number);
        all[..all.partition_point(|away| away.from < now)].last().copied()
    }

    fn intervals(&mut self, number: u32) -> Rc<[Away]> {
        if let Some(known) = self.away.get(&number) {
            return Rc::clone(known);
        }
        let life = &self.lives.all[number as usize];
        let mut all: Vec<Away> = self.off.of(number).filter_map(Away::of).collect();
        all.sort_by_key(|away| away.from);
        let mut free = life.began;
        all.retain_mut(|away| {
            away.from = away.from.max(free);
            away.woken = away.woken.max(away.from);
            away.to = away.to.min(life.ended);
            away.woken = away.woken.min(away.to);
            let is_left = away.from < away.to;
            if is_left {
                free = away.to;
            }
            is_left
        });
        let all: Rc<[Away]> = all.into();
        self.away.insert(number, Rc::clone(&all));
        all
    }
}
