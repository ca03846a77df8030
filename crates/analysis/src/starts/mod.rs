//! How processes start.
//!
//! Owns the starts of children ([`children`]), those that siblings repeat (`repeated_starts`) and what of them a fork would hand on
//! ([`inherited_loads`]), those starts beside each other ([`sibling_starts`]), what the run-time linker does before main (`loader_work`),
//! and whether a zygote pays ([`zygote_advice`]).

pub mod children;
pub mod inherited_loads;
pub(crate) mod loader_work;
pub(crate) mod repeated_starts;
pub mod sibling_starts;
pub mod zygote_advice;
