//! Real zygotes, real children: isolation against an exec, hostile clients, limits, kills, and what is left.

#[path = "../../../process/tests/hanging/mod.rs"]
mod hanging;
mod hostile;
mod isolation;
mod lifetime;
mod load;
mod secrets;
mod served;
mod shortage;
mod strangers;
