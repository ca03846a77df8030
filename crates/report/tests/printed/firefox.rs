//! The profile for the Firefox Profiler, read as its published format says
//! (`docs-developer/processed-profile-format.md` and `CHANGELOG-formats.md` of the profiler's sources, version 55).

use crate::profiled;
use serde_json::{Value, json};
use slowpath_recording::Tables;
use slowpath_report::firefox;
use std::collections::BTreeSet;

fn profile(tables: &Tables) -> Value {
    let mut out = Vec::new();
    firefox::export(tables).write(&mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("no list: {value}"))
}

fn index(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap_or_else(|| panic!("no index: {value}"))).unwrap()
}

/// Every column of a table is as long as the table says.
#[track_caller]
fn check_columns(table: &Value) {
    let length = index(&table["length"]);
    for (name, column) in table.as_object().unwrap() {
        if let Some(column) = column.as_array() {
            assert_eq!(column.len(), length, "column {name} of {table}");
        }
    }
}

fn text<'a>(thread: &'a Value, number: &Value) -> &'a str {
    thread["stringArray"][index(number)].as_str().unwrap()
}

/// Names of a stack from the outermost function to the innermost.
fn names(thread: &Value, stack: &Value) -> Vec<String> {
    let mut names = Vec::new();
    let mut stack = stack;
    while !stack.is_null() {
        let at = index(stack);
        let frame = index(&thread["stackTable"]["frame"][at]);
        let function = index(&thread["frameTable"]["func"][frame]);
        names.push(text(thread, &thread["funcTable"]["name"][function]).to_owned());
        stack = &thread["stackTable"]["prefix"][at];
    }
    names.reverse();
    names
}

fn thread<'a>(profile: &'a Value, tid: &str) -> &'a Value {
    list(&profile["threads"]).iter().find(|thread| thread["tid"] == tid).unwrap_or_else(|| panic!("no thread {tid}"))
}

/// Name, start, end, phase and data of all markers of a thread.
fn markers(thread: &Value) -> Vec<(String, f64, f64, u64, Value)> {
    let table = &thread["markers"];
    let number = |column: &str, at: usize| table[column][at].as_f64().unwrap();
    (0..index(&table["length"]))
        .map(|at| {
            let name = text(thread, &table["name"][at]).to_owned();
            let phase = table["phase"][at].as_u64().unwrap();
            (name, number("startTime", at), number("endTime", at), phase, table["data"][at].clone())
        })
        .collect()
}

#[test]
fn every_index_points_into_its_table_and_prefixes_come_first() {
    let profile = profile(&profiled::recording());
    let (libs, categories) = (list(&profile["libs"]).len(), list(&profile["meta"]["categories"]).len());
    for thread in list(&profile["threads"]) {
        for table in ["samples", "stackTable", "frameTable", "funcTable", "resourceTable", "nativeSymbols", "markers"] {
            check_columns(&thread[table]);
        }
        let length = |table: &str| index(&thread[table]["length"]);
        let within = |column: &Value, limit: usize| {
            for entry in list(column) {
                assert!(entry.is_null() || entry == &json!(-1) || index(entry) < limit, "{entry} of {limit}");
            }
        };
        let strings = list(&thread["stringArray"]);
        assert_eq!(
            strings.iter().map(Value::to_string).collect::<BTreeSet<_>>().len(),
            strings.len(),
            "a text stands twice"
        );
        within(&thread["samples"]["stack"], length("stackTable"));
        within(&thread["stackTable"]["frame"], length("frameTable"));
        within(&thread["frameTable"]["func"], length("funcTable"));
        within(&thread["frameTable"]["category"], categories);
        within(&thread["frameTable"]["nativeSymbol"], length("nativeSymbols"));
        within(&thread["funcTable"]["name"], strings.len());
        within(&thread["funcTable"]["resource"], length("resourceTable"));
        within(&thread["resourceTable"]["lib"], libs);
        within(&thread["markers"]["name"], strings.len());
        within(&thread["markers"]["category"], categories);
        for (at, prefix) in list(&thread["stackTable"]["prefix"]).iter().enumerate() {
            assert!(prefix.is_null() || index(prefix) < at, "stack {at} stands before its caller {prefix}");
        }
        for marker in list(&thread["markers"]["data"]) {
            let declared =
                list(&profile["meta"]["markerSchema"]).iter().find(|schema| schema["name"] == marker["type"]);
            let fields = list(&declared.expect("a schema")["fields"]);
            for key in marker.as_object().unwrap().keys().filter(|key| !["type", "cause"].contains(&key.as_str())) {
                assert!(fields.iter().any(|field| field["key"] == key.as_str()), "field {key} is not declared");
            }
        }
    }
}

