#![no_main]

slowpath_fuzz::fuzz!("startup_trace");
