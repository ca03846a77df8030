//! How far a benchmark can be trusted, on a terminal.

use slowpath_verify::benchmark::selftest::Selftest;

/// The lines.
pub fn selftest(selftest: &Selftest) -> String {
    let percent = |share: Option<f64>| share.map_or("?".to_owned(), |share| format!("{:.0}", share * 100.0));
    let mut text = format!(
        "{} of {} comparisons of the command with itself saw a difference that is not there: {} % ({} to {}); 5 % are \
         to be expected at most.\n",
        selftest.flagged,
        selftest.comparisons,
        percent(Some(selftest.share.value)),
        percent(selftest.share.low),
        percent(selftest.share.high)
    );
    text.push_str("With this noise a benchmark sees, in 80 % of its repetitions:\n");
    for one in &selftest.detectable {
        text.push_str(&format!("{:6} blocks: {:.1} %\n", one.blocks, one.share.value));
    }
    for condition in &selftest.conditions {
        text.push_str(&format!("  {condition}\n"));
    }
    text
}
