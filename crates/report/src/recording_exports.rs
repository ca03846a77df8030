//! Recordings in the forms of other tools: what an export declares, the list of all, and writing one.
//!
//! An export is one file beside this folder with one declaration, `EXPORT` (a [`RecordingExport`]), listed in [`ALL`]
//! (`export_list`). The words of `--to`, `explain` and the reference follow from it. [`export()`] writes one. Leaves to the
//! command whose words these are, and what is said of it afterwards.

mod declaration;
mod export_list;
mod output;
mod written;

pub(crate) use declaration::first_weight;
pub use declaration::{
    Destination, ExportFile, ExportOptions, Exported, Files, NotExported, OfDiagnosis, OwnOption, RecordingExport, Work,
};
pub use export_list::{ALL, named};
pub use written::{ExportWanted, export};
