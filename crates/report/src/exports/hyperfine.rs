//! The JSON of `hyperfine --export-json` (version 1.15), for programs that read that.

use crate::Benchmark;
use serde_json::{Value, json};
use slowpath_verify::Metric;

/// The object. Times are in seconds; mean and standard deviation are over all launches that count. A launch that does
/// not count is left out, so an arm can have fewer times than the benchmark has blocks.
pub fn json(benchmark: &Benchmark) -> Value {
    let results: Vec<Value> = benchmark
        .arms
        .iter()
        .map(|arm| {
            let seconds = |metric: Metric| -> Vec<f64> {
                let launches = arm.launches.iter().flatten();
                launches.filter_map(|launch| launch.measures.get(&metric)).map(|ms| ms / 1e3).collect()
            };
            let times = seconds(Metric::Wall);
            json!({
                "command": arm.command.join(" "),
                "mean": mean(&times),
                "stddev": deviation(&times),
                "median": arm.medians.get(&Metric::Wall).map(|median| median.value / 1e3),
                "user": mean(&seconds(Metric::User)),
                "system": mean(&seconds(Metric::System)),
                "min": times.iter().copied().reduce(f64::min),
                "max": times.iter().copied().reduce(f64::max),
                "exit_codes": vec![0; times.len()],
                "times": times,
                "parameters": { "name": arm.name },
            })
        })
        .collect();
    json!({ "results": results })
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Of the sample, with `n - 1`; none below two values.
fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exports::sample;

    #[test]
    fn times_are_in_seconds_and_a_missing_launch_is_left_out() {
        let value = json(&sample::benchmark());
        let first = &value["results"][0];
        assert_eq!(first["command"], "old --x");
        assert_eq!(first["times"], json!([0.01, 0.02]));
        assert_eq!(first["mean"], 0.015);
        assert!((first["stddev"].as_f64().unwrap() - 0.007_071).abs() < 1e-5);
        let second = &value["results"][1];
        assert_eq!((second["times"].as_array().unwrap().len(), &second["stddev"]), (1, &Value::Null));
    }
}
