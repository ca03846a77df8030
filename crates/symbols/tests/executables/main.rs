//! Tables, symbols and walks of executables: those of this machine, those that a compiler made, and damaged and hostile ones.

mod aarch64;
mod against_readelf;
mod compiled;
mod damaged;
#[cfg(target_arch = "x86_64")]
mod every_instruction;
mod hostile;
mod machine;
mod program;
#[cfg(target_arch = "x86_64")]
mod tracing;
mod walking;
