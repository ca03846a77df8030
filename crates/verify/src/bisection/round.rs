//! One candidate at a time, or several as one, in both directions: added to the fast context, and taken out of the slow one.
//!
//! Every arm is compared with the whole contexts of its own blocks and has looks of its own, so it may stop, pause and go on without
//! harm to its error. That is used twice: after a few blocks those that seem to matter go first, and the others only go on when
//! these do not explain the difference.

use super::choice::{Choice, Group};
use super::launches::{Launches, Stage};
use super::log_ratio::LogRatio;
use super::outcome::{CandidateEffect, Direction, State};
use super::settings::Settings;
use super::target::Target;
use slowpath_experiment::looks::Looks;
use slowpath_experiment::{Level, power, signed_rank};
use std::collections::BTreeSet;
use std::time::Duration;

/// Blocks with all arms, before those go on that seem to matter.
const SCREEN: usize = 4;
/// Share of the gap above which an effect seems to matter then.
const SEEMS: f64 = 0.25;
/// Blocks that are planned at least: with them the first look comes at 12.
const FEWEST: usize = 20;
/// Blocks that are planned at most.
const MOST: usize = 48;
/// Corrected intervals are wider than those that [`power::pairs_needed`] plans for: half as wide again at one of 24.
const CORRECTED: f64 = 2.25;
/// Blocks in which everything found is tried at once: enough for a value, and for an interval.
const GLANCE: usize = 5;
const JOINT: usize = 8;
/// Blocks of a group, which is never named: it is divided or left alone after one look.
const GROUP: usize = 8;

/// One direction of a group.
struct Arm {
    quicker: Choice,
    slower: Choice,
    /// The one of both that is no whole context.
    own: Choice,
    looks: Looks,
    whole: Level,
    blocks: usize,
    state: State,
    ratio: Option<LogRatio>,
}

impl Arm {
    fn new([quicker, slower]: [Choice; 2], own: Choice, most: usize, level: Level) -> Self {
        let looks = Looks::new(most, level);
        Self { quicker, slower, own, looks, whole: level, blocks: 0, state: State::Open, ratio: None }
    }

    fn next_look(&self) -> Option<usize> {
        self.looks.blocks().find(|look| *look > self.blocks)
    }

    fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Takes in what was run since `from`; `over`: there will be no more.
    fn judge<E>(&mut self, launches: &Launches<'_, E>, settings: &Settings, target: &Target, from: usize, over: bool) {
        self.blocks = launches.shared(&self.quicker, &self.slower, from);
        if !self.is_open() {
            return;
        }
        // What a whole context does is no failure of a candidate.
        let whole = [Choice::fast(), Choice::slow(target.count)];
        if let Some(failure) = launches.failure(&self.own).filter(|_| !whole.contains(&self.own)) {
            self.state = State::Failed(failure.reason.clone());
            return;
        }
        let at_look = self.looks.at(self.blocks);
        let level = if over { at_look.or(self.looks.last(self.blocks)) } else { at_look };
        let pairs = launches.pairs(settings.metric, &self.quicker, &self.slower, from);
        // Between looks there is a value and no interval.
        let Some(level) = level else {
            self.ratio = LogRatio::of(&pairs, self.whole).map(|mut ratio| {
                (ratio.estimate.low, ratio.estimate.high) = (None, None);
                ratio
            });
            return;
        };
        self.ratio = LogRatio::of(&pairs, level);
        if let Some(ratio) = &self.ratio {
            if target.is_effect(ratio) {
                self.state = State::Shown;
            } else if ratio.is_below(target.margin) {
                self.state = State::Small;
            }
        }
    }

    fn value(&self) -> f64 {
        self.ratio.map_or(0.0, |ratio| ratio.estimate.value)
    }

    fn direction(self) -> Direction {
        Direction { ratio: self.ratio, state: self.state }
    }
}

/// Both directions of a group.
struct Pair {
    group: Group,
    arms: [Arm; 2],
}

impl Pair {
    fn is_shown(&self) -> bool {
        self.arms.iter().any(|arm| arm.state == State::Shown)
    }
}

/// Blocks until the next look at one of the arms of `which` that are open.
fn next_look(pairs: &[Pair], which: &BTreeSet<usize>) -> Option<usize> {
    let open = which.iter().flat_map(|index| &pairs[*index].arms).filter(|arm| arm.is_open());
    open.filter_map(|arm| Some(arm.next_look()? - arm.blocks)).min()
}

