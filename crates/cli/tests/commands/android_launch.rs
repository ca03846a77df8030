//! `slowpath android launch` over Debian's adb client with a server that plays a device: cold, warm and hot launches, two packages in
//! turn, traces of Perfetto copied and read, and each way in which that fails.

use crate::android::{CHROME, Phone, WEBVIEW};
use crate::running::*;
use serde_json::Value;
use std::path::Path;

/// Launches without pauses.
fn launch(phone: &Phone, place: &Path, rest: &[&str]) -> Done {
    let directory = place.join("launches");
    let mut words = vec!["android", "launch", "--settle", "0.01", "--after", "0.01", "-o", directory.to_str().unwrap()];
    words.extend(rest);
    phone.run(&words)
}

fn kept(place: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(place.join("launches/launches.json")).unwrap()).unwrap()
}

fn measure<'a>(measures: &'a Value, name: &str) -> &'a Value {
    measures
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == name)
        .unwrap_or_else(|| panic!("{name} in {measures:#}"))
}

#[test]
fn two_packages_take_turns_and_the_one_without_compiled_code_pays_in_its_renderers() {
    let (place, phone) = (place(), Phone::new("broken", ""));
    let done = launch(&phone, place.path(), &["--json", "--runs", "6", CHROME, WEBVIEW]);
    done.succeeds();
    let found = done.json();
    assert_eq!(found, kept(place.path()));
    assert_eq!((found["model"].as_str(), found["api_level"].as_u64()), (Some("Scripted"), Some(33)));
    let launches = found["launches"].as_array().unwrap();
    assert_eq!(launches.len(), 12);
    for pair in launches.chunks(2) {
        assert_eq!(pair[0]["block"], pair[1]["block"]);
        assert_ne!(pair[0]["package"], pair[1]["package"]);
    }
    let [chrome, webview] = [0, 1].map(|at| &found["packages"][at]);
    assert_eq!(
        (chrome["launches"].as_u64(), chrome["activity"].as_str()),
        (Some(6), Some("com.android.chrome/org.chromium.Main"))
    );
    let verified = |package: &Value| {
        let renderers =
            package["children"].as_array().unwrap().iter().find(|one| one["kind"] == "sandboxed_process").unwrap();
        assert_eq!((renderers["starts"].as_u64(), renderers["isolated"].as_u64()), (Some(6), Some(6)));
        measure(&renderers["measures"], "verify_class_ms")["p50"]["value"].as_f64().unwrap()
    };
    assert_eq!((verified(chrome), verified(webview)), (200.0, 0.0));
    let total = measure(&chrome["measures"], "am_start_total_ms");
    assert!(total["p50"]["low"].is_number() && total["p95"]["low"].is_null(), "{total:#}");
    let drawn = measure(&chrome["measures"], "fully_drawn_ms")["p50"]["value"].as_f64().unwrap();
    assert!(drawn > measure(&chrome["measures"], "first_frame_ms")["p50"]["value"].as_f64().unwrap());
    let differences = found["differences"].as_array().unwrap();
    let total = differences.iter().find(|one| one["measure"] == "am_start_total_ms").unwrap();
    assert!(total["difference_ms"]["high"].as_f64().unwrap() < 0.0, "{total:#}");
    // The trace is kept, and read again it says the same.
    let trace = place.path().join("launches").join(launches[0]["trace"].as_str().unwrap());
    let again = run(slowpath(["android", "launch", "--json", "--trace", trace.to_str().unwrap()]));
    again.succeeds();
    assert_eq!(again.json()["startups"][0], launches[0]["startup"]);
    let screen = run(slowpath(["android", "launch", "--trace", trace.to_str().unwrap()]));
    screen.succeeds();
    assert!(
        screen.stdout.contains("sandboxed_process") && screen.stdout.contains("first frame after"),
        "{}",
        screen.stdout
    );
}

#[test]
fn an_audit_with_traces_has_a_measured_price_and_without_them_an_estimate() {
    let (place, phone) = (place(), Phone::new("broken", ""));
    launch(&phone, place.path(), &["--runs", "2", CHROME]).succeeds();
    let evidence = place.path().join("evidence").to_str().unwrap().to_owned();
    phone.run(&["android", "collect", CHROME, "-o", &evidence]).succeeds();
    let audit = |rest: &[&str]| {
        let mut words = vec!["android", "audit", "--json", evidence.as_str()];
        words.extend(rest);
        let done = run(slowpath(&words));
        done.succeeds();
        done.json()["packages"][0].clone()
    };
    let plain = audit(&[]);
    assert!(plain["measured"].is_null() && plain["verdicts"][0].as_str().unwrap().contains("estimate"), "{plain:#}");
    let traces: Vec<String> = [0, 1]
        .map(|at| place.path().join(format!("launches/launch-{at}.perfetto-trace")).to_str().unwrap().to_owned())
        .to_vec();
    let priced = audit(&["--trace", &traces[0], "--trace", &traces[1]]);
    let measured = &priced["measured"];
    assert_eq!((measured["traces"].as_u64(), measured["starts"].as_u64()), (Some(2), Some(2)));
    assert_eq!(measured["verify_class_ms"]["value"], 200.0);
    let last = priced["verdicts"].as_array().unwrap().last().unwrap().as_str().unwrap().to_owned();
    assert!(last.contains("each verifies classes for 200.0 ms"), "{last}");
}

