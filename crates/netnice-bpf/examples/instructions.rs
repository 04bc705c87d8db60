// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Prints how many BPF instructions the verifier of the running kernel walks in each program, as
//! lines of `name value unit`; of all controls, or of those named (`nn_nice_g`). Needs root: it
//! loads the programs, and registers nothing.

#![forbid(unsafe_code)]

use anyhow::Result;
use netnice_core::Algorithm;

fn main() -> Result<()> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    for algorithm in Algorithm::all() {
        for grouped in [false, true].into_iter().take(1 + usize::from(algorithm.grouped())) {
            let name = netnice_bpf::control_name(algorithm, grouped);
            if !wanted.is_empty() && !wanted.contains(&name.to_string()) {
                continue;
            }
            for (program, count) in netnice_bpf::instructions(algorithm, grouped)? {
                println!("bpf_instructions_{program}_{name} {count} instructions");
            }
        }
    }
    Ok(())
}
