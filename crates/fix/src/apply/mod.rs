//! From a fix to files that keep it: what would stand in them, to be read before anything is written, and to be taken back to
//! the byte.
//!
//! One module a kind of file, and one line in [`TARGETS`]: [`wrapper`], [`environment_file`], [`systemd`], [`desktop_file`]. Each
//! owns the syntax of its files: one pure function quotes values for it. [`permissions`] writes no file and changes those that the fix
//! names. `target_kind` says what each declares, `variables` and `fix_name` what they write alike, [`Refusal`] why one cannot keep a fix.
//!
//! [`diff`] shows the change, [`journal`] decides by the [`file_version`] at each path what is written, and what is left alone when it is taken
//! back; [`steps`] carries that out on the files of [`place`] and [`permission_place`], and [`records`] keeps what was there until it is
//! restored; [`made`] knows the diagnoses that root made; [`finish`] does what must not stay half done in a child that outlives a kill. Leaves
//! reading a diagnosis, which change is asked for, and every word to the user, to the command.

pub mod desktop_file;
pub mod diff;
pub mod environment_file;
pub mod error;
pub mod file_version;
pub mod finish;
mod fix_name;
pub mod journal;
pub mod made;
mod permission_place;
pub mod permissions;
pub mod place;
pub mod records;
mod refusal;
#[cfg(test)]
mod sample;
pub mod steps;
pub mod systemd;
mod target_kind;
mod target_list;
mod variables;
pub mod wrapper;

pub use fix_name::file_part;
pub use refusal::Refusal;
pub use target_kind::{ContentKind, FileNeed, Input, Keeps, Rendered, TargetKind};
pub use target_list::{TARGETS, refusal, refused_everywhere};
