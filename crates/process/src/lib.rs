//! What every process of slowpath that runs with privilege, or gives it up, relies on.
//!
//! Owns: who root works for ([`Identity`]); giving up root for good, with the result read back from the kernel ([`drop_to`]); reducing a process to what its
//! work needs ([`Sandbox`]; before an exec [`reduce_before_exec`], [`become_before_exec`]), and work in such a process ([`Worker`]); opening paths
//! that others can change ([`open_beneath`], [`trusted_directory`], [`plain_directory`], [`MountTable`]); the directory that
//! only we can write ([`StateDirectory`]) and who owns what lies
//! there ([`Owner`]); removing what a user could have changed ([`remove_directory_as`]); reading what others control without
//! waiting for them ([`Deadline`], [`shares_files`], [`foreign_file`]); the form of the kernel's texts about processes ([`mappings`],
//! [`StatLine`], [`status_field`], [`size_field`]) and of lists of CPUs ([`cpu_list()`]); who talks to us over [`loopback`]; messages with
//! descriptors from whom the kernel names ([`receive_packet`], [`Peer`]). Leaves to others: what a launch is (`launch`), and what a
//! process without privilege works on.
//!
//! Nothing here decides; each function either does what its name says and checks that it did, or returns an error.

mod capabilities;
mod cpu_list;
mod credentials;
mod deadline;
mod deadline_files;
pub mod foreign_file;
mod groups;
mod identity;
pub mod loopback;
mod mapping;
mod mount_table;
mod other_process;
mod owner;
mod packet;
mod page_size;
mod removal;
mod sandbox;
mod socket_message;
mod stat_line;
mod state;
mod trusted_path;
mod user_file_system;
mod worker;

pub use capabilities::Capabilities;
pub use cpu_list::cpu_list;
pub use credentials::{Credentials, CredentialsError, NO_ID, NOBODY, drop_keeping, drop_to, verify};
pub use deadline::{Deadline, DeadlineAnswer, DeadlineError, LIMIT};
pub use deadline_files::{Opened, ProcessFiles};
pub use identity::{Identity, IdentityError, IdentityWarning};
pub use mapping::{Mapping, mappings};
pub use mount_table::{MountPoint, MountTable, NotOpened};
pub use other_process::{UnreadableLink, shares_files, size_field, status_field, status_of};
pub use owner::Owner;
pub use packet::{
    Packet, PacketLimits, Peeked, Peer, Wait, discard_packet, peek_packet, receive_packet, receive_packet_with,
    send_packet, send_packet_with, wipe,
};
pub use page_size::page_size;
pub use removal::{remove_directory, remove_directory_as, remove_empty_directory};
pub use sandbox::{
    Duty, Printing, Sandbox, SandboxError, WritablePlace, become_before_exec, close_all_but, reduce_before_exec,
};
pub use socket_message::{MOST_DESCRIPTORS, Sender};
pub use stat_line::StatLine;
pub use state::{Entry, ListedEntry, StateDirectory, StateError};
pub use trusted_path::{
    FileIdentity, TrustedFile, fresh_directory, new_directory, open_beneath, open_plain, plain_directory,
    trusted_directory, trusted_file,
};
pub use user_file_system::is_answered_by_a_program;
pub use worker::{MOST_BYTES, Worker, WorkerError, remember_panics};
