#![no_main]

slowpath_fuzz::fuzz!("artifact_file");
