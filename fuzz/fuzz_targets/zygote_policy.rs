#![no_main]

slowpath_fuzz::fuzz!("zygote_policy");
