#![no_main]

slowpath_fuzz::fuzz!("http");
