//! What users read of results: on the terminal, as JSON with its schemas, as Markdown, in pages, and in the formats of other tools.

mod both_launches;
mod explain;
mod firefox;
mod markdown;
mod page;
mod perfetto_python;
mod profiled;
mod recording_comparison;
mod samples;
mod schemas;
mod terminal;
