// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Groups of connections that share their windows.

use libbpf_rs::{MapCore, MapFlags, MapType};

use crate::controls::plain;
use crate::error::bpf;
use crate::objects::{maps, DIRECTORY, SLOTS};
use crate::pod::{parse, text};
use crate::{sys, Error, Membership, Result};

/// What the connections of a group to one place share.
pub struct Aggregate {
    entry: sys::nn_entry,
    slot: Box<sys::nn_slot>,
    /// Its number, which [`Record::slot`] gives too.
    pub index: u32,
}

impl Aggregate {
    /// All that have a connection.
    ///
    /// # Errors
    /// When a map of the kernel cannot be read.
    pub fn all() -> Result<Vec<Aggregate>> {
        let what = "cannot read the groups";
        let (Some(directory), Some(slots)) =
            (maps(DIRECTORY, MapType::Array).next(), maps(SLOTS, MapType::Array).next())
        else {
            return Ok(Vec::new());
        };
        let value = directory.lookup(&0u32.to_ne_bytes(), MapFlags::LOCK).map_err(bpf(what))?;
        let directory: sys::nn_directory = value.and_then(|v| parse(&v)).ok_or(Error::Version)?;
        let mut found = Vec::new();
        for (index, entry) in (0u32..).zip(directory.entry).filter(|(_, e)| e.flows > 0) {
            let value = slots.lookup(&index.to_ne_bytes(), MapFlags::LOCK).map_err(bpf(what))?;
            let slot = value.and_then(|v| parse(&v)).map(Box::new).ok_or(Error::Version)?;
            found.push(Aggregate { entry, slot, index });
        }
        Ok(found)
    }

    /// The group.
    pub fn group(&self) -> Membership {
        let sys::nn_group_key { name, owner, bits, .. } = &self.entry.key;
        Membership { name: text(name), owner: *owner, bits: *bits }
    }

    /// The remote address, of which the bits of [`Aggregate::group`] count (of 128), in network byte
    /// order; IPv4 as ::ffff:a.b.c.d.
    pub fn address(&self) -> [u32; 4] {
        self.entry.key.addr
    }

    /// The name of its connections' control.
    pub fn control(&self) -> String {
        plain(&self.entry.key.ca)
    }

    /// Connections that are in it.
    pub fn connections(&self) -> u32 {
        self.entry.flows
    }

    /// The sum of the windows in packets, Q16, as it was divided last: C.
    pub fn window_q16(&self) -> u64 {
        self.slot.group.window
    }

    /// The window that a member brought (its place plus 1, see `netnice_core::place`), in packets, Q16: C_j.
    pub fn member_q16(&self, place: u32) -> Option<u64> {
        let member = self.slot.group.member.get(place.checked_sub(1)? as usize)?;
        (member.weight > 0 && member.window.cwnd > 0).then_some(member.window.cwnd)
    }
}
