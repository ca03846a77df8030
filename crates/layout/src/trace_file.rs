//! The file that a trace is kept in: one JSON object.
//!
//! Owns its form and reading it from bytes that anybody may have written. Leaves opening and writing the file to the command.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_tables::{PAGE_SIZE, page_of_kernel};

/// Name and version of a trace.
pub const TRACE_SCHEMA: &str = "slowpath-layout-trace/1";

/// The largest trace that is read, in bytes: one of Chromium with all its libraries has some 20 MB.
pub const MOST_BYTES: u64 = 256 << 20;

/// First uses that a trace holds at most; what is beyond is counted in [`Trace::lost`].
pub const MOST_USES: usize = 1 << 20;

/// The file that `slowpath layout trace` writes: which functions a command used, in order of first use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trace {
    /// `slowpath-layout-trace/1`.
    #[schemars(extend("const" = TRACE_SCHEMA))]
    pub schema: String,
    /// When it was made, UTC, RFC 3339.
    pub created: String,
    /// The command.
    pub command: Vec<String>,
    /// Machine of the code: `x86_64`.
    pub machine: String,
    /// Bytes of a page of the kernel that the command ran on; 4096 in traces that do not say.
    #[serde(default = "unsaid_page")]
    pub page_size: u64,
    /// Whether shared objects were traced, not executables alone.
    pub all_objects: bool,
    /// Why it ended.
    pub ended: Ended,
    /// Files whose functions were watched.
    pub objects: Vec<TracedObject>,
    /// Programs that were executed, in order.
    pub programs: Vec<TracedProgram>,
    /// First uses, in order. A process that was forked has those that its parent had not before.
    pub first_uses: Vec<FirstUse>,
    /// Mapped files whose functions could not be watched, and why.
    pub left_out: Vec<LeftOut>,
    /// First uses that were not kept because there were more than 1,048,576.
    pub lost: u64,
}

fn unsaid_page() -> u64 {
    PAGE_SIZE
}

/// Why a trace ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// The command ended. What it left running was restored and let go.
    CommandEnded,
    /// It was asked to end (ctrl-C, `--duration`): all processes were restored and let go.
    Stopped,
}

/// A file whose functions were watched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TracedObject {
    /// Its path when it was mapped.
    pub path: String,
    /// Device of the file.
    pub device: u64,
    /// Inode of the file.
    pub inode: u64,
    /// Build-id, hexadecimal digits.
    pub build_id: Option<String>,
    /// Bytes of the file.
    pub bytes: u64,
    /// Functions that were watched.
    pub functions: u64,
    /// Bytes of all functions that are known.
    pub function_bytes: u64,
    /// Bytes of its code. Where functions are known of a part only (a stripped file with few frame descriptions), the rest is not seen.
    pub code_bytes: u64,
    /// Whether a process executed it.
    pub executed: bool,
}

/// A program that was executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TracedProgram {
    /// Pid of the process.
    pub pid: u32,
    /// Its file: a place in `objects`; none where it was left out.
    pub object: Option<u32>,
    /// ns since the first program was executed.
    pub time: u64,
}

/// The first use of a function by a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FirstUse {
    /// The file: a place in `objects`.
    pub object: u32,
    /// Address of the function as the file states it.
    pub address: u64,
    /// Bytes of the function.
    pub size: u64,
    /// Name of the function as the linker knows it; none in a stripped file.
    pub name: Option<String>,
    /// ns since the first program was executed.
    pub time: u64,
    /// Pid of the process.
    pub pid: u32,
}

/// A file whose functions could not be watched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// Its path.
    pub path: String,
    /// Why.
    pub reason: LeftOutReason,
}

/// Why the functions of a file could not be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LeftOutReason {
    /// The target's user cannot open it: make it readable, or trace as another user.
    Unreadable,
    /// What stands at its path is another file than the mapped one (deleted, replaced, in another mount namespace).
    Replaced,
    /// It is no ELF file of this machine that can be read.
    NotReadableElf,
    /// It has neither symbols nor frame descriptions.
    NoFunctions,
    /// The run-time linker writes into its code.
    TextRelocations,
    /// It has more than 2 GiB.
    TooLarge,
    /// Its code may not be changed, as in a program that its user cannot read, or one with rights that the target has not.
    Protected,
    /// Its run-time linker has no `_dl_debug_state` that can be watched: what was loaded after the start was not seen.
    LoaderUnknown,
}