#[test]
fn the_profile_says_what_was_recorded_where_and_how_often() {
    let profile = profile(&profiled::recording());
    let meta = &profile["meta"];
    assert_eq!(meta["preprocessedProfileVersion"], 55);
    assert_eq!((&meta["product"], &meta["oscpu"]), (&json!("/usr/bin/app --fast"), &json!("Linux 6.18 x86_64")));
    assert_eq!((&meta["interval"], &meta["startTime"]), (&json!(1.0), &json!(1_700_000_000_000.0)));
    assert_eq!(meta["symbolicated"], true, "offsets are no addresses that a symbol server knows");
    assert_eq!(meta["sampleUnits"]["threadCPUDelta"], "µs");
    let lib = &profile["libs"][0];
    assert_eq!((&lib["name"], &lib["path"]), (&json!("app"), &json!("/usr/bin/app")));
    assert_eq!(lib["codeId"], "0123456789abcdef0123456789abcdef01234567");
    assert_eq!(lib["breakpadId"], "67452301AB89EFCD0123456789ABCDEF0");
    assert_eq!((&profile["libs"][1]["name"], &profile["libs"][1]["codeId"]), (&json!("bibliothèque.so"), &Value::Null));
}

#[test]
fn processes_and_threads_have_names_and_times() {
    let profile = profile(&profiled::recording());
    let told: Vec<Value> = list(&profile["threads"])
        .iter()
        .map(|t| {
            json!([
                t["pid"],
                t["tid"],
                t["processName"],
                t["name"],
                t["isMainThread"],
                t["registerTime"],
                t["unregisterTime"]
            ])
        })
        .collect();
    assert_eq!(
        told,
        [
            json!(["0", "0", "Recording", "Recording", true, 0.0, null]),
            json!(["70", "70", "app", "app", true, 0.0, null]),
            json!(["70", "72", "app", "Thread <72>", false, 1.0, 8.9]),
            json!(["71", "71", "app", "app", true, 2.0, 8.5]),
        ]
    );
    let child = thread(&profile, "71");
    assert_eq!((&child["processStartupTime"], &child["processShutdownTime"]), (&json!(2.0), &json!(8.5)));
}

#[test]
fn samples_have_their_stacks_and_the_cpu_time_between_them() {
    let profile = profile(&profiled::recording());
    let main = thread(&profile, "70");
    let stacks: Vec<Vec<String>> = list(&main["samples"]["stack"]).iter().map(|stack| names(main, stack)).collect();
    let usual = vec!["main", "work(int)", "inlined", "bibliothèque.so+0x2300"];
    assert_eq!(stacks, [usual.clone(), usual.clone(), [usual, vec!["do_syscall_64"]].concat()]);
    assert_eq!(main["samples"]["timeDeltas"], json!([1.0, 1.0, 1.0]));
    assert_eq!(main["samples"]["threadCPUDelta"], json!([0, 1000, 400]), "600 us of the last were a wait");
    let other = thread(&profile, "72");
    let stacks: Vec<Vec<String>> = list(&other["samples"]["stack"]).iter().map(|stack| names(other, stack)).collect();
    let generated = vec!["[truncated: no unwinding table]".to_owned(), "[generated 0x7e0000001234]".to_owned()];
    assert_eq!(stacks, [generated, vec!["[unknown]".to_owned()], vec![]]);

    let category = |thread: &Value, name: &str| {
        let functions = list(&thread["funcTable"]["name"]);
        let function = functions.iter().position(|number| text(thread, number) == name).unwrap();
        let frame = list(&thread["frameTable"]["func"]).iter().position(|func| index(func) == function).unwrap();
        let category = index(&thread["frameTable"]["category"][frame]);
        profile["meta"]["categories"][category]["name"].as_str().unwrap().to_owned()
    };
    let found = ["main", "do_syscall_64"].map(|name| category(main, name));
    assert_eq!(found, ["User", "Kernel"]);
    assert_eq!(category(other, "[generated 0x7e0000001234]"), "Generated code");
    assert_eq!(category(other, "[unknown]"), "Other");
}

