#![no_main]

slowpath_fuzz::fuzz!("perf_map");
