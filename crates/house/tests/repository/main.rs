//! Rules of this repository that are read off its files: layers, circles, names, prose, reference pages, dependencies, and gaps.

mod circles;
mod dependencies;
mod docs;
mod gaps;
mod layering;
mod naming;
mod prose;
