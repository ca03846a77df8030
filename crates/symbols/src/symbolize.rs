//! Names of frames: functions, inlined ones too, with source lines where debug information allows.
