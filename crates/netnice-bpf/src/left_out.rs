// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Which connections of a cgroup are left out.

use libbpf_rs::{MapCore, MapFlags, MapType};

use crate::error::bpf;
use crate::objects::{maps, LEFT_OUT_MAP};
use crate::pod::parse;
use crate::{sys, Result};

/// How many peers a run can be for.
pub const PEERS: usize = sys::NN_PEERS as usize;

/// Those of a run, as its programs know them.
#[derive(Clone, Default)]
pub struct LeftOut(sys::nn_left_out);

impl LeftOut {
    /// Those with these peers, at most [`PEERS`], and those of sockets without this mark.
    pub fn new(peers: &[sys::nn_peer], mark: Option<u32>) -> LeftOut {
        let mut out = sys::nn_left_out {
            mark: mark.unwrap_or_default(),
            masked: mark.is_some().into(),
            n_peers: peers.len() as u32,
            ..Default::default()
        };
        out.peers[..peers.len()].copy_from_slice(peers);
        LeftOut(out)
    }

    /// What the run with this id leaves out now.
    ///
    /// # Errors
    /// When a map of the kernel cannot be read.
    pub fn by(run: u64) -> Result<LeftOut> {
        let mut found = LeftOut::default();
        for map in maps(LEFT_OUT_MAP, MapType::Array) {
            let value = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
            let value = value.map_err(bpf("cannot read what a run leaves out"))?;
            // the newest: the kernel frees later what was there before it was attached again
            if let Some(out) = value.and_then(|v| parse(&v)).filter(|out: &Raw| out.run == run) {
                found = LeftOut(out);
            }
        }
        Ok(found)
    }

    /// The same, of the run with this id.
    pub(crate) fn of(&self, run: u64) -> Raw {
        Raw { run, ..self.0 }
    }

    /// The peers.
    pub fn peers(&self) -> &[sys::nn_peer] {
        &self.0.peers[..(self.0.n_peers as usize).min(PEERS)]
    }

    /// The mark of those that are not left out; none: any.
    pub fn mark(&self) -> Option<u32> {
        (self.0.masked != 0).then_some(self.0.mark)
    }
}

type Raw = sys::nn_left_out;
