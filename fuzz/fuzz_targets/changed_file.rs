#![no_main]

slowpath_fuzz::fuzz!("changed_file");
