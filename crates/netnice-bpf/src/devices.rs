// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The devices of a hold, and programs at them.

use std::os::fd::AsFd;

use libbpf_rs::{
    MapCore, MapFlags, MapType, Object, TcAttachPoint, TcHookBuilder, TC_EGRESS, TC_INGRESS,
};

use crate::error::{bpf, expected, tried};
use crate::objects::maps;
use crate::pod::parse;
use crate::sys::nn_hold;
use crate::Result;

/// By which a device's other programs and ours are told apart: 'nn' in hexadecimal.
const HANDLE: u32 = 0x6e6e;

/// The devices of a hold, by their ifindex in this network namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Devices {
    /// Leads out.
    pub out: u32,
    /// Has fq; what waits goes into it, and comes out of the other one.
    pub wait: (u32, u32),
    /// Cuts GSO packets into segments, which come out of the other one.
    pub cut: (u32, u32),
    /// The inode of the network namespace.
    pub netns: u64,
    /// Paths above this rate are left alone, bytes/s.
    pub fastest: u64,
}

impl Devices {
    /// As programs are told of them.
    pub(crate) fn told(&self) -> nn_hold {
        nn_hold {
            netns: self.netns,
            device: self.out,
            wait: self.wait.0,
            cut: self.cut.0,
            closing: 0,
            fastest: self.fastest,
        }
    }
}

/// Attaches one of an object's programs to a device.
pub(crate) fn attach_to(
    object: &Object,
    program: &str,
    device: u32,
    at: TcAttachPoint,
    priority: u32,
) -> Result<()> {
    let program = object.progs().find(|p| p.name() == program).expect("its source defines it");
    let mut hook = TcHookBuilder::new(program.as_fd())
        .ifindex(i32::try_from(device).expect("an ifindex"))
        .replace(true)
        .handle(HANDLE)
        .priority(priority)
        .hook(at);
    // libbpf complains of a clsact that is there already
    tried(|| hook.create().and_then(|mut hook| hook.attach()))
        .map_err(bpf("cannot attach netnice's programs to a device (clsact)"))?;
    Ok(())
}

/// Takes the programs of a priority off a device; none there are no error.
pub(crate) fn detach_from(device: u32, priority: u32) -> Result<()> {
    // a hook is named by a program, though none is needed to find what is attached
    let none = std::io::stdin();
    for at in [TC_EGRESS, TC_INGRESS] {
        let mut hook = TcHookBuilder::new(none.as_fd())
            .ifindex(i32::try_from(device).expect("an ifindex"))
            .handle(HANDLE)
            .priority(priority)
            .hook(at);
        if expected(|| hook.query()).is_ok() {
            hook.detach().map_err(bpf("cannot take the programs off the device"))?;
        }
    }
    Ok(())
}

/// The paths of a network namespace that all maps of that name have, by their device's ifindex; `hold` is
/// whose one is, if it is used.
pub(crate) fn paths_of<T: Copy, P>(
    map: &str,
    netns: u64,
    hold: impl Fn(&T) -> Option<nn_hold>,
    path: impl Fn(&T) -> P,
) -> Result<Vec<(u32, Vec<P>)>> {
    let mut found = Vec::new();
    for map in maps(map, MapType::Array) {
        let mut device = None;
        let mut paths = Vec::new();
        for index in 0..crate::sys::NN_HOPS {
            let value = map.lookup(&index.to_ne_bytes(), MapFlags::ANY);
            let value = value.map_err(bpf("cannot read the paths of a device that holds"))?;
            let Some(hop) = value.and_then(|v| parse::<T>(&v)) else { continue };
            let Some(hold) = hold(&hop).filter(|hold| hold.netns == netns) else { continue };
            device = Some(hold.device);
            paths.push(path(&hop));
        }
        found.extend(device.map(|device| (device, paths)));
    }
    Ok(found)
}
