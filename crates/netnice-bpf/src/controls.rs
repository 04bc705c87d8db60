// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Algorithms as congestion controls of the system.

use std::fs;
use std::mem;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, Object};
use netnice_core::Algorithm;

use crate::error::bpf;
use crate::objects::{self, load, maps, open, walked};
use crate::pod::text;
use crate::{Error, Result};

/// The prefix of the algorithms' names in the kernel.
pub const PREFIX: &str = "nn_";

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// The names (with [`PREFIX`]) of this project's controls that the kernel offers now.
///
/// # Errors
/// When /proc is not readable.
pub fn registered() -> Result<Vec<String>> {
    Ok(available()?.into_iter().filter(|n| n.starts_with(PREFIX)).collect())
}

/// The name of a control that is not this project's. The kernel always has one.
///
/// # Errors
/// When /proc is not readable.
pub fn another() -> Result<String> {
    Ok(available()?.into_iter().find(|n| !n.starts_with(PREFIX)).unwrap_or_default())
}

fn available() -> Result<Vec<String>> {
    let names = fs::read_to_string(AVAILABLE)
        .map_err(|error| Error::Io { what: format!("cannot read {AVAILABLE}"), error })?;
    Ok(names.split_whitespace().map(Into::into).collect())
}

/// What the names end with of the controls for connections in groups (NN_CONTROL in cc.bpf.c).
const GROUPED: &str = "_g";

/// The kernel's name of the control that runs `algorithm`: of connections on their own, or of those
/// in groups.
pub fn control_name(algorithm: Algorithm, grouped: bool) -> String {
    format!("{PREFIX}{}{}", algorithm.name(), if grouped { GROUPED } else { "" })
}

/// The control's name as users know it: groups or not is one control to them.
pub(crate) fn plain(control: &[std::ffi::c_char]) -> String {
    let name = text(control);
    name.strip_suffix(GROUPED).map_or(name.clone(), Into::into)
}

/// The object that cc.bpf.c was compiled into for `algorithm`; `grouped` as in [`control_name`].
fn control(algorithm: Algorithm, grouped: bool) -> &'static [u8] {
    let (_, object) = if grouped { objects::GROUPED } else { objects::CONTROLS }
        .iter()
        .find(|(name, _)| *name == algorithm.name())
        .expect("build.rs compiles every algorithm, and for groups what has them");
    object
}

/// The only key of the maps of controls.
const KEY: [u8; 4] = [0; 4];

/// The name of the map that says which build registered a control: [`objects::BUILD`]. The kernel
/// takes 15 characters.
fn build_map(control: &str) -> String {
    format!("{control}.b")
}

/// Whether a control (name with [`PREFIX`]) is registered, by another build of netnice or without
/// one: its algorithm may be another under the same name, and its parameters have other places.
///
/// # Errors
/// When /proc is not readable.
pub fn is_foreign(name: &str) -> Result<bool> {
    let map = build_map(name);
    let builds = maps(&map, MapType::Array);
    let of = |map: MapHandle| map.lookup(&KEY, MapFlags::ANY).ok().flatten();
    let own = builds.filter_map(of).any(|build| build == objects::BUILD.to_ne_bytes());
    Ok(!own && registered()?.iter().any(|n| n == name))
}

/// Says beside a control, for as long as it is there, that this build registers it.
fn sign(object: &Object, name: &str) -> Result<()> {
    let failed = || bpf(format!("cannot say which netnice has the control {name}"));
    let options = libbpf_sys::bpf_map_create_opts {
        sz: mem::size_of::<libbpf_sys::bpf_map_create_opts>() as _,
        ..Default::default()
    };
    let build = objects::BUILD.to_ne_bytes();
    let (key, value) = (KEY.len() as u32, build.len() as u32);
    let map = MapHandle::create(MapType::Array, Some(build_map(name)), key, value, 1, &options);
    let map = map.map_err(failed())?;
    map.update(&KEY, &build, MapFlags::ANY).map_err(failed())?;
    let program = object.progs().next().expect("cc.bpf.c defines some");
    let (program, map) = (program.as_fd().as_raw_fd(), map.as_fd().as_raw_fd());
    // SAFETY: both descriptors are open. The program keeps the map, as the control does the program.
    let error = unsafe { libbpf_sys::bpf_prog_bind_map(program, map, ptr::null()) };
    if error < 0 {
        return Err(failed()(libbpf_rs::Error::from_raw_os_error(-error)));
    }
    Ok(())
}

/// Registers an algorithm as a congestion control of the system, until [`unregister`]; `grouped`
/// as in [`control_name`]. It survives this process.
///
/// # Errors
/// When the kernel refuses, or another build registered it; one that this build has registered
/// already is no error.
pub fn register(algorithm: Algorithm, grouped: bool) -> Result<()> {
    let name = control_name(algorithm, grouped);
    if registered()?.contains(&name) {
        return if is_foreign(&name)? { Err(Error::Version) } else { Ok(()) };
    }
    let object = open(control(algorithm, grouped), &name)?;
    let mut object = load(object, &format!("the congestion control {name}"))?;
    sign(&object, &name)?;
    let mut map = object
        .maps_mut()
        .find(|m| m.map_type() == MapType::StructOps)
        .expect("cc.bpf.c defines one");
    let mut link = map
        .attach_struct_ops()
        .map_err(bpf(format!("the kernel did not register the congestion control {name}")))?;
    link.disconnect(); // the registration stays when this process ends
    Ok(())
}

/// Takes a control (name with [`PREFIX`]) off the kernel's list. Connections that use it keep it
/// until they close.
///
/// # Errors
/// When the kernel refuses; one that is not registered is no error.
pub fn unregister(name: &str) -> Result<()> {
    for build in maps(&build_map(name), MapType::Array) {
        // connections may keep it: it says nothing of the next control of this name
        let _ = build.update(&KEY, &0u64.to_ne_bytes(), MapFlags::ANY);
    }
    for map in maps(name, MapType::StructOps) {
        // one that is only kept by its last connections answers EINPROGRESS, or is gone already
        let _ = map.delete(&0u32.to_ne_bytes());
    }
    match registered()?.iter().any(|n| n == name) {
        false => Ok(()),
        true => Err(Error::Io {
            what: format!("the kernel did not unregister {name}"),
            error: std::io::Error::last_os_error(),
        }),
    }
}

/// How many instructions the kernel's verifier walked in each program of `algorithm`; `grouped` as
/// in [`control_name`].
///
/// # Errors
/// When the control cannot be loaded.
pub fn instructions(algorithm: Algorithm, grouped: bool) -> Result<Vec<(String, u32)>> {
    let name = control_name(algorithm, grouped);
    let object = load(open(control(algorithm, grouped), &name)?, &name)?;
    Ok(walked(&object))
}
