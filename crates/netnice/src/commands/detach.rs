// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice detach`: what `netnice attach` did, undone.

use anyhow::{bail, Context, Result};
use clap::Args;
use netnice_manager::socket::{self, Removed, Remover};
use netnice_manager::system::{require_privileges, System};
use netnice_manners::say;

#[derive(Args)]
pub struct DetachArgs {
    /// The processes
    #[arg(required = true, value_name = "PID")]
    pids: Vec<i32>,
}

pub fn main(args: DetachArgs) -> Result<()> {
    require_privileges()?;
    let (mut done, mut of_runs) = (0, 0);
    {
        let system = System::change()?;
        let remover = Remover::new(&system)?;
        for pid in args.pids {
            let sockets = socket::of_process(pid)?;
            let default = socket::default_control(pid)?;
            for socket in &sockets {
                let what = || format!("cannot take a connection of process {pid} out");
                match remover.take(socket, &default).with_context(what)? {
                    Removed::Done => done += 1,
                    Removed::OfARun => of_runs += 1,
                    Removed::Plain => {}
                }
            }
        }
    }
    if of_runs > 0 {
        say!(
            "netnice: {of_runs} connections are of a run, and stay in the background until it ends"
        );
    }
    if done == 0 {
        bail!("there is nothing else to take out of the background; see netnice status");
    }
    System::change()?; // takes the control off the kernel's list, if nobody else needs it
    say!("netnice: took {done} connections out of the background");
    Ok(())
}
