//! The launcher's own processes: the [`guardian`], the [`observer`] that it forks, and the [`target`] until its exec, for which
//! [`exec_strings`] holds the arguments and the environment.
//!
//! [`order`] is what main asks of them, [`work`] what the guardian hands down for it. Around the observer: its [`post`], [`ready`] for the
//! moment that is waited for, [`output`] and [`stdio`], and the processes below it ([`tree`], [`tracer`]).

mod another_user;
mod devtools;
mod exec_strings;
pub(crate) mod foreign;
mod group_counts;
mod guardian;
mod observer;
mod order;
mod output;
mod post;
mod process_group;
mod ready;
mod stdio;
mod target;
mod tracer;
mod tree;
mod work;

pub use guardian::launcher_main;
pub(crate) use order::Order;
