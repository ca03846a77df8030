//! What a zygote loads before it has children, from the command line.

use crate::arguments::zygote::ZygotePreloadArguments;
use crate::failure::{Failure, Kind};
use slowpath_zygote::preload::Preload;
use slowpath_zygote::{PreloadError, PreloadWanted};

/// What is preloaded.
pub fn preload(arguments: &ZygotePreloadArguments) -> Result<Preload, Failure> {
    let ZygotePreloadArguments { preload, entry, python } = arguments;
    let wanted = PreloadWanted { what: preload.clone(), entry: entry.clone(), python: python.clone() };
    Preload::of(&wanted).map_err(|error| {
        let kind = if matches!(error, PreloadError::NoLibrary) { Kind::Machine } else { Kind::Usage };
        Failure::from_error(kind, &error).hint_if_any(error.remedy())
    })
}
