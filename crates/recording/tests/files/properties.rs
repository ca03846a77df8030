//! Any bytes may stand in a manifest and any text in the text form.

use crate::samples;
use proptest::prelude::*;
use slowpath_recording::{Manifest, Tables};
use slowpath_tables::{Bytes, Exit, Nanos, Open, RefusedCall};

/// A string from an alphabet that the text form has to quote.
fn hostile_text() -> impl Strategy<Value = String> {
    proptest::collection::vec(
        prop_oneof![
            Just(' '),
            Just('"'),
            Just('\\'),
            Just('-'),
            Just('='),
            Just('#'),
            Just('\n'),
            Just('\r'),
            Just('\0'),
            Just('\u{85}'),
            Just('\u{2028}'),
            Just('\u{202e}'),
            Just('\u{feff}'),
            any::<char>(),
        ],
        0..12,
    )
    .prop_map(|chars| chars.into_iter().collect())
}

fn open_row() -> impl Strategy<Value = Open> {
    (any::<u64>(), any::<u32>(), hostile_text(), any::<i32>(), any::<Option<u64>>()).prop_map(
        |(ts, pid, path, result, dev)| Open {
            ts: Nanos(ts),
            pid,
            start: Nanos(ts ^ 1),
            tid: pid,
            path,
            flags: pid,
            call: dev.map(|_| RefusedCall::MakeDirectory),
            result,
            dev,
            ino: dev,
        },
    )
}

fn exit_row() -> impl Strategy<Value = Exit> {
    (any::<u64>(), any::<u32>(), any::<bool>(), any::<Option<i32>>()).prop_map(|(ts, pid, last, status)| Exit {
        ts: Nanos(ts),
        pid,
        start: Nanos(0),
        tid: pid,
        last,
        status,
        signal: status.map(|s| !s),
        min_flt: ts,
        maj_flt: 0,
        utime: Nanos(ts),
        stime: Nanos(1),
        run_time: (!last).then_some(Nanos(ts)),
        read_bytes: Bytes(ts),
        running: !last,
    })
}

proptest! {
    #[test]
    fn tables_survive_the_text_form(
        opens in proptest::collection::vec(open_row(), 0..5),
        exits in proptest::collection::vec(exit_row(), 0..5),
        command in proptest::collection::vec(hostile_text(), 0..4),
    ) {
        let mut tables = Tables { opens, exits, ..Tables::default() };
        tables.manifest.command = command;
        let text = tables.to_text();
        prop_assert_eq!(Tables::from_text(&text).map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?, tables);
    }

    #[test]
    fn a_manifest_survives_its_json(
        command in proptest::collection::vec(hostile_text(), 0..4),
        losses in proptest::collection::btree_map(hostile_text(), any::<u64>(), 0..4),
        ended in any::<Option<u64>>(),
        realtime in any::<i64>(),
    ) {
        let mut manifest = Manifest { command, ended: ended.map(Nanos), ..Manifest::default() };
        manifest.losses.0 = losses;
        manifest.clock.realtime = realtime;
        prop_assert_eq!(Manifest::parse(manifest.to_json().as_bytes()).unwrap(), manifest);
    }

    #[test]
    fn any_bytes_as_a_manifest_are_an_answer_and_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = Manifest::parse(&bytes);
    }

    #[test]
    fn a_damaged_manifest_is_an_answer_and_no_panic(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut json = samples::every_table().manifest.to_json().into_bytes();
        for (at, byte) in edits {
            let at = at.index(json.len());
            json[at] = byte;
        }
        let _ = Manifest::parse(&json);
        json.truncate(cut.index(json.len()));
        prop_assert!(Manifest::parse(&json).is_err(), "a manifest cut short was accepted");
    }

    #[test]
    fn a_damaged_text_form_is_an_answer_and_no_panic(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<char>()), 1..6),
    ) {
        let mut text: Vec<char> = samples::EVERY_TABLE.chars().collect();
        for (at, c) in edits {
            let at = at.index(text.len());
            text[at] = c;
        }
        let text: String = text.into_iter().collect();
        if let Err(error) = Tables::from_text(&text) {
            prop_assert!(error.line >= 1 && error.line <= text.lines().count());
        }
    }

    #[test]
    fn any_text_as_text_form_is_an_answer_and_no_panic(text in ".{0,200}", table in "(== (opens|faults|manifest)\n)?") {
        let _ = Tables::from_text(&format!("{table}{text}"));
    }
}
