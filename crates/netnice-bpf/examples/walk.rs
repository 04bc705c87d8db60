// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Prints the connections of runs as a kernel has them listed that refuses to walk over storage: run, port of
//! this end and of the other, bytes acknowledged. Needs root.

#![forbid(unsafe_code)]

use anyhow::Result;
use netnice_bpf::Flows;

fn main() -> Result<()> {
    for flow in Flows::open_by_socket()?.map_or(Ok(Vec::new()), |flows| flows.of_runs())? {
        println!("{} {} {} {}", flow.flow.settings.run, flow.sport, flow.dport, flow.bytes_acked);
    }
    Ok(())
}
