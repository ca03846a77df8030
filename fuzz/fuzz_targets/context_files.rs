#![no_main]

slowpath_fuzz::fuzz!("context_files");
