// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The command line; each command's own part of it is in its file.

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use netnice_manual::ManualArgs;

use crate::commands::{
    algorithms, attach, check, daemon, detach, enable, hold, hook, metrics, probe, replicate, run,
    share, status, top,
};

/// The order of --help: who reads it for the first time looks for an example.
const HELP: &str = "{usage-heading} {usage}{after-help}\n\n{about-with-newline}\n{all-args}";

/// Of commands that have nothing else to say of it.
const STATUS: &str = "The exit status is 0 if that was done, 1 if it was not (standard error says why), and 2 if the \
                      command line was not understood.";

/// Runs programs so that their network traffic yields to everybody else's.
#[derive(Parser)]
#[command(
    name = "netnice",
    version,
    about,
    long_about = "nice yields the CPU, ionice the disk, netnice the network: what runs under it uses \
                  only the bandwidth that nobody else wants. There is no rate to set. Nothing is \
                  installed at the receiver or in the network: the sender's TCP gives way as soon as a \
                  queue builds.\n\n\
                  It governs TCP: what this machine sends, and what it downloads where packets can wait \
                  (netnice hold). UDP and QUIC wait there too, but only while TCP in the background shows the \
                  line's rate; else they are sent as before. So is the work that a command hands to a \
                  daemon (docker, tmux, an ssh master): start the daemon under `netnice run`, or move \
                  its connections with `netnice attach`.",
    after_help = "Examples:\n  \
                  sudo netnice run -- rsync -a /home backup:/home\n  \
                  sudo netnice run --verbose -- restic backup /home\n  \
                  sudo netnice run --group backups --share 4 -- rsync -a /srv backup:/srv\n  \
                  sudo netnice attach $(pidof rsync)\n  \
                  sudo netnice enable --allow-all ebb && iperf3 -c host -C nn_ebb\n  \
                  sudo netnice probe backup:5009\n  \
                  netnice algorithms nice"
)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// What a command line asks for.
    pub fn of(words: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
        let mut program = Cli::whole();
        let found = program.try_get_matches_from_mut(words)?;
        Cli::from_arg_matches(&found).map_err(|error| error.format(&mut program))
    }

    /// The definition, with what all commands have in common.
    pub fn whole() -> clap::Command {
        Cli::command().help_template(HELP).mut_subcommands(complete)
    }
}

fn complete(command: clap::Command) -> clap::Command {
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string);
    let about = about.unwrap_or_default();
    let says = command.has_subcommands() || about.contains("exit status");
    let command = command.help_template(HELP).mut_subcommands(complete);
    match says {
        true => command,
        false => command.long_about(format!("{about}\n\n{STATUS}")),
    }
}

