//! Rules of this repository that are read off its files: layers, circles, names, prose, reference pages, dependencies, gaps, and cases.

mod cases;
mod circles;
mod dependencies;
mod docs;
mod explained;
mod gaps;
mod layering;
mod naming;
mod prose;
