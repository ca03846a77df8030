//! The launcher of this crate's tests: never installed.

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some(slowpath_launch::LAUNCHER_ARGUMENT) => slowpath_launch::launcher_main(),
        _ => {
            eprintln!("this program is of use to tests only");
            std::process::exit(2);
        }
    }
}
