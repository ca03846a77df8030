#![no_main]

slowpath_fuzz::fuzz!("saved_context");
