#![no_main]

slowpath_fuzz::fuzz!("art_file");
