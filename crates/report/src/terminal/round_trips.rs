//! Waits for replies of other processes on a screen: a row for each pair.

use super::escape::escape;
use super::figures;
use super::item::Item;
use super::ledger::categories;
use super::line::{Line, Paint, left, right};
use super::sections::Section;
use super::style::Style;
use crate::ReplyPair;
use slowpath_tables::Quantity;

/// Pairs with a row of their own where there is room, and beside other things about a launch.
const PAIRS: usize = 8;
const BESIDE_A_LAUNCH: usize = 2;

const NAMES: usize = 26;
const COUNT: usize = 8;
const TIME: usize = 9;

/// The pairs where they are part of the main content.
pub(super) fn section(pairs: &[ReplyPair], style: &Style) -> Section {
    of_pairs(pairs, PAIRS, style)
}

/// The same in few lines.
pub(super) fn beside_a_launch(pairs: &[ReplyPair], style: &Style) -> Section {
    of_pairs(pairs, BESIDE_A_LAUNCH, style)
}

fn of_pairs(pairs: &[ReplyPair], most: usize, style: &Style) -> Section {
    if pairs.is_empty() {
        return Section::default();
    }
    let mut words = "waits for replies of other processes".to_owned();
    if pairs.len() > most {
        words.push_str(&format!(": the {most} longest of {} pairs; --json has all", pairs.len()));
    }
    let cells = [
        left("client > server", NAMES, style),
        right("replies", COUNT, style),
        right("p50", TIME, style),
        right("p99", TIME, style),
        right("waited", TIME, style),
        "  spent on".to_owned(),
    ];
    Section {
        head: vec![Line::of(Paint::Quiet, &words, style), Line::of(Paint::Quiet, &cells.concat(), style)],
        items: pairs.iter().take(most).map(|pair| row(pair, style)).collect(),
        what: "pairs",
        spaced: true,
        ..Section::default()
    }
}

fn row(pair: &ReplyPair, style: &Style) -> Item {
    let names = match pair.client == pair.server {
        true => format!("{} {} > {}", pair.client, pair.client_pid, pair.server_pid),
        false => format!("{} > {}", pair.client, pair.server),
    };
    let names = escape(&names, style.unicode);
    let time = |time: Quantity| right(&figures::value(&figures::readable(time), style), TIME, style);
    let start = [
        format!("{} ", left(&names, NAMES - 1, style)),
        right(&pair.round_trips.to_string(), COUNT, style),
        time(pair.p50),
        time(pair.p99),
        time(pair.waited),
        "  ".to_owned(),
    ];
    // Who served a reply ran for it.
    let spent = categories(&pair.rows).replace("user or kernel", "serving");
    Item::wrapped(Line::of(Paint::Plain, &start.concat(), style), Paint::Plain, &spent, Some(4), style)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round_trips_of;
    use crate::terminal::{Rest, screen};
    use slowpath_recording::Tables;

    /// A client asks once, and the server, whose name is hostile, sleeps for half of the time.
    const TEXT: &str = r#"
== manifest
{"started": 0, "ended": 100000000}
== execs
ts pid start filename command_line present
0  7   9     /bin/a   a            true
0  9   2     "b\u001b[31m" b       true
== exits
ts        pid start tid last running
100000000 7   9     7   true true
100000000 9   2     9   true true
== off_cpu
ts       duration pid start tid reason runnable woken    waker_pid waker_tid
0        10000000 9   2     9   poll   0        10000000 7         7
12000000 10000000 9   2     9   timer  0        -        -         -
10000000 20000000 7   9     7   poll   0        30000000 9         9
"#;

    #[test]
    fn each_pair_has_its_quantiles_and_what_the_wait_was_spent_on() {
        let tables = Tables::from_text(TEXT).unwrap();
        let pairs = round_trips_of(&tables);
        let style = Style { lines: usize::MAX, ..Style::PLAIN };
        let text = screen(vec![section(&pairs, &style)], Rest::InJson, &style);
        let words: Vec<String> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(words[0], "waits for replies of other processes", "{text}");
        assert!(words[2].ends_with("1 20.0 ms 20.0 ms 20.0 ms") || words[2].contains("20.0 ms serving 50 %"), "{text}");
        assert!(words[2..].join(" ").contains("serving 50 %, timers 50 %"), "{text}");
        assert!(text.lines().all(|line| line.len() <= 80) && !text.contains('\u{1b}'), "{text}");
        assert_eq!((pairs[0].round_trips, pairs[0].requests_not_seen, pairs[0].unknown.value), (1, 0, 0.0));
    }

    #[test]
    fn without_a_pair_there_is_nothing() {
        let empty = section(&[], &Style::PLAIN);
        assert!(empty.head.is_empty() && empty.items.is_empty());
    }
}
