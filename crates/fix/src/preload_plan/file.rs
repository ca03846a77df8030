//! The plan as a file.
//!
//! JSON lines, so that it can be read by people and compared by line tools: a header, then one line a file, then one
//! line a range in the order of replay.
//!
//! ```text
//! {"schema":"slowpath-preload-plan/1","provenance":{...},"options":{...},"files":1,"ranges":2}
//! {"path":"/usr/bin/a","size":81920,"mtime_ns":1700000000000000000,"build_id":"0a1b"}
//! [0,3,4]
//! [0,12,1]
//! ```
//!
//! A range is `[file, first page, pages]`, pages of 4096 bytes. A plan may come from anybody, so everything in it has a
//! limit and is checked before it is used: paths are absolute and without `.` and `..`, ranges lie inside their file.

use crate::preload_plan::{PlanOptions, PlannedFile, PlannedRange, PreloadPlan, Provenance};
use serde::{Deserialize, Serialize};
use slowpath_tables::{PAGE_SIZE, Pages};
use std::fs::OpenOptions;
use std::io::{self, BufRead, BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Name and version of the format.
pub const SCHEMA: &str = "slowpath-preload-plan/1";
/// Longest line: a path of `PATH_MAX` bytes can take six times that when every byte is escaped.
const MAX_LINE: u64 = 32 * 1024;
/// Longest header: it holds a command line and paths of recordings.
const MAX_HEADER: u64 = 4 * 1024 * 1024;
/// Longest plan: the largest launch seen needs less than 1 MB. Bounds the memory of whoever reads a hostile plan.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Most files; the largest launch seen needs some hundred.
pub const MAX_FILES: u64 = 100_000;
/// Most ranges; at 24 bytes each this bounds the memory to 24 MB.
pub const MAX_RANGES: u64 = 1_000_000;
/// Longest path, `PATH_MAX` without its terminator.
const MAX_PATH: usize = 4095;
/// Threads beyond this gain nothing and would only burden the launch.
pub const MAX_THREADS: u32 = 64;

/// Why a file is no plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanFileError {
    /// The file cannot be read.
    #[error("the plan cannot be read")]
    Read(#[source] io::Error),
    /// The file is something else.
    #[error("this is not a preload plan: its first line has no schema \"slowpath-preload-plan/...\"")]
    NotAPlan,
    /// The plan was written by a later version.
    #[error("the plan has format {found:?}; this version reads {SCHEMA:?}")]
    Version {
        /// Schema in the file.
        found: String,
    },
    /// A line is not what it must be.
    #[error("line {line}: {problem}")]
    Line {
        /// Number of the line, from 1.
        line: u64,
        /// What is wrong with it.
        problem: String,
    },
}

#[derive(Serialize, Deserialize)]
struct Header {
    schema: String,
    provenance: Provenance,
    options: PlanOptions,
    files: u64,
    ranges: u64,
}

/// Writes a plan.
///
/// # Errors
/// Those of the writer.
pub fn write(plan: &PreloadPlan, mut to: impl Write) -> io::Result<()> {
    let header = Header {
        schema: SCHEMA.to_owned(),
        provenance: plan.provenance.clone(),
        options: plan.options.clone(),
        files: plan.files.len() as u64,
        ranges: plan.ranges.len() as u64,
    };
    serde_json::to_writer(&mut to, &header)?;
    to.write_all(b"\n")?;
    for file in &plan.files {
        serde_json::to_writer(&mut to, file)?;
        to.write_all(b"\n")?;
    }
    for range in &plan.ranges {
        writeln!(to, "[{},{},{}]", range.file, range.page.0, range.pages.0)?;
    }
    to.flush()
}

/// Writes a plan into a file of its own, which everybody may read and no link leads to.
///
/// # Errors
/// The file cannot be written.
pub fn create(plan: &PreloadPlan, to: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o644).custom_flags(libc::O_NOFOLLOW);
    write(plan, BufWriter::new(options.open(to)?))
}

