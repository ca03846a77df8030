//! Android: which compiled code of an app its isolated processes (renderers) cannot use, from evidence that anybody can collect.
//!
//! Owns: the formats of ART's files ([`format`]), the texts that a device prints ([`text`]), evidence ([`evidence`]), collecting it and running
//! repairs through the `adb` client ([`adb`]), the audit ([`audit`]), launches ([`launch`], [`startup`]), and doing all of it as the user who
//! calls ([`as_invoker`]). Leaves who may read a file to `slowpath_artifacts::access`, sandboxes to `session`, and printing to `report`.
//! Nothing here needs privilege, and nothing of a device is run or followed: it is text and bytes of a stranger.

pub mod adb;
pub mod as_invoker;
pub mod audit;
pub mod evidence;
pub mod foreign;
pub mod format;
pub mod isolation;
pub mod launch;
pub mod startup;
pub mod text;
mod whole_json;
