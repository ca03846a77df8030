//! The image of the vdso: the kernel maps the same one into every process, this one too.

use super::elf::Lookup;
use super::image::Image;
use super::names::{Names, refuse};
use super::{Reason, opened};
use crate::vdso_mapping::vdso_mapping;
use nix::sys::uio::{RemoteIoVec, process_vm_readv};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::IoSliceMut;

/// Names offsets in the vdso.
pub(super) fn name(this_boot: bool, lookup: &mut Lookup<'_>, places: &mut BTreeMap<u64, Names>) {
    if !this_boot {
        return refuse(places, Reason::OtherBoot);
    }
    let Some(file) = image() else { return refuse(places, Reason::NoVdso) };
    match Image::of(&file) {
        Ok(image) => lookup.image(&file, &image, None, places),
        Err(_) => refuse(places, Reason::NoVdso),
    }
}

/// Its image, out of this process's memory: no file holds it, and the kernel copies it without our touching a raw pointer.
fn image() -> Option<File> {
    opened::in_memory(&vdso_image()?).ok()
}

/// The image of the kernel's vdso, which is the same in all processes of a machine.
pub fn vdso_image() -> Option<Vec<u8>> {
    let range = vdso_mapping()?;
    let base = usize::try_from(range.start).ok()?;
    let len = usize::try_from(range.end).ok()?.checked_sub(base)?;
    let mut bytes = vec![0u8; len];
    let remote = [RemoteIoVec { base, len }];
    let read = process_vm_readv(nix::unistd::getpid(), &mut [IoSliceMut::new(&mut bytes)], &remote).ok()?;
    (read == len).then_some(bytes)
}
