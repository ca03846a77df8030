//! Which part of a thread's time on the CPU was the kernel's.
//!
//! Two witnesses know: CPU samples, and the kernel's own user and system times. The latter are counted by ticks on most kernels,
//! and hold page faults and memory calls, which are taken off. Samples come first where there are enough, because they can be
//! told apart from those in faults, and because their error is known.

use crate::interval::share_interval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_tables::Nanos;

/// Samples below which user and system times are asked: a share of half is then known to 17 points of a hundred or worse.
const ENOUGH_SAMPLES: u64 = 30;

/// User and system time together below which they tell nothing: ten ticks of a kernel with 100 of them a second, the fewest that
/// there are.
const ENOUGH_TICKS: Nanos = Nanos(100_000_000);

/// What told user and kernel time apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SplitBy {
    /// CPU samples.
    Samples,
    /// The kernel's user and system time.
    KernelCounters,
    /// Nothing: there were too few of both. The time stands in the category `on_cpu`.
    Nothing,
}

/// The kernel's part.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Split {
    pub by: SplitBy,
    /// In the kernel, outside of faults and memory calls.
    pub kernel: Nanos,
    /// 95 % interval of `kernel`; none unless by samples.
    pub interval: Option<(Nanos, Nanos)>,
}

/// Splits `rest`, the time on the CPU outside of faults and memory calls. `kernel_before` is the time in these; `samples` (user,
/// kernel) are those outside of them, `ticks` (user, system) the kernel's times of everything.
pub(crate) fn split(rest: Nanos, kernel_before: Nanos, samples: (u64, u64), ticks: Option<(Nanos, Nanos)>) -> Split {
    let count = samples.0 + samples.1;
    if count >= ENOUGH_SAMPLES {
        let of_rest = |share: f64| Nanos((rest.0 as f64 * share).round() as u64);
        // The interval takes samples for independent, which those of a regular clock are unless the thread keeps time with it.
        let (low, high) = share_interval(samples.1 as f64, count as f64);
        let kernel = of_rest(samples.1 as f64 / count as f64);
        return Split {
            by: SplitBy::Samples,
            kernel,
            interval: Some((of_rest(low).min(kernel), of_rest(high).max(kernel))),
        };
    }
    if let Some((user, system)) = ticks.filter(|(user, system)| *user + *system >= ENOUGH_TICKS) {
        let all = rest + kernel_before;
        let share = system.0 as f64 / (user + system).0 as f64;
        let kernel = Nanos((all.0 as f64 * share).round() as u64) - kernel_before;
        return Split { by: SplitBy::KernelCounters, kernel: kernel.min(rest), interval: None };
    }
    Split { by: SplitBy::Nothing, kernel: Nanos(0), interval: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_give_the_share_with_its_interval() {
        let found = split(Nanos(1_000_000), Nanos(500), (75, 25), None);
        assert_eq!((found.by, found.kernel), (SplitBy::Samples, Nanos(250_000)));
        // Wilson's interval of 25 of 100, by hand: 0.1755 to 0.3430.
        let (low, high) = found.interval.unwrap();
        assert!(low.0.abs_diff(175_500) < 200 && high.0.abs_diff(343_000) < 200, "{low:?} {high:?}");
        let none = split(Nanos(1_000_000), Nanos(0), (100, 0), None);
        assert_eq!(none.kernel, Nanos(0));
        assert!(none.interval.unwrap().1.0.abs_diff(37_000) < 200, "{none:?}");
    }

    #[test]
    fn few_samples_leave_it_to_system_time_less_that_of_faults() {
        let ms = |ms: u64| Nanos(ms * 1_000_000);
        // Half of 200 ms was in the kernel, 40 ms of it in faults.
        let found = split(ms(160), ms(40), (5, 5), Some((ms(100), ms(100))));
        assert_eq!(found, Split { by: SplitBy::KernelCounters, kernel: ms(60), interval: None });
        // Faults took more than ticks saw, and ticks saw nothing but the kernel.
        assert_eq!(split(ms(160), ms(140), (0, 0), Some((ms(100), ms(100)))).kernel, ms(10));
        assert_eq!(split(ms(160), ms(90), (0, 0), Some((ms(190), ms(10)))).kernel, ms(0));
        assert_eq!(split(ms(160), ms(0), (0, 0), Some((ms(0), ms(200)))).kernel, ms(160));
    }

    #[test]
    fn nothing_is_made_up() {
        let found = split(Nanos(1_000), Nanos(0), (29, 0), Some((Nanos(0), Nanos(99_999_999))));
        assert_eq!((found.by, found.kernel, found.interval), (SplitBy::Nothing, Nanos(0), None));
        assert_eq!(split(Nanos(1_000), Nanos(0), (0, 0), None).by, SplitBy::Nothing);
    }
}