#[test]
fn warm_and_hot_launches_are_of_their_kind_and_addresses_are_opened_in_turn() {
    let phone = Phone::new("healthy", "");
    for kind in ["warm", "hot"] {
        let place = place();
        let list = place.path().join("pages.txt");
        std::fs::write(&list, "# pages\nhttps://example.com/a?x=1&y=$(z)\n\nhttps://example.com/b\n").unwrap();
        let words =
            ["--json", "--runs", "3", "--start", kind, "--url-list", list.to_str().unwrap(), "--no-trace", CHROME];
        let done = launch(&phone, place.path(), &words);
        done.succeeds();
        let found = done.json();
        let said: Vec<_> = found["launches"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["reported"]["launch_state"].as_str().unwrap())
            .collect();
        assert_eq!(said, vec![kind.to_uppercase(); 3]);
        assert_eq!(found["launches"][2]["url"], "https://example.com/a?x=1&y=$(z)");
        assert_eq!(
            (found["packages"][0]["launches"].as_u64(), found["packages"][0]["activity"].is_null()),
            (Some(3), true)
        );
    }
}

#[test]
fn a_repair_is_proved_by_launches_before_and_after_it() {
    let (before, after, phone) = (place(), place(), Phone::new("broken", ""));
    launch(&phone, before.path(), &["--runs", "2", CHROME]).succeeds();
    let done = launch(&phone, after.path(), &["--runs", "2", "--compilation", "speed", CHROME]);
    done.succeeds();
    assert!(done.stdout.contains("compiled speed"), "{}", done.stdout);
    let verified = |place: &Path| {
        let found = kept(place);
        let children = found["packages"][0]["children"].clone();
        let renderers =
            children.as_array().unwrap().iter().find(|one| one["kind"] == "sandboxed_process").unwrap().clone();
        measure(&renderers["measures"], "verify_class_ms")["p50"]["value"].as_f64().unwrap()
    };
    assert_eq!((verified(before.path()), verified(after.path())), (200.0, 0.0));
}

#[test]
fn what_a_device_cannot_is_said_and_what_came_before_is_kept() {
    for (failure, code, words) in [
        ("no-perfetto", 0, "no trace: perfetto: Failed to connect to the traced service"),
        ("no-pull", 0, ""),
        ("cut-trace", 0, "the trace was not read to its end"),
        ("no-activity", 3, "not launched: Error type 3"),
        ("gone-late", 3, "there is no device"),
        ("offline", 3, "is offline"),
    ] {
        let (place, phone) = (place(), Phone::new("healthy", failure));
        let done = launch(&phone, place.path(), &["--runs", "4", CHROME]);
        assert_eq!(done.code(), code, "{failure}: {}{}", done.stdout, done.stderr);
        assert!(
            done.stdout.contains(words) || done.stderr.contains(words),
            "{failure}: {}{}",
            done.stdout,
            done.stderr
        );
        if failure == "gone-late" {
            let found = kept(place.path());
            assert!(
                found["packages"][0]["launches"].as_u64().is_some_and(|launches| (1..4).contains(&launches)),
                "{found:#}"
            );
            assert!(found["ended"].is_string() && done.stderr.contains("what was found is kept"), "{}", done.stderr);
        }
        if failure == "no-pull" {
            // Copied by the shell then, as before Android 12.
            assert!(kept(place.path())["launches"][0]["startup"].is_object());
        }
    }
}

#[test]
fn what_is_no_launch_is_refused_before_anything_runs() {
    let place = place();
    let other = place.path().join("trace");
    std::fs::write(&other, "no trace").unwrap();
    for (words, said) in [
        (vec!["android", "launch"], "required"),
        (vec!["android", "launch", "com.example"], "--output"),
        (vec!["android", "launch", "-o", "/tmp/none", "com.example;reboot"], "no name of a package"),
        (vec!["android", "launch", "-o", "/tmp/none", "--compilation", "speed;x", "com.example"], "no compile filter"),
        (vec!["android", "launch", "-o", "/tmp/none", "com.example", "com.example"], "different packages"),
        (vec!["android", "launch", "--trace", other.to_str().unwrap()], "expected a packet of a Perfetto trace"),
        (vec!["android", "launch", "--trace", "/no/such/trace"], "No such file"),
    ] {
        let done = run(slowpath(&words));
        assert_eq!(done.code(), 2, "{words:?}: {}", done.stderr);
        assert!(done.stderr.contains(said), "{words:?}: {}", done.stderr);
    }
}
