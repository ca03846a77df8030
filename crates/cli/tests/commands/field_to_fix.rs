//! The example `examples/field-to-fix`: from generated field data whose slow slice is made of real launches to the slice, to the
//! artifact that a diagnosis by the slice's recipe names, to the experiment that proves the fix.

use crate::running::*;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

fn document(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn field_data_lead_to_the_artifact_and_an_experiment_proves_its_fix() {
    let environment = PathBuf::from(REPOSITORY).join("target/fleet-venv/bin");
    if !root() {
        return;
    }
    if !environment.join("slowpath-fleet").exists() {
        println!("skipped: the package of fleet/ is not installed: scripts/fleet-python.sh");
        return;
    }
    let place = place();
    let work = place.path().join("work");
    let path = [Path::new(SLOWPATH).parent().unwrap(), &environment, Path::new("/usr/bin"), Path::new("/bin")];
    let done = Command::new(PathBuf::from(REPOSITORY).join("examples/field-to-fix/run"))
        .arg(&work)
        .env("PATH", std::env::join_paths(path).unwrap())
        // CPU time, because other tests run at the same time.
        .env("MEASURE", "cpu")
        .env("BLOCKS", "6")
        // The experiment proves the fix: trials of it are tested elsewhere.
        .env("DIAGNOSIS", "--max-time 1s")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = [&done.stdout, &done.stderr].map(|text| String::from_utf8_lossy(text).into_owned()).concat();
    assert!(done.status.success(), "{said}");

    let slice = &document(&work.join("slices.json"))["slices"][0];
    assert_eq!(slice["where"], serde_json::json!({"device": "M2", "os": "9", "start": "isolated"}), "{slice:#}");
    assert_eq!(slice["confirmed"], true, "{slice:#}");
    let program = format!("/usr/bin/python3 {}", work.join("app/start.py").display());
    assert_eq!(
        slice["recipe"],
        format!(
            "slowpath artifacts age --state field.json --user root -- slowpath diagnose --warm --user nobody -- {program}"
        )
    );
    // Here, where it was run, everybody could read the artifact: only the state of the field hides it.
    let diagnosis = fs::read_to_string(work.join("diagnosis.txt")).unwrap();
    // One of four modules that cost the same.
    assert!((0..4).any(|module| diagnosis.contains(&format!("cannot read m{module}."))), "{diagnosis}");

    let experiment = document(&work.join("experiment.json"));
    assert_eq!(experiment["sample_ratio"]["ok"], true);
    let metrics = experiment["metrics"].as_array().unwrap();
    let effect = |name: &str| metrics.iter().find(|one| one["statistic"] == name).unwrap();
    for name in ["mean", "p95"] {
        assert_eq!(effect(name)["better"], true, "{:#}", effect(name));
        assert!(effect(name)["relative"]["high"].as_f64().unwrap() < 0.0);
    }
    assert_eq!(effect("count_per_user")["better"], Value::Null);
}
