//! One round of a scenario: a browser is started with a fresh profile, visits all pages, and is ended.
//!
//! Pages are served and the conversation with the browser is led by a process of the target's user: what it reads (pages,
//! the browser's profile) is that user's, and so is whatever the browser could make it do.

use crate::benchmark::LaunchArm;
use crate::{Measures, measures};
use serde::{Deserialize, Serialize};
use slowpath_analysis::starts::children::{ChildLaunch, child_launches};
use slowpath_browse::{Page, PageServer, VisitError, Visitor};
use slowpath_capture::{Options, RawCapture, decode};
use slowpath_launch::{BoxError, EndPolicy, Hooks, Identity, LaunchOutcome, Launcher, ProcessLauncher, StdioPolicy};
use slowpath_process::Duty;
use slowpath_session::failure::{Failure, Kind, failed};
use slowpath_session::interrupt;
use slowpath_session::recorded_launch::RecorderHooks;
use slowpath_session::target::launch_failure;
use slowpath_session::unprivileged::{Work, Worker, as_user};
use slowpath_tables::{Losses, Nanos, Visit};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// What a round gave.
pub struct Round {
    /// From the release of the browser's exec until a tab could be asked for a page, ms.
    pub start: f64,
    /// The visits, in the order in which they were made.
    pub visits: Vec<PageVisit>,
    /// The launches of the browser's children; `None` where nothing could be recorded.
    pub children: Option<Vec<ChildLaunch>>,
    /// Events that the recorder lost.
    pub losses: Losses,
    /// The numbers of the whole tree.
    pub measures: Measures,
}

/// One visit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PageVisit {
    /// Number of the page in the scenario.
    pub page: usize,
    /// When the browser was asked for it (`CLOCK_MONOTONIC`).
    pub from: Nanos,
    /// When it had reported the milestones.
    pub to: Nanos,
    /// The milestones.
    pub milestones: Visit,
}

/// How a round ended.
pub enum Ended {
    /// All pages were visited.
    Whole(Box<Round>),
    /// The browser ended, or a page could not be loaded.
    Failed(String),
    /// The user asked to stop.
    Stopped,
}

/// What a round is made with.
pub struct Plan<'a> {
    /// The pages.
    pub pages: &'a [Page],
    /// Their order in this round.
    pub order: &'a [usize],
    /// The longest that the start and each page may take.
    pub limit: Duration,
    /// Whether child launches are recorded.
    pub record: bool,
}

/// What the worker reports.
#[derive(Serialize, Deserialize)]
struct Visited {
    connected: Nanos,
    visits: Vec<PageVisit>,
}

/// Makes one round. `pad` is the size of a variable that is added to the environment.
pub fn round(
    launcher: &mut ProcessLauncher,
    arm: &LaunchArm,
    plan: &Plan,
    pad: (std::ffi::OsString, std::ffi::OsString),
) -> Result<Ended, Failure> {
    let (mut spec, fresh) = arm.target.spec(EndPolicy::KillTree, StdioPolicy::Capture)?;
    // The worker knows when it has taken too long; the browser itself never ends.
    spec.timeout = None;
    spec.devtools = true;
    spec.env.push(pad);
    let _profile = fresh.ok_or_else(|| Failure::new(Kind::Machine, "a browser without a profile"))?;
    let options = Options { first_waits: true, processes_only: true, ..Options::default() };
    let recorder = plan.record.then(|| RecorderHooks::load(options, &arm.target.identity)).transpose()?;
    let steps = u32::try_from(plan.order.len()).unwrap_or(u32::MAX).saturating_add(STEPS);
    let until = Instant::now().checked_add(plan.limit.saturating_mul(steps));
    let identity = &arm.target.identity;
    let mut browsing = Browsing { recorder, identity, plan, devtools: None, worker: None, until, answer: None };
    let outcome = launcher.launch(&spec, &mut browsing).map_err(|error| launch_failure(&error));
    let answer = browsing.answer.take();
    let recorded = browsing.recorder.take().map(RecorderHooks::finish);
    // Ends the worker where the browser ended first.
    drop(browsing);
    let outcome = outcome?;
    if interrupt::requested() {
        return Ok(Ended::Stopped);
    }
    let visited = match answer {
        Some(Ok(visited)) => visited,
        Some(Err(failure)) if failure.kind() == Kind::Target => return Ok(Ended::Failed(failure.chain())),
        Some(Err(failure)) => return Err(failure),
        None => return Ok(Ended::Failed(ended_early(&outcome))),
    };
    let (children, losses) = match recorded.transpose()? {
        Some((_, Some(stop))) => return Ok(Ended::Failed(stop.to_owned())),
        Some((raw, None)) => {
            let (children, losses) = decoded(&arm.target.identity, &raw)?;
            (Some(children), losses)
        }
        None => (None, Losses::default()),
    };
    Ok(Ended::Whole(Box::new(Round {
        start: visited.connected.0.saturating_sub(outcome.released_at) as f64 / 1e6,
        visits: visited.visits,
        children,
        losses,
        measures: measures(&outcome),
    })))
}