impl LeftOutReason {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Unreadable => "the target's user cannot read it",
            Self::Replaced => "the file at its path is not the mapped one",
            Self::NotReadableElf => "it is no ELF file of this machine that can be read",
            Self::NoFunctions => "it has neither symbols nor frame descriptions",
            Self::TextRelocations => "the run-time linker writes into its code",
            Self::TooLarge => "it has more than 2 GiB",
            Self::Protected => {
                "its code may not be changed (its user cannot read it, or it has rights that the target has not)"
            }
            Self::LoaderUnknown => {
                "its run-time linker does not report when it loads objects: objects loaded later were not seen"
            }
        }
    }
}

/// Why bytes are no trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceFileError {
    /// No JSON object of this form.
    #[error("it is not a trace of `slowpath layout trace`")]
    Form(#[from] serde_json::Error),
    /// Another version.
    #[error("it has the form `{0}`, this version reads {TRACE_SCHEMA}")]
    Version(String),
    /// Larger than any.
    #[error("it has more than {MOST_USES} first uses")]
    TooLarge,
    /// A use of an object that is not listed.
    #[error("a first use names object {0}, and there are {1}")]
    NoSuchObject(u32, usize),
}

/// Bytes of a page of the kernels of traces. Where these differ, the largest: a start there needs the most of a file.
pub fn page_of<'a>(traces: impl IntoIterator<Item = &'a Trace>) -> u64 {
    traces.into_iter().map(Trace::page).max().unwrap_or(PAGE_SIZE)
}

impl TracedObject {
    /// Whether less than half of its code is in functions that are known.
    pub fn is_mostly_unknown(&self) -> bool {
        self.function_bytes < self.code_bytes / 2
    }
}

impl Trace {
    /// Reads a trace.
    ///
    /// # Errors
    /// [`TraceFileError`].
    pub fn parse(bytes: &[u8]) -> Result<Self, TraceFileError> {
        let trace: Self = serde_json::from_slice(bytes)?;
        if trace.schema != TRACE_SCHEMA {
            return Err(TraceFileError::Version(trace.schema.chars().take(64).collect()));
        }
        if trace.first_uses.len() > MOST_USES {
            return Err(TraceFileError::TooLarge);
        }
        let objects = trace.objects.len();
        let named = trace.first_uses.iter().map(|used| used.object);
        let mut named = named.chain(trace.programs.iter().filter_map(|program| program.object));
        match named.find(|object| *object as usize >= objects) {
            Some(object) => Err(TraceFileError::NoSuchObject(object, objects)),
            None => Ok(trace),
        }
    }

    /// Bytes of a page of its kernel; 4 KiB where it says what no kernel has.
    pub fn page(&self) -> u64 {
        page_of_kernel(self.page_size)
    }

    /// The file of the first program, which is what the command is; none where it was left out.
    pub fn program(&self) -> Option<u32> {
        self.programs.iter().find_map(|program| program.object)
    }

    /// The object that is this file: by build-id, else by path.
    pub fn object(&self, path: &str, build_id: Option<&str>) -> Option<u32> {
        let by_id =
            || self.objects.iter().position(|object| build_id.is_some() && object.build_id.as_deref() == build_id);
        let by_path = || {
            let same = |object: &TracedObject| object.path == path && (build_id.is_none() || object.build_id.is_none());
            self.objects.iter().position(same)
        };
        by_id().or_else(by_path).and_then(|at| u32::try_from(at).ok())
    }

    /// First uses of an object in order, each function once, whichever process was first.
    pub fn uses_of(&self, object: u32) -> Vec<&FirstUse> {
        let mut seen = std::collections::HashSet::new();
        let of_it = self.first_uses.iter().filter(|used| used.object == object);
        of_it.filter(|used| seen.insert(used.address)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(page_size: &str) -> Trace {
        let text = format!(
            r#"{{"schema": "{TRACE_SCHEMA}", "created": "", "command": [], "machine": "x86_64", {page_size} "all_objects": false,
                "ended": "stopped", "objects": [], "programs": [], "first_uses": [], "left_out": [], "lost": 0}}"#
        );
        Trace::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn pages_are_those_of_the_kernel_that_the_trace_is_from() {
        let older = trace("");
        let large = trace(r#""page_size": 65536,"#);
        let nonsense = trace(r#""page_size": 18446744073709551615,"#);
        assert_eq!([&older, &large, &nonsense].map(Trace::page), [4096, 65536, 4096]);
        assert_eq!((page_of([&older, &large]), page_of([])), (65536, 4096));
    }
}
