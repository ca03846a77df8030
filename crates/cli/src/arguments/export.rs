//! The arguments of `slowpath export`. Formats and weights are those that `report` declares.

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use slowpath_report::collapsed::Weight;
use slowpath_report::recording_exports::{self, RecordingExport};
use std::path::PathBuf;

/// `slowpath export`.
#[derive(Debug, Args)]
pub struct ExportArguments {
    /// A recording; for markdown also the directory of a diagnosis.
    pub recording: PathBuf,
    /// The format.
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    pub to: &'static RecordingExport,
    /// For collapsed: the weight of each stack (default: the first of these that was recorded).
    #[arg(long, alias = "what", value_parser = weights())]
    pub weight: Option<Weight>,
    /// For csv: this table alone. Its call stacks are written as function names.
    #[arg(long, value_name = "NAME")]
    pub table: Option<String>,
    /// Where to write it (default: standard output); for csv without --table a directory that is new or empty.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// No progress.
    #[arg(long)]
    pub quiet: bool,
}

fn formats() -> impl TypedValueParser<Value = &'static RecordingExport> {
    let words = recording_exports::ALL.map(|export| PossibleValue::new(export.name).help(export.title));
    PossibleValuesParser::new(words)
        .try_map(|word| recording_exports::named(&word).ok_or_else(|| format!("there is no format {word}")))
}

fn weights() -> impl TypedValueParser<Value = Weight> {
    let words = Weight::ALL.map(|weight| PossibleValue::new(weight.name()).help(weight.title()));
    PossibleValuesParser::new(words).try_map(|word| {
        let named = Weight::ALL.into_iter().find(|weight| weight.name() == word);
        named.ok_or_else(|| format!("there is no weight {word}"))
    })
}
