#![no_main]

slowpath_fuzz::fuzz!("import_wpa_csv");
