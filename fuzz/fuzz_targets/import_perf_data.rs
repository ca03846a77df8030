#![no_main]

slowpath_fuzz::fuzz!("import_perf_data");
