// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice attach`: the existing connections of running processes; units and containers as a whole.

use std::iter::once;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{bail, Result};
use clap::Args;
use netnice_core::Config;
use netnice_cri::{Label, Pod, Runtime};
use netnice_daemon::client::{ask, Error::NotAsked};
use netnice_daemon::protocol::{Answer, Meant, Request, Wanted};
use netnice_manager::attached::{Found, Whole};
use netnice_manager::cgroup::Hierarchy;
use netnice_manager::choice::Choice;
use netnice_manager::moves::{self, Attached, Mandate};
use netnice_manager::named::Named;
use netnice_manager::peer::Selection;
use netnice_manager::socket::Opened;
use netnice_manager::system::{require_privileges, System};
use netnice_manager::Error;
use netnice_manners::{say, start};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::detach;

use crate::args::{ChoiceArgs, NamedArgs, PeerArgs, SocketArgs};
use crate::units::count;

#[derive(Args)]
pub struct AttachArgs {
    #[command(flatten)]
    choice: ChoiceArgs,
    #[command(flatten)]
    peers: PeerArgs,
    #[command(flatten)]
    daemon: SocketArgs,
    #[command(flatten)]
    named: NamedArgs,
    #[command(flatten)]
    labelled: LabelArgs,
    /// Stay: attach it whenever it is there, and detach it at the end
    #[arg(long, conflicts_with = "pids")]
    keep: bool,
    /// The processes: their connections of this moment
    #[arg(required_unless_present_any = ["unit", "container", "cgroup", "pods"], value_name = "PID")]
    pids: Vec<i32>,
}

/// Pods beside those of BestEffort.
#[derive(Args)]
struct LabelArgs {
    /// With --pods: those with this label too, which the container runtime of this node is asked for
    #[arg(long, value_name = "KEY=VALUE", requires = "pods")]
    label: Option<Label>,
    /// Where the container runtime listens [default: where containerd, CRI-O, k3s and cri-dockerd do]
    #[arg(long, value_name = "SOCKET", requires = "label")]
    runtime: Option<PathBuf>,
}

impl LabelArgs {
    /// The pods with the label that run now.
    fn pods(&self) -> Result<Vec<Named>> {
        let Some(label) = &self.label else { return Ok(Vec::new()) };
        let runtime = match &self.runtime {
            Some(socket) => Runtime::at(socket.clone()),
            None => Runtime::find()?,
        };
        let named =
            |pod: Pod| Named::Pod { name: format!("{}/{}", pod.namespace, pod.name), uid: pod.uid };
        Ok(runtime.pods(label)?.into_iter().map(named).collect())
    }
}

pub fn main(args: AttachArgs) -> Result<()> {
    let choice = Choice::from(args.choice);
    let config = choice.config()?;
    let selection = Selection::from(args.peers);
    choice.require_fit(&selection, false)?;
    let Some(named) = args.named.named() else {
        let done = moved(args.pids, &choice, &selection, &args.daemon)?;
        return tell(&done, &config, &selection);
    };
    require_privileges()?;
    let hierarchy = Hierarchy::open()?;
    let put = |named: &Named| whole(&hierarchy, named, &config, choice.tos(), &selection);
    if args.keep {
        return keep(&named, &args.labelled, put);
    }
    let pods = args.labelled.pods()?;
    if let (Some(label), []) = (&args.labelled.label, pods.as_slice()) {
        say!("netnice: no pod with the label {label} runs on this node");
    }
    put(&named)?;
    pods.iter().try_for_each(|pod| put(pod).map(drop))?;
    say!("netnice: when it starts anew it is not: attach it again then, or use --keep");
    Ok(())
}

/// Moves the connections of processes: this process does, or the daemon for a user without root.
fn moved(
    pids: Vec<i32>,
    choice: &Choice,
    selection: &Selection,
    daemon: &SocketArgs,
) -> Result<Attached> {
    match require_privileges() {
        Err(Error::Privileges(_)) => {
            let (choice, meant) = (Wanted::from(choice), Meant::from(selection));
            match ask(&daemon.socket, &Request::Attach { pids, choice, meant })? {
                Answer::Attached(done) => Ok(done),
                _ => bail!(NotAsked),
            }
        }
        others => {
            others?;
            let processes = pids.into_iter().map(Opened::new).collect::<Result<Vec<_>, _>>()?;
            Ok(moves::attach(&processes, choice, selection, &Mandate::of_root())?)
        }
    }
}

