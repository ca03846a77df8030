//! A row a launch: what spreadsheets, R and pandas read.

use crate::Benchmark;
use slowpath_verify::Metric;

/// Columns before the metrics.
const COLUMNS: [&str; 3] = ["arm", "block", "position"];

/// The table (RFC 4180), with a header. Times are in milliseconds, sizes in bytes; an empty field was not measured, and a
/// launch that does not count has no row. A name that a spreadsheet would take for a formula is quoted by a leading `'`.
pub fn table(benchmark: &Benchmark) -> String {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let metrics = Metric::ALL;
    let header = COLUMNS.into_iter().map(str::to_owned).chain(metrics.map(|metric| metric.name().to_owned()));
    // Writing into memory does not fail, and every row has as many fields as the header.
    let _ = writer.write_record(header);
    for arm in &benchmark.arms {
        for (block, launch) in arm.launches.iter().enumerate() {
            let Some(launch) = launch else { continue };
            let place = [harmless(&arm.name), block.to_string(), launch.position.to_string()];
            let numbers =
                metrics.map(|metric| launch.measures.get(&metric).map(ToString::to_string).unwrap_or_default());
            let _ = writer.write_record(place.into_iter().chain(numbers));
        }
    }
    String::from_utf8(writer.into_inner().unwrap_or_default()).unwrap_or_default()
}

/// Text that no spreadsheet takes for a formula.
pub(crate) fn harmless(name: &str) -> String {
    if name.starts_with(['=', '+', '-', '@', '\t', '\r']) { format!("'{name}") } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exports::sample;

    #[test]
    fn every_launch_that_counts_has_a_row_and_names_are_quoted() {
        let mut benchmark = sample::benchmark();
        benchmark.arms[1].name = "=a,\"b\"".to_owned();
        let text = table(&benchmark);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("arm,block,position,wall,cpu,"), "{}", lines[0]);
        assert!(lines[1].starts_with("old,0,0,10,"), "{}", lines[1]);
        assert_eq!(lines.len(), 1 + 2 + 1);
        assert!(lines[3].starts_with("\"'=a,\"\"b\"\"\",0,1,12,"), "{}", lines[3]);
    }
}
