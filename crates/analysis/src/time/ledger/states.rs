//! What every thread did at every moment: the pieces that the ledger adds up, one after the other.
//!
//! Owns going through them without keeping them: there may be tens of millions. They are those of the same walk that makes the
//! ledger, so their sums are its categories. It lacks what has no place on a clock: time that ran outside of faults and memory calls is
//! one state, in which user, kernel and stolen time and what is unexplained lie.

use super::lives::{Life, Lives};
use super::{Category, each_life};
use crate::integer_hash::IntegerMap;
use crate::time::off_cpu_times::waits_recorded;
use slowpath_recording::Tables;
use slowpath_tables::{Nanos, ProcessKey};

/// A thread, as it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimelineThread<'a> {
    /// Its process.
    pub process: ProcessKey,
    /// Thread id.
    pub tid: u32,
    /// Its last known name. Foreign text.
    pub name: Option<&'a str>,
    /// When it began, or began to be followed.
    pub began: Nanos,
    /// When it left its CPU for good, or recording ended.
    pub ended: Nanos,
}

/// The threads of a recording of which begin and end are known, numbered in an order of their own.
#[derive(Debug)]
pub struct ThreadStates<'a> {
    tables: &'a Tables,
    lives: Lives<'a>,
    /// The threads that had an id, whatever their process: the kernel gives one to one thread at a time.
    of_tid: IntegerMap<u32, Vec<u32>>,
    /// Whether it was recorded when threads did not run; if not, only faults and memory calls are known.
    pub has_waits: bool,
}

impl<'a> ThreadStates<'a> {
    /// Of a recording; rows may be in any order.
    pub fn new(tables: &'a Tables) -> Self {
        let lives = Lives::new(tables);
        let mut of_tid: IntegerMap<u32, Vec<u32>> = IntegerMap::default();
        for (number, life) in (0u32..).zip(&lives.all) {
            of_tid.entry(life.tid).or_default().push(number);
        }
        Self { tables, lives, of_tid, has_waits: waits_recorded(tables) }
    }

    /// The threads, by number.
    pub fn threads(&self) -> impl ExactSizeIterator<Item = TimelineThread<'a>> + '_ {
        self.lives.all.iter().map(thread)
    }

    /// Threads of which begin or end was not recorded; they are left out.
    pub fn incomplete(&self) -> u64 {
        self.lives.incomplete
    }

    /// The number of the thread of this process that had this id at `at`.
    pub fn of_process(&self, process: ProcessKey, tid: u32, at: Nanos) -> Option<u32> {
        self.lives.find(process, tid, at)
    }

    /// The number of the thread that had this id at `at` in a process with this pid.
    pub fn running_as(&self, pid: u32, tid: u32, at: Nanos) -> Option<u32> {
        let numbers = self.of_tid.get(&tid)?;
        numbers.iter().copied().find(|number| {
            let life = &self.lives.all[*number as usize];
            life.process.pid == pid && life.began <= at && at <= life.ended
        })
    }

    /// Goes through the pieces of every thread: its number, and from when until when it did what; `None` where it ran outside of faults
    /// and memory calls or, without [`Self::has_waits`], where it is not known whether it ran. Pieces of a thread follow each other
    /// from its begin to its end, no two of the same state.
    pub fn each(&self, mut see: impl FnMut(u32, Nanos, Nanos, Option<Category>)) {
        each_life(self.tables, &self.lives, |number, life, timeline| {
            let mut open: Option<(u64, u64, Option<Category>)> = None;
            timeline.walk_each(life.began, life.ended, |from, to, category| match &mut open {
                Some((_, until, same)) if *same == category => *until = to,
                _ => {
                    if let Some((from, to, category)) = open.replace((from, to, category)) {
                        see(number, Nanos(from), Nanos(to), category);
                    }
                }
            });
            if let Some((from, to, category)) = open {
                see(number, Nanos(from), Nanos(to), category);
            }
        });
    }
}

fn thread<'a>(life: &Life<'a>) -> TimelineThread<'a> {
    TimelineThread { process: life.process, tid: life.tid, name: life.name, began: life.began, ended: life.ended }
}
