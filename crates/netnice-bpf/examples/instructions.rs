// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Prints how many BPF instructions each program has in the running kernel, as
//! lines of `name value unit`. Needs root: it loads the programs, and registers nothing.

#![forbid(unsafe_code)]

use anyhow::Result;
use netnice_core::Algorithm;

fn main() -> Result<()> {
    for algorithm in Algorithm::all() {
        for (program, count) in netnice_bpf::instructions(algorithm)? {
            println!("bpf_instructions_{program}_{} {count} instructions", algorithm.name());
        }
    }
    Ok(())
}
