//! Crates that must not touch the machine: what they say depends on their arguments alone.

/// Crates of which no line outside tests may name one of [`IMPURE`].
pub const PURE_CRATES: [&str; 2] = ["analysis", "experiment"];

/// Ways from Rust to the machine: its files, processes, clocks, network, environment and unseeded randomness.
pub const IMPURE: [&str; 13] = [
    "std::fs",
    "std::process",
    "std::net",
    "std::os",
    "std::env",
    "std::time::Instant",
    "SystemTime",
    "Instant::now",
    "rng()",
    "ThreadRng",
    "SysRng",
    "libc::",
    "unsafe",
];

/// Lines of a source text that reach for the machine: number (from 1) and what was found. Test modules, which stand at
/// the end of a file, and comments do not count.
pub fn impure_lines(source: &str) -> Vec<(usize, &'static str)> {
    source
        .lines()
        .enumerate()
        .take_while(|(_, line)| !line.trim_start().starts_with("#[cfg(test)]"))
        .filter(|(_, line)| !line.trim_start().starts_with("//"))
        .filter_map(|(at, line)| IMPURE.iter().find(|word| line.contains(*word)).map(|word| (at + 1, *word)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_and_unseeded_randomness_are_found_and_comments_and_tests_are_not() {
        let source = "//! no std::fs here\nlet now = Instant::now();\n#[cfg(test)]\nmod tests { use std::fs; }\n";
        assert_eq!(impure_lines(source), [(2, "Instant::now")]);
        let random = "use rand::rngs::ChaCha8Rng;\nlet mut rng = rand::rng();\n";
        assert_eq!(impure_lines(random), [(2, "rng()")]);
    }
}
