//! Preload once, fork isolated children in milliseconds.
//!
//! A *zygote* is a process that has loaded what its children need, and waits. Who asks over its socket gets a fork of it that was made what
//! was asked for: namespaces, descriptors, groups, user, `no_new_privs`, a seccomp filter, each read back from the kernel before any of the
//! child's work is done.
//!
//! Owns: the server ([`serve`]) and what a program gives it ([`Preloaded`]); the clients ([`Client`], [`Spawned`]); the messages between them
//! ([`message`]); who may ask for what ([`Policy`]); the socket ([`listener`]); spares; what the command preloads ([`preload`], [`template`]) and
//! how it keeps that there ([`supervisor`]); children made in several ways, for a benchmark ([`measure`]); what its commands print
//! ([`printed`]). Leaves to `analysis` whether one pays, to `slowpath_process` giving up privilege and messages with descriptors, to
//! `slowpath_seccomp` filters, to `slowpath_zygote_c` other languages.
//!
//! # What a zygote costs
//!
//! All children have the zygote's layout of addresses: what is learned of one holds for all, until the zygote is started anew
//! (`renew` of the policy). They can read whatever the zygote had read. Dirty memory makes forks slower, in proportion to its page tables.
//! A library that is replaced on the disk stays the old one in the zygote.
//!
//! # Safety conditions
//!
//! The process has one thread whenever it forks, which is checked each time: a fork copies the locks that other threads hold, and not the
//! threads. Random numbers drawn before a fork are the same in all children ([`Child::seed`] is not); clocks, connections and descriptors
//! that the preloaded code holds are for its hooks to renew. Descriptors that a child was not given are closed in it.

mod admission;
mod c_strings;
mod child;
mod client;
mod connection;
pub mod demand;
pub mod foreign;
pub mod listener;
pub mod measure;
pub mod message;
mod named;
mod namespaces;
pub mod policy;
pub mod preload;
mod pressure;
pub mod printed;
pub mod readiness;
mod server;
mod single_thread;
mod spares;
pub mod supervisor;
pub mod template;
mod waiting;

pub use child::{Child, Preloaded};
pub use client::{Client, SpawnError, Spawned};
pub use message::{AskedFilter, AskedIdentity, Ending, Refusal, RefusalKind, SpawnRequest, Status, Word};
pub use named::{PreloadError, PreloadWanted};
pub use namespaces::Namespace;
pub use policy::Policy;
pub use server::{End, ServeError, serve};
pub use single_thread::ManyThreads;
