// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Prints how many BPF instructions the verifier of the running kernel walks in each program, as
//! lines of `name value unit`; of all controls, of what holds packets and of what lets downloads yield, or of
//! those named (`nn_nice_g`, `nn_hold`, `nn_down`). Needs root: it loads the programs, and registers nothing.

#![forbid(unsafe_code)]

use anyhow::Result;
use netnice_core::Algorithm;

const HOLD: &str = "nn_hold";
const DOWN: &str = "nn_down";

fn main() -> Result<()> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    for algorithm in Algorithm::all() {
        for grouped in [false, true].into_iter().take(1 + usize::from(algorithm.grouped())) {
            let name = netnice_bpf::control_name(algorithm, grouped);
            if !wanted.is_empty() && !wanted.contains(&name.to_string()) {
                continue;
            }
            show(&name, netnice_bpf::instructions(algorithm, grouped)?);
        }
    }
    let is_wanted = |of| wanted.is_empty() || wanted.iter().any(|name| name == of);
    if is_wanted(HOLD) {
        show(HOLD, netnice_bpf::hold::instructions()?);
    }
    if is_wanted(DOWN) {
        show(DOWN, netnice_bpf::down::instructions()?);
    }
    Ok(())
}

fn show(name: &str, walked: Vec<(String, u32)>) {
    for (program, count) in walked {
        println!("bpf_instructions_{program}_{name} {count} instructions");
    }
}
