//! What a diagnosis says when its user ends it: what is kept nevertheless.

use slowpath_session::failure::{Failure, Kind};

/// Of cold launches: what was recorded, and the plan made from it.
pub fn of_cold() -> Failure {
    Failure::new(Kind::Interrupted, "interrupted; the recordings and the plan are kept")
}

/// Of warm launches.
pub fn of_warm() -> Failure {
    Failure::new(Kind::Interrupted, "interrupted; the recording is kept")
}
