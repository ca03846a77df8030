#![no_main]

slowpath_fuzz::fuzz!("proc_text");
