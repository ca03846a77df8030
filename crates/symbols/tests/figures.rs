//! Figures of real files: `cargo test --release -p slowpath-symbols --test figures -- --ignored --nocapture`.

use slowpath_symbols::unwind_table::{CfaRule, UnwindTable};
use std::time::Instant;

/// Paths in `UNWIND_FILES`, separated by colons.
#[test]
#[ignore = "measures; asserts nothing"]
fn rows_bytes_and_time_of_the_files_named() {
    let files = std::env::var("UNWIND_FILES").unwrap_or_else(|_| "/lib/x86_64-linux-gnu/libc.so.6".into());
    for path in files.split(':') {
        let Ok(bytes) = std::fs::read(path) else {
            println!("{path}: unreadable");
            continue;
        };
        let times: Vec<u128> = (0..5)
            .map(|_| {
                let start = Instant::now();
                std::hint::black_box(UnwindTable::of_elf(&bytes).ok());
                start.elapsed().as_micros()
            })
            .collect();
        match UnwindTable::of_elf(&bytes) {
            Err(error) => println!("{path}: {error}"),
            Ok(table) => {
                let count = |rule| table.rows.iter().filter(|row| row.cfa_rule() == rule).count();
                println!(
                    "{path}: file {} rows {} pages {} bytes {} unknown {} unsupported {} realigned {} signal {} us {:?}",
                    bytes.len(),
                    table.rows.len(),
                    table.pages.len() - 1,
                    table.size(),
                    count(CfaRule::Unknown),
                    count(CfaRule::Unsupported),
                    count(CfaRule::AtFramePointer),
                    count(CfaRule::SignalFrame),
                    times.iter().min()
                );
            }
        }
    }
}
