//! The files of a recording: written and read again, damaged, hostile, on a full disk, and as text.

mod damage;
mod disk_full;
mod hostile;
mod properties;
mod round_trip;
mod samples;
mod text_form;
