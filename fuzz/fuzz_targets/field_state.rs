#![no_main]

slowpath_fuzz::fuzz!("field_state");
