//! `slowpath layout why`: which section costs which pages.

use crate::arguments::LayoutWhyArguments;
use crate::commands::{invoker, print_json};
use crate::failure::Failure;
use crate::unprivileged::{Work, as_user};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use slowpath_layout::order::chosen;
use slowpath_layout::why::sections;
use slowpath_report::terminal::escape_terminal;
use slowpath_symbols::binary::Binary;
use slowpath_symbols::binary::relocations::Relocations;
use std::process::ExitCode;

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
    /// Pages (4 KiB) of the whole section.
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

/// Runs the command.
pub fn run(arguments: &LayoutWhyArguments) -> Result<ExitCode, Failure> {
    let explained = as_user(&invoker()?, &Work::reading("reading the binary"), || explained(arguments))?;
    if arguments.json {
        print_json(&explained);
    } else {
        print!("{}", table(&explained));
    }
    Ok(ExitCode::SUCCESS)
}

fn explained(arguments: &LayoutWhyArguments) -> Result<Explained, Failure> {
    let bytes = super::bytes_of(&arguments.binary, super::MOST_BINARY)?;
    let binary = Binary::of_elf(&bytes).map_err(|error| super::unreadable(&arguments.binary, &error))?;
    let works = super::works(&arguments.binary, &binary, &arguments.traces)?;
    let relocations = Relocations::of_elf(&bytes, &binary);
    let code = super::code(&binary);
    let rows = sections(&binary, &relocations, &works, &code, chosen(&works, &code));
    let section = |row: slowpath_layout::why::SectionPages| ExplainedSection {
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
        binary: arguments.binary.to_string_lossy().into_owned(),
        traces: works.len() as u64,
        relative_relocations: (relocations.relative.len() + relocations.packed.len()) as u64,
        symbolic_relocations: relocations.symbolic.len() as u64,
        sections: rows.into_iter().map(section).collect(),
    })
}

fn table(explained: &Explained) -> String {
    let mut text = format!(
        "{}: {} relocations add the base, {} look up a symbol\n\nsection              pages   needed   by\n",
        escape_terminal(&explained.binary),
        explained.relative_relocations,
        explained.symbolic_relocations,
    );
    for section in &explained.sections {
        let needed = section.needed.map_or("?".to_owned(), |pages| format!("{pages:.0}"));
        let name = escape_terminal(&section.name);
        text.push_str(&format!("{name:<18} {:>7} {needed:>8}   {}\n", section.pages, section.by));
        for remedy in &section.remedies {
            text.push_str(&format!("{:<26} {:>8.0}   with {}\n", "", remedy.pages, remedy.flag));
        }
    }
    text
}
