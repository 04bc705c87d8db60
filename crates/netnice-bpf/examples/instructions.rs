// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Prints how many BPF instructions each program has in the running kernel, as
//! lines of `name value unit`. Needs root: it loads the programs, and registers nothing.

#![forbid(unsafe_code)]

use anyhow::Result;
use netnice_core::Algorithm;

fn main() -> Result<()> {
    for algorithm in Algorithm::all() {
        for grouped in [false, true].into_iter().take(1 + usize::from(algorithm.grouped())) {
            let name = netnice_bpf::control_name(algorithm, grouped);
            for (program, count) in netnice_bpf::instructions(algorithm, grouped)? {
                println!("bpf_instructions_{program}_{name} {count} instructions");
            }
        }
    }
    Ok(())
}