struct Lines<R> {
    from: R,
    line: u64,
    buffer: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    fn next(&mut self, limit: u64) -> Result<&[u8], PlanFileError> {
        self.buffer.clear();
        self.line += 1;
        let read = self.from.by_ref().take(limit).read_until(b'\n', &mut self.buffer).map_err(PlanFileError::Read)?;
        if read == 0 {
            return Err(self.error("the plan ends here, though its header promises more (plans end at 64 MiB)"));
        }
        if self.buffer.last() != Some(&b'\n') && read as u64 == limit {
            return Err(self.error(format!("is longer than {limit} bytes")));
        }
        Ok(&self.buffer)
    }

    fn error(&self, problem: impl Into<String>) -> PlanFileError {
        PlanFileError::Line { line: self.line, problem: problem.into() }
    }

    fn parse<T: serde::de::DeserializeOwned>(&mut self, limit: u64) -> Result<T, PlanFileError> {
        let parsed = serde_json::from_slice(self.next(limit)?);
        parsed.map_err(|error| self.error(error.to_string()))
    }
}

/// Reads a plan; it is treated as hostile.
///
/// # Errors
/// The file cannot be read, is no plan, is of a later version, or has a line outside the format or its limits.
pub fn read(from: impl BufRead) -> Result<PreloadPlan, PlanFileError> {
    let mut lines = Lines { from: from.take(MAX_BYTES), line: 0, buffer: Vec::new() };
    let header = match lines.next(MAX_HEADER) {
        Ok(line) => serde_json::from_slice::<serde_json::Value>(line).map_err(|_| PlanFileError::NotAPlan)?,
        Err(PlanFileError::Line { .. }) => return Err(PlanFileError::NotAPlan),
        Err(error) => return Err(error),
    };
    match header.get("schema").and_then(serde_json::Value::as_str) {
        Some(SCHEMA) => {}
        Some(found) if found.starts_with("slowpath-preload-plan/") => {
            return Err(PlanFileError::Version { found: found.to_owned() });
        }
        _ => return Err(PlanFileError::NotAPlan),
    }
    let header: Header = serde_json::from_value(header).map_err(|error| lines.error(error.to_string()))?;
    if header.files > MAX_FILES || header.ranges > MAX_RANGES {
        return Err(lines.error(format!("more than {MAX_FILES} files or {MAX_RANGES} ranges")));
    }
    if !(1..=MAX_THREADS).contains(&header.options.threads) {
        return Err(lines.error(format!("threads must be 1 to {MAX_THREADS}")));
    }
    let mut plan =
        PreloadPlan { provenance: header.provenance, options: header.options, files: Vec::new(), ranges: Vec::new() };
    for _ in 0..header.files {
        let file: PlannedFile = lines.parse(MAX_LINE)?;
        check_path(&file.path).map_err(|problem| lines.error(problem))?;
        plan.files.push(file);
    }
    for _ in 0..header.ranges {
        let (file, page, pages): (u32, u64, u64) = lines.parse(MAX_LINE)?;
        let Some(planned) = plan.files.get(file as usize) else {
            return Err(lines.error(format!("there is no file {file}")));
        };
        let end = planned.size.div_ceil(PAGE_SIZE);
        if pages == 0 || page.checked_add(pages).is_none_or(|after| after > end) {
            return Err(lines.error(format!("pages {page}+{pages} do not lie in a file of {end} pages")));
        }
        plan.ranges.push(PlannedRange { file, page: Pages(page), pages: Pages(pages) });
    }
    Ok(plan)
}

