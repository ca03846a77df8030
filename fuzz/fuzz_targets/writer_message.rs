#![no_main]

slowpath_fuzz::fuzz!("writer_message");
