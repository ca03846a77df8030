//! A launch benchmark in the forms of other programs: [`csv`], [`markdown`] for pull requests, [`hyperfine`]'s JSON.
//!
//! Command lines and names are foreign text: each form escapes them in its own way.

pub mod csv;
pub mod hyperfine;
pub mod markdown;

use crate::Benchmark;

/// A form of a launch benchmark.
#[derive(Debug)]
pub struct BenchmarkExport {
    /// The word for `--export`.
    pub name: &'static str,
    /// One line: what it is.
    pub title: &'static str,
    /// The form of a benchmark.
    pub text: fn(&Benchmark) -> String,
}

/// All, in the order in which they are listed.
pub static ALL: [BenchmarkExport; 3] = [
    BenchmarkExport { name: "csv", title: "One row per launch", text: csv::table },
    BenchmarkExport { name: "markdown", title: "A table for a pull request", text: markdown::table },
    BenchmarkExport {
        name: "hyperfine",
        title: "The JSON of `hyperfine --export-json`",
        text: |benchmark| format!("{:#}\n", hyperfine::json(benchmark)),
    },
];

#[cfg(test)]
pub(crate) mod sample;
