#![no_main]

slowpath_fuzz::fuzz!("device_text");
