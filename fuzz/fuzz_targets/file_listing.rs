#![no_main]

slowpath_fuzz::fuzz!("file_listing");