/// What a round works with.
pub(super) struct Round<'r, 'a, E> {
    pub launches: &'r mut Launches<'a, E>,
    pub settings: &'r Settings,
    pub target: &'r Target,
    pub until: Duration,
    /// What earlier rounds have found: it counts as explained.
    pub found: Group,
}

impl<E> Round<'_, '_, E> {
    /// Tries each of `groups`.
    ///
    /// # Errors
    /// A launch cannot be made.
    pub(super) fn run(mut self, phase: &str, groups: &[Group]) -> Result<Vec<CandidateEffect>, E> {
        let from = self.launches.next_block();
        let most = self.planned(groups);
        let count = self.target.count;
        let (fast, slow) = (Choice::fast(), Choice::slow(count));
        let pairs = groups.iter().map(|group| {
            let level = self.target.level(group.len(), groups.len());
            let most = if group.len() > 1 { GROUP.max(fewest_blocks(level)) } else { most };
            let (with, without) = (Choice::Slow(group.clone()), Choice::without(group, count));
            let sufficient = Arm::new([fast.clone(), with.clone()], with, most, level);
            let necessary = Arm::new([without.clone(), slow.clone()], without, most, level);
            Pair { group: group.clone(), arms: [sufficient, necessary] }
        });
        let mut pairs: Vec<Pair> = pairs.collect();
        let everything: BTreeSet<usize> = (0..pairs.len()).collect();
        let mut stage = self.blocks(phase, &mut pairs, &everything, SCREEN, from)?;
        if stage == Stage::Whole {
            stage = self.leaders(phase, &mut pairs, from)?;
        }
        if stage == Stage::Whole {
            stage = self.drive(phase, &mut pairs, &everything, from)?;
        }
        for arm in pairs.iter_mut().flat_map(|pair| &mut pair.arms) {
            arm.judge(self.launches, self.settings, self.target, from, true);
        }
        self.launches.note(stage);
        let tested = pairs.into_iter().map(|Pair { group, arms: [sufficient, necessary] }| CandidateEffect {
            group,
            sufficient: sufficient.direction(),
            necessary: necessary.direction(),
        });
        Ok(tested.collect())
    }

    /// Those that seem to matter go first, as long as they do. Where what is shown explains the gap, nothing else is needed.
    fn leaders(&mut self, phase: &str, pairs: &mut [Pair], from: usize) -> Result<Stage, E> {
        let seems = self.target.margin.max(SEEMS * self.target.gap);
        let leading = |pairs: &[Pair], least: f64| -> BTreeSet<usize> {
            let leads = |pair: &Pair| pair.arms.iter().any(|arm| arm.value() >= least);
            (0..pairs.len()).filter(|index| leads(&pairs[*index])).collect()
        };
        let first = leading(pairs, seems);
        let mut shown = 0;
        loop {
            let now = pairs.iter().filter(|pair| pair.is_shown()).count();
            if now > shown && self.is_explained(pairs)? {
                let open = pairs.iter_mut().flat_map(|pair| &mut pair.arms).filter(|arm| arm.is_open());
                open.for_each(|arm| arm.state = State::NotNeeded);
                return Ok(Stage::Whole);
            }
            shown = now;
            // What only seemed so by chance falls back.
            let still: BTreeSet<usize> = first.intersection(&leading(pairs, seems / 2.0)).copied().collect();
            let Some(more) = next_look(pairs, &still) else { return Ok(Stage::Whole) };
            let stage = self.blocks(phase, pairs, &still, more, from)?;
            if stage != Stage::Whole {
                return Ok(stage);
            }
        }
    }

    /// Blocks until the arms of `which` have had their looks and are decided.
    fn drive(&mut self, phase: &str, pairs: &mut [Pair], which: &BTreeSet<usize>, from: usize) -> Result<Stage, E> {
        loop {
            let Some(more) = next_look(pairs, which) else { return Ok(Stage::Whole) };
            let stage = self.blocks(phase, pairs, which, more, from)?;
            if stage != Stage::Whole {
                return Ok(stage);
            }
        }
    }

