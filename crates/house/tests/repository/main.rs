//! Rules of this repository that are read off its files: layers, names, prose, reference pages, dependencies, gaps, and cases.

mod cases;
mod dependencies;
mod docs;
mod explained;
mod gaps;
mod layering;
mod naming;
mod prose;
