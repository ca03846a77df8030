//! What a diagnosis that found nothing says: what it looked for, and from which cost on it would have found it.

use slowpath_analysis::{ShowsIn, findings};

/// The findings that show in what was looked at, with their least cost.
pub fn looked_for(is_looked_at: impl Fn(ShowsIn) -> bool) -> String {
    let mut by_least: Vec<(String, Vec<&str>)> = Vec::new();
    for finding in findings::ALL.iter().filter(|finding| is_looked_at(finding.shows_in)) {
        let least = (finding.least)();
        match by_least.iter_mut().find(|(same, _)| *same == least) {
            Some((_, titles)) => titles.push(finding.title),
            None => by_least.push((least, vec![finding.title])),
        }
    }
    let groups = by_least.iter().map(|(least, titles)| format!("{} (from {least} on)", titles.join(", ")));
    format!("looked for {}", groups.collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_looked_at_is_called_so() {
        let (files, sleeps) = ("reads from storage before ready (from 2 %", "sleeps and time-outs");
        let cold = looked_for(|shows_in| shows_in == ShowsIn::ColdLaunches);
        assert!(cold.contains(files) && !cold.contains(sleeps));
        let warm = looked_for(|shows_in| shows_in != ShowsIn::ColdLaunches);
        assert!(!warm.contains(files) && warm.contains(sleeps));
        assert!(!looked_for(|shows_in| shows_in == ShowsIn::AnyWork).contains(sleeps));
        for finding in &findings::ALL {
            assert!(looked_for(|_| true).contains(finding.title), "{finding:?}");
        }
    }
}