fn ended_early(outcome: &LaunchOutcome) -> String {
    match outcome.require_ready() {
        Ok(_) => "the browser ended by itself before all pages were visited".to_owned(),
        Err(error) => format!("the browser ended: {error}"),
    }
}

/// What was recorded, decoded without privilege.
fn decoded(identity: &Identity, raw: &RawCapture) -> Result<(Vec<ChildLaunch>, Losses), Failure> {
    as_user(identity, &Work::reading("reading a recorded round"), || {
        let tables = decode(raw);
        Ok((child_launches(&tables), tables.manifest.losses))
    })
}

/// The hooks of the launch: the recorder's, and the worker that visits.
struct Browsing<'a> {
    recorder: Option<RecorderHooks>,
    identity: &'a Identity,
    plan: &'a Plan<'a>,
    /// Held until the browser is ended: it would end by itself when nobody holds this, which is no part of what is measured.
    devtools: Option<UnixStream>,
    worker: Option<Worker<Visited>>,
    /// When the worker is given up: it waits for the browser, and has limits of its own for every step, but not for all together.
    until: Option<Instant>,
    /// What the worker came back with.
    answer: Option<Result<Visited, Failure>>,
}

impl Hooks for Browsing<'_> {
    fn on_devtools(&mut self, socket: OwnedFd) {
        self.devtools = Some(socket.into());
    }

    fn before_release(&mut self, pid: i32) -> Result<(), BoxError> {
        let plan = self.plan;
        let devtools = self.devtools.as_ref().ok_or("a browser without a socket for DevTools")?;
        // Before the recorder follows the target: what it forks is no child of the browser.
        let what = Work::new("visiting the pages", Duty::Browse).keeping(devtools);
        self.worker = Some(Worker::start(self.identity, &what, || visit_all(plan, devtools))?);
        match &mut self.recorder {
            Some(recorder) => recorder.before_release(pid),
            None => Ok(()),
        }
    }

    fn on_released(&mut self, at: u64) {
        if let Some(recorder) = &mut self.recorder {
            recorder.on_released(at);
        }
    }

    fn on_tick(&mut self) {
        if let Some(recorder) = &mut self.recorder {
            recorder.on_tick();
        }
        if self.answer.is_none() {
            self.answer = self.worker.as_mut().and_then(Worker::poll);
        }
        if self.answer.is_none() && self.until.is_some_and(|until| Instant::now() >= until) {
            let failure = Failure::new(Kind::Target, "the browser kept the visits from ending within the time of all");
            self.answer = Some(Err(failure));
        }
    }

    fn stop_requested(&self) -> bool {
        let is_over = self.recorder.as_ref().is_some_and(Hooks::stop_requested);
        self.answer.is_some() || is_over || interrupt::requested()
    }
}

/// Steps beside the pages: the tab, which comes when the browser has started; and one in which all that is slowpath's own is done.
const STEPS: u32 = 2;

/// Serves the pages, waits for the browser and visits them.
fn visit_all(plan: &Plan, devtools: &UnixStream) -> Result<Visited, Failure> {
    let server = PageServer::start(plan.pages).map_err(failed(Kind::Machine))?;
    let socket = devtools.try_clone().map_err(failed(Kind::Machine))?;
    let mut visitor = Visitor::open(socket, plan.limit).map_err(|error| match error {
        VisitError::NoAnswer(_) => {
            let seconds = plan.limit.as_secs();
            Failure::new(
                Kind::Target,
                format!(
                    "the browser did not answer to DevTools within {seconds} s: it must be of the Chromium family, and \
                     not hand over to one that runs already"
                ),
            )
        }
        error => failed(Kind::Target)(error),
    })?;
    let connected = now();
    let mut visits = Vec::with_capacity(plan.order.len());
    for &page in plan.order {
        let from = now();
        let milestones = visitor.visit(&server.urls()[page], plan.limit).map_err(|error| {
            let name = &plan.pages[page].name;
            Failure::new(Kind::Target, format!("page {name}: {error}"))
        })?;
        visits.push(PageVisit { page, from, to: now(), milestones });
    }
    Ok(Visited { connected, visits })
}

/// The clock of the recorder and of the launcher.
fn now() -> Nanos {
    let read = nix::time::clock_gettime(nix::time::ClockId::CLOCK_MONOTONIC);
    Nanos(read.map(Duration::from).map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
}
