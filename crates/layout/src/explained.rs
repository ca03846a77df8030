//! Which section of a binary costs which pages: what `slowpath layout why` prints.

use crate::inputs::{self, TracedUse};
use crate::order::chosen;
use crate::why::{SectionPages, sections};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_session::failure::Failure;
use slowpath_symbols::binary::Binary;
use slowpath_symbols::binary::relocations::Relocations;
use std::path::{Path, PathBuf};

/// Name and version of what is printed.
const SCHEMA: &str = "slowpath-layout-why/1";

/// What `slowpath layout why --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explained {
    /// `slowpath-layout-why/1`.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: String,
    /// The binary.
    pub binary: String,
    /// Traces of it.
    pub traces: u64,
    /// Bytes of a page here: of the kernel that the traces are from; where these differ, of the one with the largest.
    pub page_size: u64,
    /// Relocations that add the base of the file.
    pub relative_relocations: u64,
    /// Relocations that look up a symbol.
    pub symbolic_relocations: u64,
    /// Its sections in the order of the file.
    pub sections: Vec<ExplainedSection>,
}

/// A section and its pages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedSection {
    /// Its name.
    pub name: String,
    /// Pages of `page_size` bytes of the whole section.
    pub pages: u64,
    /// Pages that a start needs; none where it is not known.
    pub needed: Option<f64>,
    /// What needs them, or why it is not known.
    pub by: String,
    /// What would leave fewer.
    pub remedies: Vec<ExplainedRemedy>,
}

/// What would leave fewer pages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExplainedRemedy {
    /// A flag of the link, or what is to be done.
    pub flag: String,
    /// Pages that remain.
    pub pages: f64,
}

/// Explains the pages of a binary by its traces, as the user whose files they are.
///
/// # Errors
/// A file cannot be read, or the traces show no use of the binary.
pub fn explained(path: &Path, traces: &[PathBuf]) -> Result<Explained, Failure> {
    let bytes = inputs::bytes_of(path, inputs::MOST_BINARY)?;
    let binary = Binary::of_elf(&bytes).map_err(|error| inputs::unreadable(path, &error))?;
    let TracedUse { works, page } = inputs::works(path, &binary, traces)?;
    let relocations = Relocations::of_elf(&bytes, &binary);
    let code = inputs::code(&binary, page);
    let rows = sections(&binary, &relocations, &works, &code, chosen(&works, &code));
    let section = |row: SectionPages| ExplainedSection {
        name: row.section,
        pages: row.all,
        needed: row.needed,
        by: row.by.to_owned(),
        remedies: row
            .remedies
            .into_iter()
            .map(|remedy| ExplainedRemedy { flag: remedy.flag, pages: remedy.pages })
            .collect(),
    };
    Ok(Explained {
        schema: SCHEMA.to_owned(),
        binary: path.to_string_lossy().into_owned(),
        traces: works.len() as u64,
        page_size: code.page(),
        relative_relocations: (relocations.relative.len() + relocations.packed.len()) as u64,
        symbolic_relocations: relocations.symbolic.len() as u64,
        sections: rows.into_iter().map(section).collect(),
    })
}
