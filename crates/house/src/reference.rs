//! The reference of the recording format, written from the declarations of the tables.

use slowpath_recording::SCHEMA_VERSION;
use slowpath_report::explain::folded;
use slowpath_tables::{
    Asker, CpuEventKind, FaultKind, FrameKind, LookMoment, MappingOp, MemoryCallKind, MemoryWorkKind, OffCpuReason,
    PageCacheOp, RefusedCall, SectionKind, TableDoc, all_tables,
};
use std::fmt::Write;

const BEGINNING: &str = "\
A recording is a directory. `manifest.json` says what was recorded, on which machine, with which losses, and lists the
segments that are whole; its schema is [manifest.json](../schemas/manifest.json). The rows of a table stand in
`<table>/<number>.parquet`, in as many segments as were written. A segment that the manifest does not list was not
finished: readers leave it alone. While a recording goes on, `ended` is null and segments are added every few seconds.

Any columnar tool reads the tables as they are:

```sql
-- DuckDB: major faults by process
SELECT pid, count(*), sum(duration) / 1e6 AS ms FROM 'DIR/faults/*.parquet' WHERE kind = 'major' GROUP BY pid;
```

```python
pandas.read_parquet(\"DIR/faults\")
polars.read_parquet(\"DIR/faults/*.parquet\")
```

- **Times** (`Nanos`, columns `ts`, `start`, `duration`, `latency`) are nanoseconds of `CLOCK_MONOTONIC`; the manifest's
  `clock` maps them to the time of day.
- **A process** is `pid` and `start`, because pids are used again; `tid` is the thread.
- **A file** is `dev` and `ino`; `dev` is `major << 20 | minor`. `files` has its path. In a lab, `dev` is the lab's own
  device and `files.path` the path on the host. Of several rows of one file the last counts: more was learnt since.
- **Pages** are counted in units of 4 KiB, whatever pages the kernel has: one of 64 KiB counts as 16. The manifest's
  `host.page_size` has the kernel's own. A page of a file is an index from its beginning.
- Readers ignore columns they do not know. A change of meaning or type, and a column less, raises the version.
";

/// Columns whose values are words, and the words.
fn words() -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
    vec![
        ("faults", "kind", FaultKind::ALL.iter().map(|word| word.as_str()).collect()),
        ("mappings", "op", MappingOp::ALL.iter().map(|word| word.as_str()).collect()),
        ("page_cache", "op", PageCacheOp::ALL.iter().map(|word| word.as_str()).collect()),
        ("page_cache", "asker", Asker::ALL.iter().map(|word| word.as_str()).collect()),
        ("opens", "call", RefusedCall::ALL.iter().map(|word| word.as_str()).collect()),
        ("frames", "kind", FrameKind::ALL.iter().map(|word| word.as_str()).collect()),
        ("off_cpu", "reason", OffCpuReason::ALL.iter().map(|word| word.as_str()).collect()),
        ("cpu_events", "kind", CpuEventKind::ALL.iter().map(|word| word.as_str()).collect()),
        ("memory_calls", "call", MemoryCallKind::ALL.iter().map(|word| word.as_str()).collect()),
        ("memory_work", "work", MemoryWorkKind::ALL.iter().map(|word| word.as_str()).collect()),
        ("page_contents", "moment", LookMoment::ALL.iter().map(|word| word.as_str()).collect()),
        ("sections", "kind", SectionKind::ALL.iter().map(|word| word.as_str()).collect()),
    ]
}

/// A cell of a Markdown table: a bar or a line end would break the row.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn section(table: &TableDoc) -> String {
    let mut text = format!(
        "## {}\n\n{}\n| Column | Type | Null | Meaning |\n|---|---|---|---|\n",
        table.name,
        folded(&table.doc, "")
    );
    for column in &table.columns {
        let null = if column.nullable { "yes" } else { "" };
        let mut meaning = cell(&column.doc);
        if let Some((_, _, words)) = words().into_iter().find(|(t, c, _)| *t == table.name && *c == column.name) {
            let list = words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
            meaning = format!("{meaning} One of {list}.");
        }
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| `{}` | {} | {null} | {meaning} |", column.name, column.data_type);
    }
    text
}

/// The text of `docs/reference/recording-format.md`.
pub fn recording_format() -> String {
    let mut text = format!(
        "<!-- Generated from crates/tables/src/rows.rs and profile.rs by `make schemas`; a test compares. -->\n\n\
         # The recording format, version {SCHEMA_VERSION}\n\n{BEGINNING}"
    );
    for table in all_tables() {
        text.push('\n');
        text.push_str(&section(&table));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_of_words_belongs_to_a_text_column_that_exists() {
        let tables = all_tables();
        for (table, column, words) in words() {
            let found = tables
                .iter()
                .find(|one| one.name == table)
                .and_then(|one| one.columns.iter().find(|one| one.name == column));
            assert!(found.is_some_and(|column| column.data_type == "Utf8"), "{table}.{column}");
            assert!(!words.is_empty());
        }
    }

    #[test]
    fn every_row_of_the_reference_has_four_cells() {
        for line in recording_format().lines().filter(|line| line.starts_with('|')) {
            let bars = line.replace("\\|", "").matches('|').count();
            assert_eq!(bars, 5, "{line}");
        }
    }
}
