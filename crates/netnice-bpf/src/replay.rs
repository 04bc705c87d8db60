// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Golden traces inside the kernel.

use std::mem;

use libbpf_rs::{MapCore, MapFlags, ProgramInput};
use netnice_core::Config;

use crate::error::bpf;
use crate::objects::{self, load, open};
use crate::pod::{bytes, parse};
use crate::Result;

/// A step of a golden trace; `event` is an ACK where it is no `nn_event`.
pub use netnice_core::sys::nn_step as Step;
pub use netnice_core::sys::nn_trace as Trace;

/// Runs an algorithm over `steps` (exactly 20,000) inside the kernel.
///
/// # Errors
/// When the kernel refuses the program.
pub fn replay(config: &Config, steps: &[Step]) -> Result<Trace> {
    let value = replayed("nn_replay", ".data.trace", [config, config], steps)?;
    Ok(parse(&value).expect("the map holds one trace"))
}

/// The same for a group of flows, of which half have the second parameters. Returns the hash over
/// all of them with the first flow's state.
///
/// # Errors
/// When the kernel refuses the program.
pub fn replay_group(configs: [&Config; 2], steps: &[Step]) -> Result<Trace> {
    let value = replayed("nn_replay_group", ".data.group", configs, steps)?;
    let (hash, flows) = value.split_at(mem::size_of::<u64>());
    let first: Option<Trace> = parse(&flows[..mem::size_of::<Trace>()]);
    Ok(Trace {
        hash: parse(hash).expect("it has this size"),
        ..first.expect("the first of nn_group_trace.flow")
    })
}

/// Runs a program of replay.bpf.c; returns the value of one of its maps.
fn replayed(program: &str, result: &str, configs: [&Config; 2], steps: &[Step]) -> Result<Vec<u8>> {
    let name = configs[0].algorithm().name();
    let (_, object) = objects::REPLAYS
        .iter()
        .find(|(n, _)| *n == name)
        .expect("build.rs compiles every algorithm");
    let mut object = open(object, "netnice_replay")?;
    let mut cfg = [[0u32; netnice_core::sys::NN_PARAMS_MAX as usize]; 2];
    for (cfg, config) in cfg.iter_mut().zip(configs) {
        cfg[..config.values().len()].copy_from_slice(config.values());
    }
    object
        .maps_mut()
        .find(|m| m.name().to_string_lossy().ends_with(".data.cfg"))
        .expect("replay.bpf.c defines it")
        .set_initial_value(bytes(&cfg))
        .map_err(bpf("cannot set the parameters"))?;
    let object = load(object, "the replay of a trace")?;
    let map = |name: &str| {
        object.maps().find(|m| m.name().to_string_lossy().ends_with(name)).expect("replay.bpf.c")
    };
    let what = "cannot replay a trace";
    for (i, step) in steps.iter().enumerate() {
        map("steps")
            .update(&(i as u32).to_ne_bytes(), bytes(step), MapFlags::ANY)
            .map_err(bpf(what))?;
    }
    let program = object.progs_mut().find(|p| p.name() == program).expect("replay.bpf.c");
    let done = program.test_run(ProgramInput::default()).map_err(bpf(what))?;
    assert_eq!(done.return_value as usize, steps.len(), "the program takes every step");
    let value = map(result).lookup(&0u32.to_ne_bytes(), MapFlags::ANY).map_err(bpf(what))?;
    Ok(value.expect("an array of one value"))
}
