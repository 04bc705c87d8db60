// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice hook`: what others call while they start something.

use std::io::stdin;

use anyhow::Result;
use clap::{Args, Subcommand};
use netnice_manager::choice::Choice;
use netnice_manager::named;
use netnice_manager::oci::{State, Wanted};
use netnice_manager::peer::Selection;
use netnice_manager::system::System;
use netnice_manners::say;

#[derive(Args)]
pub struct HookArgs {
    #[command(subcommand)]
    hook: Hook,
}

#[derive(Subcommand)]
enum Hook {
    /// Put a container into the background if its annotation netnice.class asks for it
    #[command(
        long_about = "A hook of the OCI runtime specification, for the stage createRuntime. It reads the state \
                      of the container from standard input. If the container has the annotation \
                      netnice.class, it is in the background from its first packet; the value is a class, \
                      such as idle. Others are left alone.\n\n\
                      If that cannot be done, the exit status is 1 and the runtime does not start the \
                      container. With --or-plain it starts as it is.",
        after_help = "Example, with the file that the package puts into /usr/share/containers/oci/hooks.d:\n  \
                      sudo podman run --annotation netnice.class=idle IMAGE"
    )]
    Oci(OciArgs),
}

#[derive(Args)]
struct OciArgs {
    /// If it cannot be in the background, say why and let the container start as it is
    #[arg(long)]
    or_plain: bool,
}

pub fn main(args: &HookArgs) -> Result<()> {
    let Hook::Oci(args) = &args.hook;
    match oci() {
        Err(error) if args.or_plain => {
            say!(
                "netnice: the container starts, but not in the background (--or-plain): {error:#}"
            );
            Ok(())
        }
        done => done,
    }
}

fn oci() -> Result<()> {
    let Some(Wanted { id, pid, class }) = State::read(stdin())?.wanted()? else { return Ok(()) };
    let choice = Choice { class: Some(class), ..Choice::default() };
    let system = System::change()?;
    let container = named::of_container(system.hierarchy(), &id, pid)?;
    container.attach(&system, &choice.config()?, choice.tos(), &Selection::default())?;
    Ok(())
}
