//! A simulated machine on which a command takes longer by what its slow candidates cost together.

use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};
use slowpath_verify::bisection::{
    Bench, Bisection, BisectionError, Candidate, Choice, Expected, Group, Settings, Side, bisect,
};
use slowpath_verify::{Measured, Metric, Sample};
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::time::Duration;

/// What the machine does besides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Course {
    /// Normal noise.
    Still,
    /// A tenth of the launches has eight times the noise.
    Tails,
    /// It gets slower by a fifth over a hundred launches, again and again.
    Drift,
}

/// Noise of a launch, as a share of its time.
const NOISE: f64 = 0.03;

/// A machine.
pub struct Machine<'a> {
    pub candidates: usize,
    /// How many of them are known to matter.
    pub alone: usize,
    /// Logarithm of what these cost together.
    pub effect: &'a dyn Fn(&Group) -> f64,
    /// What the slow side as given costs besides.
    pub beside: f64,
    pub course: Course,
    /// Seconds of a launch without anything slow.
    pub base: f64,
    pub seconds: f64,
    /// The counter of the mechanism of all candidates.
    pub counter: fn(&Group) -> f64,
    /// With exactly these slow the command fails, after so many launches of it.
    pub fails: Option<(Group, usize)>,
    /// Seconds until a launch that fails is given up.
    pub hangs: f64,
    pub stop_after: Option<usize>,
    /// What is compared. Launches of the fast side have no voluntary switches, and none has a number of processes.
    pub value: Metric,
}

impl<'a> Machine<'a> {
    pub fn new(candidates: usize, effect: &'a dyn Fn(&Group) -> f64) -> Self {
        Self {
            candidates,
            alone: 0,
            effect,
            beside: 0.0,
            course: Course::Still,
            base: 0.2,
            seconds: 180.0,
            counter: |slow| slow.len() as f64,
            fails: None,
            hangs: 0.0,
            value: Metric::Wall,
            stop_after: None,
        }
    }

    pub fn bisect(&self, seed: u64) -> Bisection {
        self.run(seed).0.unwrap_or_else(|error| panic!("seed {seed}: {error}"))
    }

    /// Why it was given up.
    pub fn error(&self, seed: u64) -> BisectionError<Infallible> {
        self.run(seed).0.expect_err("it is given up")
    }

    /// What was launched, in its order.
    pub fn order(&self, seed: u64) -> Vec<Choice> {
        self.run(seed).1
    }

    fn run(&self, seed: u64) -> (Result<Bisection, BisectionError<Infallible>>, Vec<Choice>) {
        let clock = Cell::new(0.0);
        let order = RefCell::new(Vec::new());
        let mut noise = Noise(ChaCha8Rng::seed_from_u64(seed));
        let everything: Group = (0..self.candidates).collect();
        let mut launch = |choice: &Choice, _: usize| {
            order.borrow_mut().push(choice.clone());
            let launches = order.borrow().len();
            let (slow, beside) = match choice {
                Choice::Given(Side::Slow) => (&everything, self.beside),
                Choice::Given(Side::Fast) => (&Group::new(), 0.0),
                Choice::Slow(group) => (group, 0.0),
            };
            let earlier = order.borrow().iter().filter(|one| *one == choice).count() - 1;
            let fails = |(group, after): &(Group, usize)| {
                matches!(choice, Choice::Slow(_)) && group == slow && earlier >= *after
            };
            if self.fails.as_ref().is_some_and(fails) {
                clock.set(clock.get() + self.hangs);
                return Ok(Sample::Failed("it fails".to_owned()));
            }
            let drift = match self.course {
                Course::Drift => 0.2 * (launches % 100) as f64 / 100.0,
                _ => 0.0,
            };
            let wide = self.course == Course::Tails && noise.uniform() < 0.1;
            let own = NOISE * noise.normal() * if wide { 8.0 } else { 1.0 };
            let logarithm = (self.effect)(slow) + beside + drift + own;
            let seconds = self.base * logarithm.exp();
            clock.set(clock.get() + seconds + 0.002);
            let waits = if slow.is_empty() { 0.0 } else { 7.0 };
            let measures = [
                (Metric::Wall, seconds * 1e3),
                (Metric::Switches, (self.counter)(slow)),
                (Metric::VoluntarySwitches, waits),
            ]
            .into();
            Ok::<_, Infallible>(Sample::Measured(Measured { measures, ..Measured::default() }))
        };
        let candidates: Vec<Candidate> = (0..self.candidates)
            .map(|one| Candidate {
                expected: if one < self.alone { Expected::Heavy } else { Expected::Little },
                counters: vec![Metric::Switches],
            })
            .collect();
        let settings = Settings {
            metric: self.value,
            max_time: Duration::from_secs_f64(self.seconds),
            seed,
            given: true,
            margin: 0.02f64.ln_1p(),
        };
        let bench = Bench {
            launch: &mut launch,
            elapsed: &|| Duration::from_secs_f64(clock.get()),
            progress: &mut |progress| self.stop_after.is_none_or(|most| progress.launches < most),
        };
        let found = bisect(&candidates, &settings, bench);
        (found, order.into_inner())
    }
}

struct Noise(ChaCha8Rng);

impl Noise {
    /// Uniform between 0 and 1, without 0.
    fn uniform(&mut self) -> f64 {
        ((self.0.next_u64() >> 11) as f64 + 1.0) / (1u64 << 53) as f64
    }

    /// A standard normal number (Box and Muller).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}