/// What was moved, and what was not; an error if that is all.
fn tell(done: &Attached, config: &Config, selection: &Selection) -> Result<()> {
    let &Attached { moved, spared, kept, others, multipath } = done;
    if moved + spared + kept + others == 0 {
        bail!(
            "these processes have no TCP connection now; start them with: netnice run -- COMMAND"
        );
    }
    if spared > 0 {
        say!(
            "netnice: {spared} connections and listening sockets stay as they are (--to, --except, --mark); \
             what a listener accepts: netnice run --to"
        );
    }
    if multipath > 0
        && (selection.only.is_some() || config.values() != Config::new(config.algorithm()).values())
    {
        say!(
            "netnice: {multipath} connections are of MPTCP, which hands on no --set and no --only: they \
             have the default parameters; for others start the process with: netnice run --set ..."
        );
    }
    if kept > 0 {
        say!("netnice: {kept} connections are of a run already, or of an attached cgroup, and keep what that chose");
    }
    if others > 0 {
        say!("netnice: {others} connections keep what root or another user chose for them");
    }
    if moved == 0 {
        bail!("there is nothing else to move; see netnice status");
    }
    say!("netnice: moved {moved} connections; see netnice status");
    Ok(())
}

/// All of a cgroup, from now on.
fn whole(
    hierarchy: &Hierarchy,
    named: &Named,
    config: &Config,
    tos: u8,
    selection: &Selection,
) -> Result<Whole> {
    let whole = named.find(hierarchy)?;
    let system = System::change()?;
    let Found { moved, spared, of_others, refused } =
        whole.attach(&system, config, tos, selection)?;
    let mut beside = Vec::new();
    for (number, why) in [
        (spared, "stay as they are (--to, --except, --mark)"),
        (
            of_others,
            "are of a run already, or of an attached cgroup inside, and keep what that chose",
        ),
        (refused, "stay as they are, since the kernel refused (ip route: congctl lock?)"),
    ] {
        if number > 0 {
            beside.push(format!("; {} {why}", count(number as u64, "other", "others")));
        }
    }
    say!(
        "netnice: {} is in the background: moved {}{}; so is what it opens from now on; see netnice status",
        whole.name(),
        count(moved as u64, "connection", "connections"),
        beside.concat()
    );
    Ok(whole)
}

/// How often it is looked whether it is still attached.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// All of a cgroup, and of the labelled pods, whenever they are there, until this is to end.
fn keep(named: &Named, labelled: &LabelArgs, put: impl Fn(&Named) -> Result<Whole>) -> Result<()> {
    let (end, ended) = mpsc::channel();
    let mut signals = Signals::new(start::heeded(&[SIGHUP, SIGINT, SIGTERM]))?;
    thread::spawn(move || signals.forever().try_for_each(|_| end.send(())));
    let (mut pods, mut said) = (Vec::new(), Vec::new());
    // what this has attached: somebody else may have done so before, with other options
    let mut kept: Vec<(Named, Whole)> = Vec::new();
    loop {
        kept.retain(|(_, whole)| whole.is_there() && whole.is_attached().unwrap_or(false));
        let asked = labelled.pods().map(|found| pods = found); // or those that there were
        let is_kept = |named: &Named| kept.iter().any(|(of, _)| of == named);
        let missing: Vec<_> = once(named).chain(&pods).filter(|named| !is_kept(named)).collect();
        let mut failed: Vec<_> = asked.err().into_iter().collect();
        for named in missing {
            put(named).map_or_else(|e| failed.push(e), |whole| kept.push((named.clone(), whole)));
        }
        let failed: Vec<_> = failed.iter().map(ToString::to_string).collect();
        for error in failed.iter().filter(|error| !said.contains(*error)) {
            say!("netnice: {error}; waiting for it");
        }
        said = failed;
        if ended.recv_timeout(LOOK_AGAIN).is_ok() {
            return detach::all_of(kept.iter().map(|(_, whole)| whole));
        }
    }
}
