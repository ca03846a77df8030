//! Call stacks: their frames by name ([`call_stacks`]), which function answers for what happened at their end ([`attribution`]), and which
//! have the most ([`function_weights`]).

pub mod attribution;
pub mod call_stacks;
pub mod function_weights;
