#![no_main]

slowpath_fuzz::fuzz!("unwind_table_message");
