//! Android: which compiled code of an app its isolated processes (renderers) cannot use, from evidence that anybody can collect.
//!
//! Owns: the formats of ART's files ([`format`]), the texts that a device prints ([`text`]), evidence ([`evidence`]), collecting it and running
//! repairs through the `adb` client ([`adb`]), and the audit ([`audit`]). Leaves who may read a file to `slowpath_artifacts::access`, and
//! printing to `report`. Nothing here needs privilege, and nothing of a device is run or followed: it is text and bytes of a stranger.

pub mod adb;
pub mod audit;
pub mod evidence;
pub mod foreign;
pub mod format;
pub mod isolation;
pub mod launch;
pub mod startup;
pub mod text;
