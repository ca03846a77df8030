//! `diagnose` without a mode on real programs: it names the right cause.

use crate::recorded_case::built;
use crate::running::*;
use crate::traces::assert_nothing_left;
use serde_json::Value;
use std::time::Duration;

fn diagnosed(options: &[&str], program: &[&str]) -> (Value, tempfile::TempDir) {
    let place = place();
    let mut command = slowpath(["diagnose", "--json", "-o"]);
    // A limit of time is one for its launches: recordings that a debug build reads come on top, on a busy machine for long.
    let started = start(command.arg(place.path().join("out")).args(options).arg("--").args(program));
    let done = started.wait_within(Duration::from_secs(300));
    done.succeeds();
    assert_nothing_left(&done);
    (done.json(), place)
}

fn names(diagnosis: &Value) -> Vec<&str> {
    diagnosis["findings"].as_array().unwrap().iter().map(|finding| finding["name"].as_str().unwrap()).collect()
}

fn decided<'a>(diagnosis: &'a Value, arm: &str) -> &'a Value {
    let all = diagnosis["verdicts"].as_array().unwrap();
    all.iter().find(|verdict| verdict["arm"] == arm).unwrap_or_else(|| panic!("no {arm} in {all:#?}"))
}

#[test]
fn the_sham_that_reads_something_else_reads_as_much_as_the_plan() {
    if !root() {
        return;
    }
    let files = place();
    let data = files.path().join("data");
    std::fs::write(&data, vec![7u8; 8 << 20]).unwrap();
    // It is not ready before the sham has read.
    let script = format!("cat {} > /dev/null; sleep 0.2", data.display());
    let (diagnosis, _place) = diagnosed(&["--cold", "--blocks", "3"], &["/bin/sh", "-c", &script]);
    let read = |name: &str| {
        let arm = diagnosis["launch"]["arms"].as_array().unwrap().iter().find(|arm| arm["name"] == name).unwrap();
        arm["bytes_read"]["value"].as_f64().unwrap()
    };
    let (cold, sham) = (read("cold"), read("sham_unrelated"));
    assert!(sham - cold > f64::from(8 << 20) * 0.9, "{sham} beside {cold}: {diagnosis:#}");
    assert!(!diagnosis["notes"].to_string().contains("unrelated data"), "{diagnosis:#}");
}

#[test]
fn a_program_that_loses_cpu_to_memory_is_recognized_without_a_mode() {
    if !root() {
        return;
    }
    // Enough of it that it costs more than a cold start, on whatever disk.
    let case = built("frame-buffer");
    let program = case.path().join("frame-buffer");
    let set = "GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072";
    // Well within the time after which a test gives a command up.
    let options = ["--blocks", "9", "--max-time", "100s", "--env", set];
    let (diagnosis, place) = diagnosed(&options, &[program.to_str().unwrap(), "as-set", "100", "2000"]);
    assert_eq!(
        (&names(&diagnosis)[0], &diagnosis["warm"]),
        (&"transient_large_allocation", &true.into()),
        "{diagnosis:#}"
    );
    assert_eq!(diagnosis["other"]["warm"], false, "{diagnosis:#}");
    assert_eq!(decided(&diagnosis, "allocator_tunables")["judged_by"], "cpu");
    // Its launches from storage were looked at too, and compared or not, or less often than asked for, which is said.
    let plan = decided(&diagnosis, "preload_plan");
    let is_said =
        || diagnosis["notes"].as_array().unwrap().iter().any(|note| note.as_str().unwrap().contains("of 9 blocks"));
    let is_compared = plan["pairs"] == 9 || plan["decision"] == "not_tried" || is_said();
    assert!(plan["judged_by"] == "wall" && is_compared, "{diagnosis:#}");
    let page = std::fs::read_to_string(place.path().join("out/report.html")).unwrap();
    assert!(page.contains("cold launches too were diagnosed"));
}

#[test]
fn a_cold_start_is_recognized_without_a_mode_and_a_limit_too_short_for_a_trial_is_kept() {
    if !root() {
        return;
    }
    let (diagnosis, place) = diagnosed(&["--blocks", "8"], &["/usr/bin/python3", "-c", "import ssl"]);
    assert_eq!((&names(&diagnosis)[0], &diagnosis["warm"]), (&"cold_file_reads", &false.into()), "{diagnosis:#}");
    assert_eq!((&decided(&diagnosis, "preload_plan")["pairs"], &diagnosis["other"]["warm"]), (&8.into(), &true.into()));
    // Where the time goes, of both: every moment in one part, and reads in the cold launch only.
    let times = diagnosis["time"].as_array().unwrap();
    assert_eq!(times.iter().map(|time| &time["condition"]).collect::<Vec<_>>(), ["cold", "warm"]);
    for time in times {
        let sum = |column: &str| -> f64 {
            time["rows"].as_array().unwrap().iter().filter_map(|row| row[column]["value"].as_f64()).sum()
        };
        let whole = |name: &str| time[name]["value"].as_f64().unwrap();
        let to_ready = sum("to_ready") + whole("unexplained");
        assert!((to_ready - whole("time_to_ready")).abs() < 1e-6 * to_ready, "{time:#}");
        assert!((sum("cpu") - whole("cpu")).abs() < 1e-6 * whole("cpu") && whole("cpu") > 1.0, "{time:#}");
        assert!(whole("unexplained").abs() < 0.2 * to_ready, "{time:#}");
    }
    let reads = |time: &Value| time["rows"][0]["to_ready"]["value"].as_f64().unwrap();
    assert_eq!(times[0]["rows"][0]["part"], "storage");
    assert!(reads(&times[0]) > 1.0 && reads(&times[0]) > reads(&times[1]), "{times:#?}");
    for file in ["cold", "warm", "needed-1", "prediction.json", "prediction-warm.json"] {
        assert!(place.path().join("out").join(file).exists(), "{file}");
    }

    let (diagnosis, _place) = diagnosed(&["--max-time", "3s"], &["/usr/bin/python3", "-c", "import ssl"]);
    let gap = |what: &str| diagnosis["unavailable"].as_array().unwrap().iter().any(|gap| gap["what"] == what);
    let is_untried = || decided(&diagnosis, "preload_plan")["reason"].as_str().unwrap().contains("--max-time");
    assert!(gap("cold launches") || is_untried(), "{diagnosis:#}");

    // Alone it is looked at however long that takes, and not tried.
    let (diagnosis, _place) = diagnosed(&["--cold", "--max-time", "1s"], &["/usr/bin/python3", "-c", "import ssl"]);
    assert!(decided(&diagnosis, "preload_plan")["reason"].as_str().unwrap().contains("--max-time"), "{diagnosis:#}");
    assert!(!names(&diagnosis).is_empty(), "{diagnosis:#}");
}

#[test]
fn every_diagnosis_of_launches_has_five_minutes_unless_it_is_given_other_time() {
    let help = run(slowpath(["diagnose", "--help"])).stdout;
    let (_, option) = help.split_once("--max-time <T>").unwrap();
    assert!(option.split("--arms <").next().unwrap().contains("[default: 5m]"), "{help}");
}

#[test]
fn a_target_that_fails_ends_the_diagnosis_before_anything_is_recorded() {
    if !root() {
        return;
    }
    let place = place();
    let out = place.path().join("out");
    run(slowpath(["diagnose", "-o"]).arg(&out).args(["--", "/bin/false"])).fails_with(4, &[]);
    assert!(!out.join("cold").exists() && !out.join("warm").exists());
}
