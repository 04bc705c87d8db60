// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The compiled programs of bpf/, and the maps that they share.

use std::io::Read;
use std::os::fd::AsFd;

use flate2::read::ZlibDecoder;
use libbpf_rs::query::{MapInfoIter, ProgInfoIter};
use libbpf_rs::{MapCore, MapHandle, MapType, Object, ObjectBuilder, OpenObject};

use crate::error::{bpf, quiet};
use crate::pod::Words;
use crate::{Error, Result};

include!(concat!(env!("OUT_DIR"), "/objects.rs"));

pub(crate) const FLOWS: &str = "nn_flows";
pub(crate) const RUN_MAP: &str = "nn_run";
pub(crate) const TOTALS_MAP: &str = "nn_totals";
pub(crate) const LEFT_OUT_MAP: &str = "nn_left_out";
pub(crate) const DIRECTORY: &str = "nn_directory";
pub(crate) const RUNS: &str = "nn_runs";
pub(crate) const SLOTS: &str = "nn_slots";
const UDP: &str = "nn_udp";
/// The maps that every object uses, if some object has made them before.
const SHARED: [(&str, MapType); 5] = [
    (FLOWS, MapType::SkStorage),
    (UDP, MapType::SkStorage),
    (RUNS, MapType::Hash),
    (DIRECTORY, MapType::Array),
    (SLOTS, MapType::Array),
];

/// An object as it was compiled: objects are half of what is installed, and are kept deflated.
fn inflated(object: &[u8]) -> Words {
    let mut bytes = Vec::new();
    let read = ZlibDecoder::new(object).read_to_end(&mut bytes);
    Words::of(&read.map_or_else(|_| Vec::new(), |_| bytes)) // libbpf says what it cannot read
}

pub(crate) fn open(object: &'static [u8], name: &str) -> Result<OpenObject> {
    quiet();
    let mut object = ObjectBuilder::default()
        .name(name)
        .and_then(|b| b.open_memory(inflated(object).bytes()))
        .map_err(bpf(format!("cannot read the BPF object {name}")))?;
    for mut map in object.maps_mut() {
        let shared = SHARED.iter().find(|(name, _)| map.name() == *name);
        let Some(made) = shared.and_then(|(name, ty)| maps(name, *ty).next()) else { continue };
        if map.value_size() != made.value_size() {
            return Err(Error::Version);
        }
        map.reuse_fd(made.as_fd()).map_err(bpf("cannot share the maps of connections"))?;
    }
    Ok(object)
}

pub(crate) fn load(object: OpenObject, what: &str) -> Result<Object> {
    object.load().map_err(bpf(format!("the kernel did not accept {what}")))
}

/// How many instructions the kernel's verifier walked in each program.
pub(crate) fn walked(object: &Object) -> Vec<(String, u32)> {
    let ids: Vec<u32> =
        object.progs().filter_map(|p| libbpf_rs::Program::id_from_fd(p.as_fd()).ok()).collect();
    ProgInfoIter::default()
        .filter(|i| ids.contains(&i.id))
        .map(|i| (i.name.to_string_lossy().into_owned(), i.verified_insns))
        .collect()
}

pub(crate) fn maps(name: &str, ty: MapType) -> impl Iterator<Item = MapHandle> + '_ {
    MapInfoIter::default()
        .filter(move |m| m.name.to_str() == Some(name) && m.ty == ty)
        // one that went away in between is not there
        .filter_map(|m| MapHandle::from_map_id(m.id).ok())
}

pub(crate) fn flows_map() -> Result<Option<MapHandle>> {
    Ok(maps(FLOWS, MapType::SkStorage).next())
}
