#![no_main]

slowpath_fuzz::fuzz!("guard_tries");
