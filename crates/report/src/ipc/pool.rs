//! `slowpath ipc latency -w` in a terminal.

use super::figure;
use slowpath_ipc::latency::pool::Pool;

/// The whole result.
pub fn text(pool: &Pool) -> String {
    use std::fmt::Write;
    let mut text = String::new();
    let _ = writeln!(text, "{} workers, {}, {} bytes", pool.workers, pool.transport, pool.payload_bytes);
    if let (Some(rate), Some(average), Some(worst), Some(best)) =
        (pool.iterations_per_sec, &pool.average, &pool.worst, &pool.best)
    {
        let _ = writeln!(text, "iterations per sec: {rate:.1}");
        let (average, worst, best) = (average.value, worst.value, best.value);
        let _ = writeln!(text, "average:{average:.4}ms worst:{worst:.4}ms best:{best:.4}ms");
    }
    for (percentile, quantity) in &pool.percentiles {
        if quantity.low.is_some() {
            let _ = writeln!(text, "{percentile:>5} %  {} ms", figure(quantity));
        }
    }
    if let Some(beyond) = &pool.beyond {
        let origin = if beyond.trained { " (twice the worst of the training round)" } else { "" };
        let _ = writeln!(text, "beyond {} us{origin}: {} of {} calls", beyond.expected_us, beyond.calls, pool.calls);
    }
    for ended in &pool.ended {
        let _ = writeln!(text, "{ended}; the figures are of what was done before");
    }
    text
}
