//! Visits pages in a running browser: what is visited, where it is served, how long each phase of a visit took.
//!
//! Owns: lists of pages ([`pages`]), serving local pages on loopback so that each is a site of its own ([`PageServer`]),
//! and the conversation with a browser of the Chromium family through DevTools ([`Visitor`]), which gives the milestones of
//! each visit. Leaves starting and ending the browser to `launch`, its processes to `capture` and `analysis`, and every
//! comparison to `experiment`. Runs as the user who visits: it reads files that are theirs, or the browser's.

mod beneath;
mod devtools;
mod error;
#[doc(hidden)]
pub mod foreign;
pub mod pages;
mod server;
mod visit;
mod visitor;

pub use error::VisitError;
pub use pages::{Page, PagesError, Source};
pub use server::PageServer;
pub use visitor::Visitor;
