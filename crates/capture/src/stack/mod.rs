//! Call stacks: from numbers and frames in the ring to rows of `stacks` and `frames`. How the kernel walks them stands in
//! `bpf/stack.bpf.h`; the tables that it walks with come from outside ([`crate::Recorder::load_table`]).

mod attach;
mod code_mappings;
mod copies;
mod loader;
mod rows;

pub use code_mappings::CodeMapping;
pub(crate) use copies::CopyReader;
pub use copies::{CodePlace, StackAudit, StackCopy, WalkFate};
pub use loader::{NewModule, TableParts, VDSO};
pub(crate) use loader::{Tables, mapped_module};
pub(crate) use rows::{Stacks, stack as stack_of};
