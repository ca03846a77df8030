//! The test program of this crate: the launcher under its hidden argument, and a caller that launches once
//! (`launch-probe run`, the specification on standard input) and prints the outcome or the error.

use slowpath_launch::{LAUNCHER_ARGUMENT, Launcher, LauncherProgram, NoHooks, ProcessLauncher};

fn main() {
    let args: Vec<String> = std::env::args().collect();
    match args.get(1).map(String::as_str) {
        Some(LAUNCHER_ARGUMENT) => slowpath_launch::launcher_main(),
        Some("run") => {
            let spec = serde_json::from_reader(std::io::stdin()).expect("standard input is a specification");
            match ProcessLauncher::new(LauncherProgram::this_program()).launch(&spec, &mut NoHooks) {
                Ok(outcome) => println!("{}", serde_json::to_string(&outcome).expect("an outcome is serialisable")),
                Err(error) => {
                    println!("{error}");
                    std::process::exit(1);
                }
            }
        }
        _ => {
            eprintln!("usage: launch-probe run < SPEC.json");
            std::process::exit(2);
        }
    }
}
