#![no_main]

slowpath_fuzz::fuzz!("ring_records");