#[test]
fn a_function_of_a_file_is_in_its_library() {
    let profile = profile(&profiled::recording());
    let main = thread(&profile, "70");
    let functions = &main["funcTable"];
    let library = |name: &str| {
        let at = list(&functions["name"]).iter().position(|number| text(main, number) == name).unwrap();
        let resource = &functions["resource"][at];
        (resource != &json!(-1)).then(|| index(&main["resourceTable"]["lib"][index(resource)]))
    };
    assert_eq!((library("main"), library("work(int)")), (Some(0), Some(0)));
    assert_eq!(library("bibliothèque.so+0x2300"), Some(1));
    assert_eq!((library("inlined"), library("do_syscall_64")), (None, None));
}

#[test]
fn waits_faults_and_memory_calls_are_markers_with_duration_and_stack() {
    let profile = profile(&profiled::recording());
    let main = thread(&profile, "70");
    let markers = markers(main);
    let find = |name: &str| markers.iter().find(|marker| marker.0 == name).unwrap_or_else(|| panic!("no {name}"));
    let (_, start, end, phase, data) = find("off CPU: futex");
    assert_eq!((*start, *end, *phase), (2.2, 2.8, 1));
    assert_eq!((&data["runnable"], &data["syscall"]), (&json!(0.05), &json!(202.0)));
    assert_eq!(text(main, &data["waker"]), "70/72");
    assert_eq!(names(main, &data["cause"]["stack"]).last().unwrap(), "bibliothèque.so+0x2300");
    let (_, start, end, _, data) = find("major fault");
    assert_eq!((*start, *end), (1.1, 1.5));
    assert_eq!(text(main, &data["address"]), "0x7f0000001000");
    let (_, _, _, _, data) = find("mmap");
    assert_eq!((&data["length"], &data["growth"]), (&json!(65536.0), &json!(65536.0)));
    assert_eq!(find("munmap").4["growth"], 0.0);
    let other = self::markers(thread(&profile, "72"));
    let unfinished = other.iter().find(|marker| marker.0 == "minor fault").unwrap();
    assert_eq!((unfinished.1, unfinished.3), (2.6, 0), "a fault of unknown length is a moment");
}

#[test]
fn the_launch_and_what_the_recording_lacks_are_seen() {
    let tables = profiled::recording();
    let notes = firefox::export(&tables).notes;
    let expected =
        ["2 events were lost: stacks.", "Not observed: instruction counts (no counters here)."].map(str::to_owned);
    assert_eq!(notes, expected);
    let profile = profile(&tables);
    let track = thread(&profile, "0");
    let told: Vec<(String, f64, f64, String)> = markers(track)
        .into_iter()
        .map(|(name, start, end, _, data)| (name, start, end, text(track, &data["text"]).to_owned()))
        .collect();
    // The profiler shows no more than what this spans.
    assert_eq!((told[0].0.as_str(), told[0].1, told[0].2), ("Recording", 0.0, 8.9));
    assert_eq!(told[1], ("Launch".to_owned(), 0.0, 8.0, "ready when: the window is shown; ready".to_owned()));
    assert_eq!(told[2..].iter().map(|note| &note.3).collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>());
}

#[test]
fn rows_that_are_hostile_or_missing_make_a_profile_too() {
    let empty = profile(&Tables::default());
    assert_eq!(list(&empty["threads"]).len(), 1, "there is always the recording itself");
    let tables = Tables::from_text(
        "== cpu_samples\nts pid start tid stack\n18446744073709551615 7 1 7 0\n0 7 1 7 4294967295\n5 7 2 7 0\n\
         == off_cpu\nts duration pid start tid reason\n18446744073709551615 18446744073709551615 7 1 7 timer\n\
         == stacks\nid parent frame\n0 - 0\n== frames\nid kind dev ino offset\n0 file 1 2 18446744073709551615\n\
         == files\ndev ino path build_id\n1 2 \"/a\\u0000b/\" nothex\n",
    )
    .unwrap();
    let profile = profile(&tables);
    let ids: Vec<_> = list(&profile["threads"]).iter().map(|thread| (&thread["pid"], &thread["tid"])).collect();
    assert!(ids.contains(&(&json!("7"), &json!("7"))) && ids.contains(&(&json!("7.1"), &json!("7.1"))), "{ids:?}");
    let first = thread(&profile, "7");
    assert_eq!(names(first, &first["samples"]["stack"][1]), ["[file 0:1/2]+0xffffffffffffffff"]);
}
