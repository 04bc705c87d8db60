// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Golden traces inside the running kernel: every algorithm, compiled as the kernel runs it, must
//! give what tests/golden/traces.txt has of C and Rust. Needs root; prints one line per trace.
//!
//!     golden [ALGORITHM]...

use std::env;

use anyhow::{ensure, Context, Result};
use netnice_core::Algorithm;

#[path = "../../../tests/golden/steps.rs"]
mod steps;

fn main() -> Result<()> {
    let steps = steps::steps();
    let mut wrong = 0;
    let named = env::args().skip(1).map(|name| Algorithm::by_name(&name));
    let mut wanted = named.collect::<Result<Vec<_>, _>>()?;
    if wanted.is_empty() {
        wanted.extend(Algorithm::all());
    }
    for algorithm in wanted {
        let [defaults, others] = steps::configs(algorithm);
        let traces = [&defaults, &others]
            .map(|(parameters, config)| (*parameters, netnice_bpf::replay(config, &steps)))
            .into_iter()
            .chain([(steps::GROUP, netnice_bpf::replay_group([&defaults.1, &others.1], &steps))]);
        for (parameters, trace) in traces {
            let trace = trace.with_context(|| {
                format!("cannot replay the trace of {algorithm:?} in the kernel; run this as root")
            })?;
            let line = steps::line(algorithm, parameters, trace.hash, trace.ctl.cwnd_q16);
            println!("{line}");
            if let Err(difference) = steps::check(&line) {
                eprintln!("in the kernel, {difference}");
                wrong += 1;
            }
        }
    }
    ensure!(wrong == 0, "{wrong} traces in the kernel are not the recorded ones");
    Ok(())
}
