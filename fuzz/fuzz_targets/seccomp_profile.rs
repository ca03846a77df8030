#![no_main]

slowpath_fuzz::fuzz!("seccomp_profile");
