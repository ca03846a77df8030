//! Which compiled code of which app its isolated processes can use.
//!
//! Owns the verdict on each APK and instruction set ([`audit`]), what is printed of it, repairs with their price ([`repairs`]), and the policy
//! for `artifacts guard` ([`guard_policy`]). Who may read a file is decided by `slowpath_artifacts::access`, from a listing.

mod artifacts_of;
mod dex_amount;
mod filter;
mod guard_policy;
mod judge;
mod price;
mod printed;
mod repairs;
mod words;

pub use artifacts_of::{ArtifactPaths, places};
pub use dex_amount::{DexAmount, DexFrom};
pub use filter::{is_compiled, is_profile_guided};
pub use guard_policy::guard_policy;
pub use judge::audit;
pub use price::price;
pub use printed::{
    AUDIT_SCHEMA, AndroidAudit, CodeAudit, CodeOutcome, DeviceFacts, Engine, EnginePackage, FileAudit, MeasuredStarts,
    OatFacts, PackageAudit, ReadState, Repair,
};
pub use repairs::repairs;

#[cfg(test)]
mod tests;