    /// Runs blocks with the whole contexts and the open arms of `which`.
    fn blocks(
        &mut self,
        phase: &str,
        pairs: &mut [Pair],
        which: &BTreeSet<usize>,
        blocks: usize,
        from: usize,
    ) -> Result<Stage, E> {
        let mut choices = vec![Choice::fast(), Choice::slow(self.target.count)];
        let open = which.iter().flat_map(|index| &pairs[*index].arms).filter(|arm| arm.is_open());
        choices.extend(open.flat_map(|arm| [arm.quicker.clone(), arm.slower.clone()]));
        let stage = self.launches.run(phase, &choices, blocks, self.until)?;
        for arm in pairs.iter_mut().flat_map(|pair| &mut pair.arms) {
            arm.judge(self.launches, self.settings, self.target, from, false);
        }
        Ok(if self.target.failure(self.launches).is_some() { Stage::Failed } else { stage })
    }

    /// Whether what was found leaves so little of the gap that nothing else need be looked for.
    fn is_explained(&mut self, pairs: &[Pair]) -> Result<bool, E> {
        let shown = pairs.iter().filter(|pair| pair.is_shown()).flat_map(|pair| pair.group.iter().copied());
        let found: Group = shown.chain(self.found.iter().copied()).collect();
        if found.is_empty() {
            return Ok(false);
        }
        let (with, slow) = (Choice::Slow(found.clone()), Choice::slow(self.target.count));
        let more = GLANCE.saturating_sub(self.launches.shared(&with, &slow, 0));
        self.launches.run("what was found, at once", &[with, slow], more, self.until)?;
        Ok(rest(self.launches, self.settings, self.target, &found).is_some_and(|rest| self.target.is_little(&rest)))
    }

    /// Blocks that the arms are planned for: as many as an effect of a third of the gap takes, and as the time allows.
    fn planned(&self, groups: &[Group]) -> usize {
        let (fast, slow) = (Choice::fast(), Choice::slow(self.target.count));
        let sigma = power::robust_sigma(&self.launches.pairs(self.settings.metric, &fast, &slow, 0));
        let effect = (self.target.gap / 3.0).max(self.target.margin);
        let needed = sigma.and_then(|sigma| power::pairs_needed(sigma, effect)).unwrap_or(FEWEST);
        let wanted = ((needed as f64 * CORRECTED) as usize).clamp(FEWEST, MOST);
        let both = self.launches.cost(&fast) + self.launches.cost(&slow);
        let time = self.until.saturating_sub(self.launches.elapsed()).as_secs_f64();
        let screening = SCREEN as f64 * both * (1 + groups.len()) as f64;
        let fitting = if both > 0.0 { ((time - screening) / (2.0 * both)).max(0.0) as usize + SCREEN } else { wanted };
        let least = fewest_blocks(self.target.level(1, groups.len()));
        wanted.min(fitting).max(least)
    }
}

/// Runs what is missing of the blocks in which all of `found` are slow at once, or fast at once.
pub(super) fn joint<E>(
    launches: &mut Launches<'_, E>,
    count: usize,
    found: &Group,
    until: Duration,
) -> Result<Stage, E> {
    let (fast, slow) = (Choice::fast(), Choice::slow(count));
    let (with, without) = (Choice::Slow(found.clone()), Choice::without(found, count));
    let have = launches.shared(&with, &fast, 0).min(launches.shared(&without, &slow, 0));
    launches.run("what was found, at once", &[fast, slow, with, without], JOINT.saturating_sub(have), until)
}

/// What is left of the gap when all of `found` are slow and everything else is fast.
pub(super) fn rest<E>(
    launches: &Launches<'_, E>,
    settings: &Settings,
    target: &Target,
    found: &Group,
) -> Option<LogRatio> {
    let with = Choice::Slow(found.clone());
    LogRatio::of(&launches.pairs(settings.metric, &with, &Choice::slow(target.count), 0), Level::P95)
}

/// The fewest pairs with which an interval of this level exists: the probability that all of them agree in sign must stay below the
/// error (see [`signed_rank::centre`]).
pub(super) fn fewest_blocks(level: Level) -> usize {
    (1..=signed_rank::EXACT_LIMIT)
        .find(|pairs| 2.0f64.powi(1 - i32::try_from(*pairs).unwrap_or(i32::MAX)) < level.error())
        .unwrap_or(signed_rank::EXACT_LIMIT)
}

/// Blocks that a round spends before its leaders are decided, in units of both contexts: what a plan of groups must pay for.
pub(super) fn price(groups: usize, level: Level) -> f64 {
    (SCREEN * (1 + groups) + 2 * fewest_blocks(level).saturating_sub(SCREEN)) as f64
}
