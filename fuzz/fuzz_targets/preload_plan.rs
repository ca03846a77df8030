#![no_main]

slowpath_fuzz::fuzz!("preload_plan");
