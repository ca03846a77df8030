#![no_main]

slowpath_fuzz::fuzz!("kernel_trace");