#[derive(Subcommand)]
pub enum Command {
    /// Run a command with all its TCP connections in the background
    #[command(
        long_about = "Runs a command with its TCP connections in the background: all that it and its children open \
                      or accept, over IPv4 and IPv6, and sockets that it is started with. Started over ssh without \
                      a terminal, it takes sshd's connection along, which carries what it writes. Packets are \
                      marked with DSCP LE (RFC 8622) unless --class or --dscp says otherwise. The command cannot \
                      take its connections out again.\n\n\
                      The exit status is the command's. As with nice(1) it is 127 if the command was not found, \
                      126 if it could not be run, and 125 if netnice itself failed. In that case the command was \
                      not started, unless --or-plain says so. Without root it asks `netnice daemon`.\n\n\
                      While it runs, its packets wait in this host until the path has room, at the devices of the \
                      default routes (netnice hold). So they fill what the rest of this host's traffic leaves of \
                      the line. They do not wait with --no-hold or --dscp none, in a group, or with another class or \
                      algorithm. For what \
                      other hosts send, and where packets cannot wait, the command's connections send less as soon \
                      as a queue builds. At these devices downloads yield too, to what this host downloads; those over \
                      QUIC with --udp-downloads. With --only up they do not; with --only down nothing else does.\n\n\
                      At the end it says in one line what was not in the background, and what to do: no TCP \
                      connection or only local ones, UDP, downloads where nothing holds, processes that left the \
                      run, connections with \
                      another congestion control.",
        after_help = "Examples:\n  \
                      sudo netnice run -- rsync -a /home backup:/home\n  \
                      sudo netnice run --to 192.0.2.0/24:5432 -- postgres -D /var/lib/db   # replicas, not clients\n  \
                      sudo netnice run --class fair -- transmission-cli archive.torrent\n  \
                      sudo netnice run --group nightly --share 4 --class idle -- rsync -a /srv backup:/srv\n  \
                      sudo netnice run --algorithm vegas --dscp none -- curl -T dump.sql https://backup/\n  \
                      sudo netnice run --only down -- apt-get upgrade\n  \
                      sudo netnice run --udp-downloads -- curl --http3 -O https://example.org/large.iso\n  \
                      sudo netnice run --verbose -- sudo -u me restic backup /home   # not as root\n  \
                      netnice run --or-plain -- /usr/local/bin/backup                 # in root's crontab\n  \
                      netnice run -- rsync -a ~/ backup:home         # without root, where netnice.socket is enabled"
    )]
    Run(run::RunArgs),
    /// Copy a directory to many hosts in the background, and keep the copies current
    #[command(
        long_about = "Copies a directory to any number of places with rsync, in the background. There is no \
                      rate to set. It finds out how many transfers at a time are fastest, tries a failed \
                      destination again, continues where a killed run ended, and can keep the copies \
                      current. The exit status is 3 if some destinations are not current in the end; they \
                      are listed with the reasons. Without root it asks `netnice daemon`.",
        after_help = "Examples:\n  \
                      sudo netnice replicate /srv/www/ a:/srv/www b:/srv/www rsync://c/www\n  \
                      sudo netnice replicate /srv/www/ --to hosts.txt --delete --verify -- --exclude='*.tmp'\n  \
                      sudo netnice replicate /srv/www/ hub:/srv/www leaf:/srv/www --via hub --watch\n  \
                      netnice replicate check www.toml && sudo netnice replicate --config www.toml\n  \
                      netnice replicate status"
    )]
    Replicate(Box<replicate::ReplicateArgs>),
    /// Try what of netnice works on this machine
    #[command(
        long_about = "Tries what of netnice works on this machine, and says so line by line, with what to do \
                      where something does not: the rights of this process, the kernel, a run, whether packets \
                      can wait in this host (netnice hold), rsync for netnice replicate, the daemon for users \
                      without root. It leaves nothing behind. The exit status is 0 if netnice run works, else 1.",
        after_help = "Examples:\n  sudo netnice check\n  netnice check     # what works without root"
    )]
    Check(check::CheckArgs),
    /// Put what runs already into the background: processes, units, containers
    #[command(
        long_about = "Puts a unit of systemd, a container or any other cgroup into the background as a whole: \
                      the TCP connections that it has, and those that it opens or accepts from now on, \
                      until `netnice detach`, or until the cgroup is gone. If cgroups are in each other, \
                      or runs in them, the innermost decides. Attach it again to change how it yields.\n\n\
                      With process ids it puts the TCP connections of these processes into the background, \
                      and those that their listening sockets will accept, of MPTCP too (Go programs listen \
                      with it). Connections that they open later are not affected: start the process with \
                      `netnice run` for that, or attach its unit. Without root it asks `netnice daemon`, which \
                      moves processes of the caller only.",
        after_help = "Examples:\n  \
                      sudo netnice attach --unit postgresql@15-main --to 192.0.2.0/24\n  \
                      sudo netnice attach --unit background.slice --class fair\n  \
                      sudo netnice attach --container registry-mirror\n  \
                      sudo netnice attach --keep --pods --label netnice/class=idle\n  \
                      sudo netnice attach $(pidof rsync)"
    )]
    Attach(attach::AttachArgs),
    /// Take what runs out of the background again
    #[command(
        long_about = "Undoes `netnice attach`: the TCP connections and listening sockets get the congestion \
                      control and the DSCP again that they had, or the system's default where that is not known. \
                      With process ids it also does this for connections that the program itself, or a route, put \
                      under one of netnice's controls. Connections of a run stay in the background until they end. \
                      Without root it asks `netnice daemon`, which takes out what the caller put there.",
        after_help = "Examples:\n  \
                      sudo netnice detach --unit postgresql@15-main\n  \
                      sudo netnice detach $(pidof rsync)\n  \
                      sudo netnice detach --all     # units, containers and cgroups"
    )]
    Detach(detach::DetachArgs),
    /// Register algorithms for the whole system, until `netnice disable`
    #[command(
        long_about = "Registers algorithms as TCP congestion controls of the system (nn_ebb, ...), until `netnice \
                      disable` or a reboot. A program with CAP_NET_ADMIN can then choose one for a connection; \
                      with --allow-all any program can:\n\n  \
                      setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, \"nn_ebb\", 6)\n  \
                      ip route change default via 192.0.2.1 congctl nn_ebb",
        after_help = "Examples:\n  \
                      sudo netnice enable ebb\n  \
                      sudo netnice enable --allow-all ebb && iperf3 -c host -C nn_ebb"
    )]
    Enable(enable::EnableArgs),
    /// Take algorithms off the kernel's list again, and clean up after killed runs
    #[command(
        long_about = "Takes algorithms off the kernel's list (all of them by default), and cleans up what a \
                      killed netnice left. A connection that uses one keeps it until it closes. What a \
                      running `netnice run` needs stays until that run ends.",
        after_help = "Examples:\n  \
                      sudo netnice disable\n  \
                      sudo netnice disable ebb"
    )]
    Disable(enable::DisableArgs),
    /// Show what is registered, every run and every background connection, and whose they are
    #[command(
        long_about = "Shows which algorithms are registered, every run with its command and processes, also one \
                      without a connection, and every background connection with its state, its run and the \
                      processes that hold it. If a program has ended or closed a connection that still has \
                      something to send, no process is shown for it. Without root it asks `netnice daemon`, \
                      which shows what is the caller's.",
        after_help = "Examples:\n  \
                      sudo netnice status\n  \
                      sudo netnice status --group backups --seconds 10"
    )]
    Status(status::StatusArgs),
    /// Watch what is in the background: rates, and why they are as they are
    #[command(
        long_about = "Shows each job in the background with its rate, what else uses its path, and why it is \
                      as slow as it is: because it yields and to how much, or because of its program, the \
                      receiver, or the path. A job is a run, a replication, a group of runs, or a process with \
                      connections that were attached. Where a reason cannot be seen, it says so.\n\n\
                      Without a terminal (or with TERM=dumb) it prints the table as plain lines, again and again. \
                      With --once it measures for one interval and prints the table once. Without root it asks \
                      `netnice daemon`, which shows what is the caller's, and of others how many there are.",
        after_help = "Examples:\n  \
                      sudo netnice top\n  \
                      sudo netnice top --interval 5 --sort sent\n  \
                      sudo netnice top --once --json | jq '.jobs[] | {name, rate_bits, why_text}'\n  \
                      netnice top                          # your own jobs, where netnice.socket is enabled\n\n\
                      Keys:\n  \
                      q quit, arrows move, s sort by the next column"
    )]
    Top(top::TopArgs),
    /// Offer what is in the background to Prometheus
    #[command(
        long_about = "Answers HTTP requests for /metrics, until it is ended: each job with its rate, its bytes, what \
                      else uses its path, and why it is as slow as it is. It looks when it is asked, and costs \
                      nothing otherwise. Let nobody reach it who must not know what runs here: it needs no \
                      password. Without root it asks `netnice daemon`, and offers the jobs of the caller. docs/top.md lists \
                      the metrics.",
        after_help = "Example:\n  sudo netnice metrics --listen 127.0.0.1:9464   # then: curl http://127.0.0.1:9464/metrics"
    )]
    Metrics(metrics::MetricsArgs),
    /// Let background packets wait in this host until their path has room
    #[command(
        long_about = "Shows where packets in the background wait in this host until the path has room, and what \
                      netnice knows of the path. `netnice run` and `netnice replicate` have them wait at the \
                      devices of the default routes, for as long as they run. With a DEVICE, packets wait there \
                      from now on, also those of what is attached, of containers and of virtual machines.\n\n\
                      netnice sees all that this host sends through the device, and measures the rate of the \
                      bottleneck, wherever that is. So the background has what is left of the line, and the rest \
                      of this host's traffic finds the line as if the background were not there. There is no rate \
                      to set.\n\n\
                      Packets in the background are those of TCP that are marked Lower Effort (RFC 8622): `netnice \
                      run` marks them, containers and virtual machines may. What other hosts send is not seen \
                      here. While it makes a queue, the background keeps a part of the rate: the longer the queue, \
                      the smaller the part. Downloads yield by smaller windows that this host \
                      tells their senders.\n\n\
                      What this command began stays until --off, or until the device goes away. The device gets a \
                      clsact qdisc, and four devices are made beside it (nnwait, nnback, nncut, nnsegs, with its \
                      number). The device's own qdisc and filters stay as they are. The kernel must have sch_fq.",
        after_help = "Examples:\n  \
                      sudo netnice hold                 # what holds now, and what was measured\n  \
                      sudo netnice hold eth1            # from now on, at a device without a default route too\n  \
                      sudo netnice hold --off eth1"
    )]
    Hold(hold::HoldArgs),
    /// Let users without root put what is theirs into the background
    #[command(
        long_about = "Lets users without root put what is theirs into the background, and see it: `netnice run`, `attach`, \
                      `detach`, `status`, `top` and others ask it where they lack the rights. The package has a unit for it:\n\n  \
                      sudo systemctl enable --now netnice.socket\n\n\
                      Who asks is known by the connection. A user may lower his own processes, and take out \
                      again what he put there himself. He may raise nothing: what root or another user \
                      lowered stays lowered. Each user may have 64 runs and 8 requests at a time.\n\n\
                      When it is restarted or killed, connections stay in the background, and the next \
                      one knows all runs again. docs/daemon.md has the protocol.",
        after_help = "Examples:\n  \
                      sudo netnice daemon                     # until Ctrl-C\n  \
                      netnice run -- rsync -a ~/ backup:home  # meanwhile, without root"
    )]
    Daemon(daemon::DaemonArgs),
    /// Put into the background what a container runtime starts
    #[command(
        after_help = "Example, with the file that the package puts into /usr/share/containers/oci/hooks.d:\n  \
                      sudo podman run --annotation netnice.class=idle IMAGE"
    )]
    Hook(hook::HookArgs),
    /// Change the share of a run in its group, while it runs
    #[command(
        long_about = "Changes the share of a run in its group, for its connections now and those that it \
                      opens later. Name the run by its id (netnice status --group NAME), or by the \
                      process id of any process in it. Without root it asks `netnice daemon`.",
        after_help = "Example:\n  sudo netnice share backups $(pidof -s rsync) 4"
    )]
    Share(share::ShareArgs),
    /// Measure the bandwidth that others leave of the path to a host
    #[command(
        long_about = "Measures the available bandwidth of the path to a host: what others leave of its bottleneck. \
                      It sends zeros to HOST over TCP for some seconds, and reads the answer from the \
                      spacing of these packets. It sends nothing else. HOST must accept data: `netnice \
                      probe --listen`, a service that discards it (RFC 863, port 9), or any other that \
                      keeps reading.\n\n\
                      The answer is in Mbit/s of payload, with its confidence interval. On a terminal one \
                      line shows the latest measurement; otherwise each measurement is a line. With --json \
                      each is an object, and the last object is {\"summary\": ...}.\n\n\
                      A measurement needs 16 packets in flight: a path that carries fewer in a round trip \
                      gives no result. The exit status is 0 if there was a result, otherwise 1.",
        after_help = "Examples:\n  \
                      netnice probe --listen 0.0.0.0:5009          # at the other end; a port below 1024 takes root\n  \
                      sudo netnice probe backup.example.org:5009   # here\n  \
                      sudo netnice probe --seconds 60 --algorithm imtcp_bg backup:5009\n  \
                      sudo netnice probe --json [2001:db8::1]:5009 | jq -s last.summary.median_mbit"
    )]
    Probe(probe::ProbeArgs),
    /// List the algorithms, or one with its parameters
    #[command(
        long_about = "Lists the algorithms, or explains one: its parameters, each with its default, its range and the \
                      place in the paper, and what its connections show in `netnice status`.",
        after_help = "Examples:\n  \
                      netnice algorithms\n  \
                      netnice algorithms ebb    # what --set takes"
    )]
    Algorithms(algorithms::AlgorithmsArgs),
    /// Write the man pages and the completions
    #[command(hide = true, after_help = "Example:\n  netnice manual /usr")]
    Manual(ManualArgs),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(command: &mut clap::Command) {
        let help = command.render_long_help().to_string();
        let name = command.get_name();
        let said = help.split_once("\n\n").map(|(usage, said)| (&usage[..6], &said[..7]));
        assert_eq!(said, Some(("Usage:", "Example")), "{name}: {help}");
        assert!(help.contains("exit status") || command.has_subcommands(), "{name}: {help}");
        command.get_subcommands_mut().filter(|c| c.get_name() != "help").for_each(check);
    }

    #[test]
    fn each_help_begins_with_an_example_and_says_the_exit_status() {
        let mut program = Cli::whole();
        program.build();
        check(&mut program);
    }
}
