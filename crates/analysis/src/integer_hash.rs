//! Maps with keys made of a few integers (threads, files, pages), and a fast hash for these.
//!
//! The standard hash resists chosen keys at a cost that dominates the analysis of a million rows. These keys are numbers
//! that the kernel gave out; whoever forges a recording can at worst make its own analysis slow.

use rustc_hash::{FxHashMap, FxHashSet};

/// Map with integer keys.
pub(crate) type IntegerMap<K, V> = FxHashMap<K, V>;
/// Set of integers.
pub(crate) type IntegerSet<K> = FxHashSet<K>;
