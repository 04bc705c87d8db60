// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice enable` and `netnice disable`: algorithms for the whole system.

use anyhow::Result;
use clap::Args;
use netnice_core::Algorithm;
use netnice_manager::attached;
use netnice_manager::system::{Left, System};
use netnice_manners::say;

use crate::units::count;

#[derive(Args)]
pub struct EnableArgs {
    /// Algorithms to register; all by default
    #[arg(value_name = "ALGORITHM")]
    algorithms: Vec<String>,
    /// Let unprivileged programs choose them too (tcp_allowed_congestion_control)
    #[arg(long)]
    allow_all: bool,
}

#[derive(Args)]
pub struct DisableArgs {
    /// Algorithms to take off the list; all by default
    #[arg(value_name = "ALGORITHM")]
    algorithms: Vec<String>,
}

/// The named algorithms, or all of them.
fn chosen(names: &[String]) -> Result<Vec<Algorithm>> {
    match names {
        [] => Ok(Algorithm::all().collect()),
        names => Ok(names.iter().map(|n| Algorithm::by_name(n)).collect::<Result<_, _>>()?),
    }
}

pub fn enable(args: &EnableArgs) -> Result<()> {
    let algorithms = chosen(&args.algorithms)?;
    Ok(System::change()?.enable(&algorithms, args.allow_all)?)
}

pub fn disable(args: &DisableArgs) -> Result<()> {
    let algorithms = chosen(&args.algorithms)?;
    let system = System::change()?;
    let Left { runs, controls } = system.disable(&algorithms)?;
    if !controls.is_empty() {
        let until = until(runs, attached::all(system.hierarchy())?.len());
        say!("netnice: {} stays until {until}", controls.join(", "));
    }
    Ok(())
}

/// The end of what keeps a control.
fn until(runs: usize, attached: usize) -> String {
    let mut ends = Vec::new();
    if runs > 0 {
        let runs = count(runs as u64, "running `netnice run` ends", "running `netnice run` end");
        ends.push(format!("{runs} (see netnice status)"));
    }
    if attached > 0 {
        let attached = count(attached as u64, "cgroup is", "cgroups are");
        ends.push(format!("{attached} attached no more (netnice detach --all)"));
    }
    match ends.is_empty() {
        true => "a run in another container ends".into(),
        false => ends.join(", and "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_disables_is_told_what_keeps_a_control_and_how_to_end_it() {
        assert_eq!(until(1, 0), "1 running `netnice run` ends (see netnice status)");
        assert_eq!(until(0, 2), "2 cgroups are attached no more (netnice detach --all)");
        assert_eq!(
            until(2, 1),
            "2 running `netnice run` end (see netnice status), and 1 cgroup is attached no more \
             (netnice detach --all)"
        );
        assert_eq!(until(0, 0), "a run in another container ends");
    }
}
