//! From when on pages that were touched and never used are a finding.

use super::cost::Cost;
use crate::findings::materiality::CostShare;
use slowpath_tables::Pages;

/// Fewest pages: 1 MiB. Ends of buffers, and room for growth, are less.
pub const LEAST_UNUSED: Pages = Pages(256);

/// Least share of the touched pages. What is sized by a guess is rarely off by less, and data have some pages of zeros.
pub const LEAST_SHARE: f64 = 0.1;

/// Whether so many pages of a group were never used, at such a cost, that it is a finding.
pub(in crate::findings) fn is_one(cost: &Cost, share: &CostShare) -> bool {
    let least = cost.unused_pages().low.unwrap_or_default();
    least >= LEAST_UNUSED.0 as f64 && cost.unused.low >= LEAST_SHARE && share.is_material()
}
