#![no_main]

slowpath_fuzz::fuzz!("launcher_message");
