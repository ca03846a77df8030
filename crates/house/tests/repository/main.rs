//! Rules of this repository that are read off its files: layers, names, prose, reference pages, dependencies, and gaps.

mod dependencies;
mod docs;
mod explained;
mod gaps;
mod layering;
mod naming;
mod prose;