fn check_path(path: &str) -> Result<(), String> {
    if path.len() > MAX_PATH {
        return Err(format!("the path is longer than {MAX_PATH} bytes"));
    }
    if path.contains('\0') {
        return Err("the path holds a NUL byte".to_owned());
    }
    let Some(relative) = path.strip_prefix('/') else {
        return Err("the path is not absolute".to_owned());
    };
    // `..` and `.` never occur in canonical paths; empty parts neither.
    if relative.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err("the path is not canonical".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preload_plan::Order;
    use proptest::prelude::*;

    fn plan(path: &str) -> PreloadPlan {
        PreloadPlan {
            provenance: Provenance { created: "2024-01-01T00:00:00Z".to_owned(), ..Provenance::default() },
            options: PlanOptions { order: Order::Shuffled(7), ..PlanOptions::default() },
            files: vec![PlannedFile {
                path: path.to_owned(),
                size: 81_920,
                mtime_ns: -5,
                build_id: Some("0a".to_owned()),
            }],
            ranges: vec![
                PlannedRange { file: 0, page: Pages(3), pages: Pages(4) },
                PlannedRange { file: 0, page: Pages(19), pages: Pages(1) },
            ],
        }
    }

    fn text(plan: &PreloadPlan) -> String {
        let mut bytes = Vec::new();
        write(plan, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    fn problem(text: &str) -> String {
        read(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_plan_survives_the_way_through_its_file() {
        let plan = plan("/usr/b\u{e4}\n\"\\");
        assert_eq!(read(text(&plan).as_bytes()).unwrap(), plan);
    }

    #[test]
    fn paths_that_are_not_canonical_are_refused() {
        for path in ["usr/a", "/usr/../etc/shadow", "/usr/./a", "//a", "/a/", "/", "", "/a\0b"] {
            let error = read(text(&plan(path)).as_bytes()).unwrap_err();
            assert!(matches!(error, PlanFileError::Line { line: 2, .. }), "{path:?}: {error}");
        }
        assert!(problem(&text(&plan(&format!("/{}", "a".repeat(4095))))).contains("longer than"));
    }

    #[test]
    fn ranges_outside_their_file_are_refused_without_overflow() {
        for range in ["[0,20,1]", "[0,19,2]", "[0,0,0]", "[1,0,1]", "[0,18446744073709551615,2]", "[0,-1,1]", "[0,1]"] {
            let broken = text(&plan("/a")).replace("[0,19,1]", range);
            assert!(problem(&broken).starts_with("line 4: "), "{range}: {}", problem(&broken));
        }
    }

    #[test]
    fn other_files_later_versions_and_cut_plans_have_errors_of_their_own() {
        assert!(matches!(read(&b""[..]), Err(PlanFileError::NotAPlan)));
        assert!(matches!(read(&b"\x7fELF\x00\xff"[..]), Err(PlanFileError::NotAPlan)));
        assert!(matches!(read(&b"{\"schema\":\"slowpath-report/1\"}\n"[..]), Err(PlanFileError::NotAPlan)));
        let newer = text(&plan("/a")).replace("plan/1", "plan/2");
        assert!(matches!(read(newer.as_bytes()), Err(PlanFileError::Version { .. })));
        let cut = text(&plan("/a")).replace("[0,19,1]\n", "");
        assert_eq!(problem(&cut), "line 4: the plan ends here, though its header promises more (plans end at 64 MiB)");
    }

    #[test]
    fn a_line_without_end_is_refused_before_it_is_held_in_memory() {
        let start = text(&plan("/a"));
        let header = start.lines().next().unwrap();
        let endless = io::BufReader::new(io::Read::chain(format!("{header}\n").leak().as_bytes(), io::repeat(b'[')));
        assert_eq!(read(endless).unwrap_err().to_string(), format!("line 2: is longer than {MAX_LINE} bytes"));
    }

    #[test]
    fn numbers_of_files_ranges_and_threads_have_limits() {
        let plan = text(&plan("/a"));
        assert!(problem(&plan.replace("\"ranges\":2", "\"ranges\":1000001")).contains("more than"));
        assert!(problem(&plan.replace("\"threads\":1", "\"threads\":0")).contains("threads must be"));
        assert!(problem(&plan.replace("\"threads\":1", "\"threads\":4000000000")).contains("threads must be"));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic_or_accept_what_is_outside_a_file(
            position in 0usize..400, bytes in prop::collection::vec(any::<u8>(), 0..20)
        ) {
            let mut hostile = text(&plan("/usr/a")).into_bytes();
            let position = position.min(hostile.len());
            let end = (position + bytes.len()).min(hostile.len());
            hostile.splice(position..end, bytes);
            if let Ok(plan) = read(hostile.as_slice()) {
                for range in &plan.ranges {
                    let file = &plan.files[range.file as usize];
                    prop_assert!(range.page.0 + range.pages.0 <= file.size.div_ceil(4096));
                    prop_assert!(file.path.starts_with('/') && !file.path.contains("/../"));
                }
            }
        }
    }
}
