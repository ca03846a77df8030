#![no_main]

slowpath_fuzz::fuzz!("layout_repack");
