#![no_main]

slowpath_fuzz::fuzz!("page_list");
