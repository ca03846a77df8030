#![no_main]

slowpath_fuzz::fuzz!("devtools");
