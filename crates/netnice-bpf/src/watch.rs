// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Seeing processes leave the cgroup of a run.

use std::fs;
use std::os::fd::BorrowedFd;

use libbpf_rs::{Link, Object};

use crate::error::bpf;
use crate::objects::{self, load, open, TOTALS_MAP};
use crate::pod::{bytes, put_text};
use crate::{sys, Result};

/// Counts while it lives.
pub(crate) struct Watch {
    _link: Link,
    _object: Object,
}

impl Watch {
    /// For the run of this id, into its totals.
    pub(crate) fn new(run: u64, totals: BorrowedFd<'_>) -> Result<Watch> {
        const WHAT: &str = "cannot watch the processes of the run";
        let mut watched = sys::nn_watched { run, ..Default::default() };
        let own = fs::read_to_string("/proc/self/comm").unwrap_or_default();
        put_text(&mut watched.comm, own.trim_end_matches('\n'));
        let mut object = open(objects::LEFT, "netnice_left")?;
        for mut map in object.maps_mut() {
            if map.name() == TOTALS_MAP {
                map.reuse_fd(totals).map_err(bpf(WHAT))?;
            } else if map.name().to_string_lossy().ends_with(".rodata.watched") {
                map.set_initial_value(bytes(&watched)).map_err(bpf(WHAT))?;
            }
        }
        let object = load(object, "the program that watches processes")?;
        let program = object.progs_mut().next().expect("left.bpf.c defines one");
        let link = program.attach_trace().map_err(bpf(WHAT))?;
        Ok(Watch { _link: link, _object: object })
    }
}
