// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a run did, and what of it was not in the background, in words.

use std::time::Duration;

use netnice_manager::carrier::Carrier;
use netnice_manager::hold::{instead, Held, Hold};
use netnice_manager::peer::Only;
use netnice_manager::report::{NotGoverned, Report};

use super::hold::{coming, leaving};
use crate::units::{count, rate, size, visible};

/// One line with all that was not in the background, and what to do; nothing if all is well.
pub fn not_governed(report: &Report) -> Option<String> {
    let all: Vec<_> = report.not_governed.iter().map(|what| sentence(what, report)).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn sentence(what: &NotGoverned, report: &Report) -> String {
    let control = &report.control;
    match what {
        NotGoverned::NoConnection => "no TCP connection was made here; if another process sends \
             for the command (a daemon, an ssh master, a container engine), start that one under \
             netnice run, or: netnice attach PID"
            .into(),
        NotGoverned::OnlySpared { connections } => format!(
            "no TCP connection ({connections} in all) was one that --to, --except and --mark mean; see which \
             there are: ss -tnp"
        ),
        NotGoverned::OnlyLocal { connections } => format!(
            "all TCP connections ({connections}) stayed on this host; if a proxy or a daemon sends \
             on from there, start that one under netnice run, or: netnice attach PID"
        ),
        NotGoverned::Listeners { listeners } => format!(
            "what {} accepted that was open before the run is not in the background, since --to, --except and \
             --mark choose when a run opens a socket itself; have the command open its port, or, with --to \
             alone, name all of the port: --to 0.0.0.0/0:PORT --to '[::/0]:PORT'",
            count(*listeners, "listening socket", "listening sockets")
        ),
        NotGoverned::Left { processes } => format!(
            "{} left the run: something moved it to another cgroup (a login session, a container, \
             systemd-run), and what it sent since was not in the background, unless that one is \
             attached; call netnice run behind that, as in: su -c 'netnice run -- COMMAND'",
            count(*processes, "process", "processes")
        ),
        NotGoverned::Locked { connections } => format!(
            "{} not in the background: their route fixes the congestion control; find \"congctl lock\" \
             in: ip route show table all",
            were(*connections)
        ),
        NotGoverned::Missing { connections } => format!(
            "{} not in the background: {control} was not registered any more; start the command again",
            were(*connections)
        ),
        NotGoverned::Refused { connections } => format!(
            "{} not in the background: the kernel refused {control} to them; see: dmesg",
            were(*connections)
        ),
        NotGoverned::Changed { connections } => format!(
            "{} not in the background: something gave them another congestion control than {control}, \
             as an eBPF agent may; find it: bpftool cgroup tree",
            were(*connections)
        ),
        NotGoverned::Udp { bytes } => format!(
            "{} went out over UDP and did not wait: UDP waits only beside TCP of the background, which shows \
             the rate; have the program use TCP (for HTTP/3: HTTP/2)",
            size(*bytes as f64)
        ),
        NotGoverned::Received { bytes } => format!(
            "it received {}, which did not yield: no device held here (run --verbose says why), or what came is of a \
             kind that cannot (MPTCP, fragments, answers that come in elsewhere); run netnice where it is sent",
            size(*bytes as f64)
        ),
        NotGoverned::LeftAlone { bytes, device, faster_bits: Some(bits) } => format!(
            "it received {}, which did not yield: the path to {device} carries {}, and such fast ones are left \
             alone; to have downloads yield there, too: netnice hold {device} --fastest {}",
            size(*bytes as f64),
            rate(*bits as f64),
            10_u64.pow((*bits / 1_000_000).max(1).ilog10() + 1)
        ),
        NotGoverned::LeftAlone { bytes, device, faster_bits: None } => format!(
            "it received {}, which did not yield: what waits at {device} did not come out again, as if its \
             devices were taken away; see: ip link; netnice hold",
            size(*bytes as f64)
        ),
        NotGoverned::UdpReceived { bytes } if report.udp_downloads => format!(
            "{} came over UDP, which did not yield although it was to: no device that knows its sockets held (run \
             --verbose says where not); or have the program use TCP (for HTTP/3: HTTP/2)",
            size(*bytes as f64)
        ),
        NotGoverned::UdpDropped { bytes, dropped } => format!(
            "of {} that came over UDP, {} were more than the line had room for, and dropped: their server hardly \
             slows down for that, as with BBR, so others wait longer; have the program use TCP (for HTTP/3: HTTP/2)",
            size(*bytes as f64),
            size(*dropped as f64)
        ),
        NotGoverned::UdpReceived { bytes } => format!(
            "{} came over UDP, which did not yield: with --udp-downloads it does, where a device holds (run \
             --verbose says where not); or have the program use TCP (for HTTP/3: HTTP/2)",
            size(*bytes as f64)
        ),
    }
}

fn were(connections: u64) -> String {
    count(connections, "connection was", "connections were")
}

/// Whose connection was in the background too; `by`: through another run.
pub fn carried(carrier: &Carrier, by: Option<u64>) -> String {
    let Carrier { pid, name, remote, .. } = carrier;
    let whose = by.map_or("was in the background until now".into(), |run| {
        format!("is in the background with the settings of run {run}, until that ends")
    });
    let name = visible(name);
    format!("the connection of {name}[{pid}] to {remote} carried the command's output, and {whose}")
}

/// Where packets waited in this host with what is known of the paths there, and why not elsewhere; a
/// line each. The same of downloads; only of one direction, if only one yields. Without root nothing of the
/// paths is known: then whether anything waited is left open.
pub fn waited(held: &Held, holds: Option<&[Hold]>, report: &Report) -> Vec<String> {
    let (only, instead) = (report.only, instead(&report.control));
    let did_not = |why| format!("packets did not wait in this host: {why}{instead}");
    let not = held.why_not.iter().map(did_not);
    let Some(holds) = holds else {
        let what = match only {
            Some(Only::Down) => "downloads yielded",
            _ => "packets waited in this host",
        };
        let at = |device| format!("{what}, or would have, at {device}");
        return held.devices.iter().map(at).chain(not).collect();
    };
    let of = |device: &&String| holds.iter().find(|hold| hold.device == **device);
    let at = |device| match of(&device).map(leaving) {
        Some(lines) if !lines.is_empty() => {
            lines.iter().map(|line| format!("packets waited in this host at {line}")).collect()
        }
        _ => vec![format!("packets would wait in this host at {device}; none did")],
    };
    let waited = held.devices.iter().flat_map(at);
    let waited = waited.filter(|_| only != Some(Only::Down));
    let came = held.devices.iter().filter_map(|device| of(&device)).flat_map(coming);
    let came = came.map(|line| format!("downloads yielded at {line}"));
    let came = came.filter(|_| only != Some(Only::Up));
    waited.chain(came).chain(not).collect()
}

/// The summary of a run that took so long.
pub fn summary(report: &Report, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    let rate = |bytes: u64| rate(bytes as f64 * 8.0 / seconds.max(1e-9));
    let yielding = report.yielding_us as f64 * 1e-6 / report.connections.max(1) as f64;
    let Report {
        connections, bytes_sent, bytes_unsent, bytes_received, retransmits, spared, ..
    } = report;
    let mut text = format!(
        "{bytes_sent} bytes in {seconds:.1} s ({}) over {connections} connections, each yielding \
         for {yielding:.1} s on average; {retransmits} packets retransmitted",
        rate(*bytes_sent)
    );
    if *spared > 0 {
        text += &format!(
            "; {} not meant (--to, --except, --mark)",
            count(*spared, "connection", "connections")
        );
    }
    if *bytes_received > 0 {
        text += &format!("; {bytes_received} bytes received ({})", rate(*bytes_received));
    }
    if *bytes_unsent > 0 {
        text += &format!(
            "; the kernel has {bytes_unsent} bytes more to send, in the background, over {}",
            count(report.open, "open connection", "open connections")
        );
    } else if report.open > 0 {
        text += &format!("; {} still open", count(report.open, "connection is", "connections are"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<NotGoverned> {
        vec![
            NotGoverned::NoConnection,
            NotGoverned::OnlySpared { connections: 4 },
            NotGoverned::OnlyLocal { connections: 3 },
            NotGoverned::Listeners { listeners: 1 },
            NotGoverned::Left { processes: 1 },
            NotGoverned::Locked { connections: 1 },
            NotGoverned::Missing { connections: 2 },
            NotGoverned::Refused { connections: 2 },
            NotGoverned::Changed { connections: 2 },
            NotGoverned::Udp { bytes: 5_200_000 },
            NotGoverned::Received { bytes: 512_000_000 },
            NotGoverned::UdpReceived { bytes: 256_000_000 },
            NotGoverned::UdpDropped { bytes: 256_000_000, dropped: 90_000_000 },
            NotGoverned::LeftAlone {
                bytes: 512_000_000,
                device: "eth0".into(),
                faster_bits: Some(312_000_000),
            },
            NotGoverned::LeftAlone { bytes: 512_000_000, device: "eth0".into(), faster_bits: None },
        ]
    }

    #[test]
    fn all_that_was_not_governed_is_said_in_one_line_with_what_to_do() {
        let report = Report { not_governed: all(), ..Report::default() };
        let said = not_governed(&report).expect("there is something");
        assert_eq!(said.lines().count(), 1);
        for part in ["3) stayed", "1 process left", "1 connection was", "5.2 MB went", "512 MB,"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        // each has a step of its own, which is not another's
        let steps: std::collections::BTreeSet<_> =
            all().iter().map(|what| sentence(what, &Report::default())).collect();
        assert_eq!(steps.len(), all().len());
    }

    #[test]
    fn what_was_not_meant_is_told_with_each_option_that_may_be_why() {
        let spared = NotGoverned::OnlySpared { connections: 4 };
        for what in [spared, NotGoverned::Listeners { listeners: 1 }] {
            let said = sentence(&what, &Report::default());
            assert!(said.contains("--to, --except and --mark "), "{said}");
        }
        let said = summary(&Report { spared: 1, ..Report::default() }, Duration::from_secs(1));
        assert!(said.contains("; 1 connection not meant (--to, --except, --mark)"), "{said}");
    }

    #[test]
    fn who_cannot_read_the_holds_does_not_say_that_nothing_waited() {
        let held = Held { devices: vec!["eth0".into()], ..Held::nowhere("no room") };
        let up = Report::default();
        let waits = "packets waited in this host, or would have, at eth0";
        assert_eq!(waited(&held, None, &up)[0], waits);
        let down = Report { only: Some(Only::Down), ..Report::default() };
        assert_eq!(waited(&held, None, &down)[0], "downloads yielded, or would have, at eth0");
        let nothing = "packets would wait in this host at eth0; none did";
        assert_eq!(waited(&held, Some(&[]), &up)[0], nothing);
    }

    #[test]
    fn what_does_not_wait_is_said_to_yield_by_its_window_only_under_the_default_control() {
        let said = |control: &str| {
            let report = Report { control: control.into(), ..Report::default() };
            waited(&Held::nowhere("no room"), None, &report)
        };
        let not = "packets did not wait in this host: no room";
        assert_eq!(said("nn_ebb"), [format!("{not}; netnice run yields by its window, as ever")]);
        assert_eq!(said("nn_reno"), [not]);
        assert_eq!(said(""), [not], "downloads alone");
    }

    #[test]
    fn where_all_is_well_nothing_is_said() {
        assert_eq!(not_governed(&Report::default()), None);
    }

    #[test]
    fn a_summary_tells_what_was_received_and_what_is_still_to_be_sent() {
        let report = Report {
            connections: 2,
            open: 1,
            bytes_sent: 250_000,
            bytes_unsent: 7000,
            bytes_received: 5_000_000,
            ..Report::default()
        };
        let said = summary(&report, Duration::from_secs(4));
        // 250 kB and 5 MB in 4 s: 0.5 and 10 Mbit/s
        assert!(
            said.starts_with("250000 bytes in 4.0 s (500.00 kbit/s) over 2 connections"),
            "{said}"
        );
        assert!(said.contains("5000000 bytes received (10.00 Mbit/s)"), "{said}");
        assert!(
            said.ends_with("7000 bytes more to send, in the background, over 1 open connection")
        );
    }
}
