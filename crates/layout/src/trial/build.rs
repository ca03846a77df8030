//! One build of a variant, as the user whose build it is, and what the file holds that came of it.

use super::printed::{BuiltFile, BuiltVariant, VariantState};
use super::variants::{CFLAGS, LDFLAGS, ORDER_FILE, OUTPUT, VARIANT, Variant};
use crate::order::Format;
use serde::{Deserialize, Serialize};
use slowpath_launch::{EndPolicy, Launcher, ReadyWhen, StdioPolicy};
use slowpath_session::failure::{Failure, Kind};
use slowpath_session::foreign_file;
use slowpath_session::interrupt::{self, Interruptible};
use slowpath_session::target::{Invocation, Target, launch_failure, launcher, not_ready};
use slowpath_session::unprivileged::{Work, as_user};
use slowpath_symbols::binary::Binary;
use slowpath_symbols::binary::relocations::Relocations;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The longest build.
const PATIENCE: Duration = Duration::from_secs(4 * 3600);
/// The largest file that is read.
const MOST_BINARY: u64 = 2 << 30;

/// A build as the user gave it, and where its files go.
pub(super) struct Build<'a> {
    /// The command of a shell.
    pub command: &'a OsStr,
    /// Who it runs as; the same as the launches.
    pub user: Option<String>,
    /// The directory of the binaries.
    pub directory: &'a Path,
    /// The linker of all, where one is ordered.
    pub linker: Option<&'static Format>,
}

/// What came of a build, with what shows whether two are the same.
#[derive(Serialize, Deserialize)]
struct Looked {
    file: BuiltFile,
    digest: u64,
}

/// A variant that was built or was not.
pub(super) struct Made {
    pub variant: BuiltVariant,
    pub path: PathBuf,
    pub digest: Option<u64>,
}

impl Build<'_> {
    /// The order that variants link by.
    pub fn order(&self) -> PathBuf {
        self.directory.join("order")
    }

    /// Builds a variant. Names of the binaries have the same length: the size of arguments moves the stack.
    ///
    /// # Errors
    /// The build could not be started, or ctrl-C. A build that fails is a variant that failed.
    pub fn make(&self, variant: &Variant, number: usize) -> Result<Made, Failure> {
        let path = self.directory.join(format!("variant{number:02}"));
        let order = if variant.ordered { self.order().to_string_lossy().into_owned() } else { String::new() };
        let variables = BTreeMap::from([
            (VARIANT.to_owned(), variant.name.to_owned()),
            (OUTPUT.to_owned(), path.to_string_lossy().into_owned()),
            (ORDER_FILE.to_owned(), order),
            (CFLAGS.to_owned(), variant.cflags()),
            (LDFLAGS.to_owned(), variant.ldflags(self.linker, &self.order())),
        ]);
        let target = self.target(&variables)?;
        let mut made = Made {
            variant: BuiltVariant {
                name: variant.name.to_owned(),
                title: variant.title.to_owned(),
                variables,
                state: VariantState::Failed,
                reason: None,
                file: None,
            },
            path,
            digest: None,
        };
        let (spec, _fresh) = target.spec(EndPolicy::KillTree, StdioPolicy::Capture)?;
        let outcome = launcher().launch(&spec, &mut Interruptible).map_err(|error| launch_failure(&error))?;
        if interrupt::requested() {
            return Err(Failure::new(Kind::Interrupted, "interrupted"));
        }
        if let Some(failure) = not_ready(&outcome) {
            made.variant.reason = Some(format!("the build failed: {failure}"));
            return Ok(made);
        }
        let what = Work::reading("looking at a built file");
        match as_user(&target.identity, &what, || looked(&made.path)) {
            Ok(looked) => {
                made.variant.state = VariantState::Built;
                made.variant.file = Some(looked.file);
                made.digest = Some(looked.digest);
            }
            Err(failure) if failure.is_interruption() => return Err(failure),
            Err(failure) => made.variant.reason = Some(failure.to_string()),
        }
        Ok(made)
    }

    fn target(&self, variables: &BTreeMap<String, String>) -> Result<Target, Failure> {
        let invocation = Invocation { user: self.user.clone(), ready: ReadyWhen::Exit, timeout: None, env: Vec::new() };
        let command = [OsStr::new("/bin/sh"), OsStr::new("-c"), self.command].map(OsStr::to_owned);
        let target = Target::of(invocation, command.into(), Some(PATIENCE))?;
        let variables: Vec<(OsString, OsString)> =
            variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
        Ok(target.with(&variables))
    }
}

/// Reads a built file, as its user.
fn looked(path: &Path) -> Result<Looked, Failure> {
    let bytes = foreign_file::read(path, MOST_BINARY).map_err(|error| {
        Failure::new(Kind::Usage, format!("the build succeeded and left no readable file at ${OUTPUT}: {error}"))
    })?;
    let mut digest = DefaultHasher::new();
    digest.write(&bytes);
    let binary = Binary::without_functions(&bytes).ok();
    let relocations = binary.map(|binary| Relocations::of_elf(&bytes, &binary));
    let count = |of: fn(&Relocations) -> u64| relocations.as_ref().map(of);
    let file = BuiltFile {
        bytes: bytes.len() as u64,
        relative: count(|found| found.relative.len() as u64),
        packed: count(|found| found.packed.len() as u64),
        symbolic: count(|found| found.symbolic.len() as u64),
        calls: count(|found| found.calls.len() as u64),
        table_bytes: count(|found| found.tables.iter().map(|(_, bytes)| bytes).sum()),
    };
    Ok(Looked { file, digest: digest.finish() })
}
