// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Why a job is as slow as it is: what its figures of the last seconds show, and no more.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::peer::Only;
use crate::report::Report;

/// From this share of the time on, something is what limits a job.
const MOSTLY: f64 = 0.5;
/// A job that has something to send for a smaller part of the time is limited by its program.
const BUSY: f64 = 0.75;
/// A window that gave way for a smaller part of the time does not make a job slow.
const YIELDS: f64 = 0.2;
/// Less than this part of all that leaves is no traffic to yield to: questions for names, ACKs.
pub(super) const LITTLE: f64 = 0.02;
/// The same, where all is what leaves through a device: it is counted a moment later than TCP's part.
const LITTLE_AT_DEVICE: f64 = 0.05;
/// A path that carries this part of its rate is full. What its queue lets pass comes in bursts.
pub(super) const FULL: f64 = 0.8;
/// Next to nothing, bits/s: the window of the gentlest algorithm, and a hold, let a packet or two pass in
/// a second.
const NOTHING: f64 = 2.0 * 1514.0 * 8.0;
/// Others have so many times what a starving job has, at least ...
const OTHERS_HAVE: f64 = 10.0;
/// ... or so many, where that is more than next to nothing.
const OTHERS_HAVE_ALL: f64 = 50.0;
/// Next to nothing for so long is starving, seconds.
pub(super) const STARVES: f64 = 60.0;
/// Who has more never starves, bits/s: fifty times that is beyond the paths where it matters.
const FED: f64 = 1e6;

/// What is known of a job in the last seconds; what is None is not known.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// How long they were.
    pub seconds: f64,
    /// Payload that was acknowledged in them, bytes.
    pub sent: u64,
    /// Given to the kernel and not acknowledged at their end, bytes.
    pub unsent: u64,
    /// What it sends is not in the background, only what it receives.
    pub only_down: bool,
    /// Open connections.
    pub open: u64,
    /// Of these, connections whose TCP sends again what was lost.
    pub recovers: u64,
    /// Parts of the time, on average of the connections.
    pub shares: Option<Shares>,
    /// The part of the time for which its windows gave way, on average of the connections.
    pub yields: f64,
    /// What else left this host on the same way.
    pub others: Option<Others>,
    /// The path at which its packets wait in this host; none: they do not.
    pub path: Option<Path>,
    /// All its connections are still in slow start.
    pub slow_start: bool,
    /// What its windows allow in flight, packets, and the RTT, microseconds.
    pub window: Option<(f64, u32)>,
}

/// Parts of the time, as TCP counts it.
#[derive(Clone, Copy, Debug)]
pub struct Shares {
    /// It had something to send, or to be acknowledged.
    pub busy: f64,
    /// The receiver's window let it send nothing more.
    pub receiver: f64,
    /// Its send buffer had room for no more.
    pub buffer: f64,
}

/// What else leaves this host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Others {
    /// Bits/s with headers.
    pub bits: f64,
    /// The device that they leave through.
    pub device: String,
    /// Counted on the path itself, since packets are held there; else at the device.
    pub on_path: bool,
}

/// A path at which packets wait in this host.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// Its rate as it was measured, bits/s.
    pub rate_bits: Option<f64>,
    /// What all of the background sent there, bits/s.
    pub background_bits: f64,
    /// What this host has of the rate beside other hosts, 0 to 1; 1 without them.
    pub part: f64,
    /// Packets wait now.
    pub waits: bool,
}

/// Why a job is as slow as it is. Rates are in bits/s.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Why {
    /// It was only seen once.
    NotYetKnown,
    Ended,
    NoConnection,
    /// What it sends does not yield.
    OnlyDownloads,
    /// Next to nothing, for so long, though it has something to send.
    Starving {
        seconds: f64,
        others_bits: Option<f64>,
    },
    /// There is nothing to send.
    Idle,
    /// There is something to send for this part of the time.
    Program {
        busy: f64,
    },
    RecoveringLoss {
        connections: u64,
        of: u64,
    },
    /// For this part of the time.
    ReceiverWindow {
        share: f64,
    },
    /// For this part of the time.
    SendBuffer {
        share: f64,
    },
    /// It gives way, to so much of this host's; `device`: counted there, not on the path itself.
    YieldingToHost {
        bits: f64,
        device: Option<String>,
    },
    /// It gives way to other hosts: this host has this part of the path's rate, 0 to 1.
    YieldingToHosts {
        part: f64,
        path_bits: f64,
    },
    /// It gives way to a queue, and this host sends nothing else through the device, if that is known.
    YieldingToQueue {
        device: Option<String>,
    },
    PathRate {
        bits: f64,
    },
    /// The path's rate is being measured.
    Measuring,
    SlowStart,
    /// So many packets in flight, in each RTT.
    Window {
        packets: f64,
        rtt_us: u32,
    },
    Unknown,
}

impl Why {
    /// What the figures show.
    pub fn of(facts: &Facts) -> Why {
        let shares = facts.shares;
        let lasts = |of: fn(Shares) -> f64| shares.map(of).filter(|share| *share >= MOSTLY);
        if facts.open == 0 {
            return Why::NoConnection;
        }
        if facts.only_down {
            return Why::OnlyDownloads;
        }
        if facts.sent == 0 && facts.unsent == 0 {
            return Why::Idle;
        }
        if let Some(share) = lasts(|shares| shares.receiver) {
            return Why::ReceiverWindow { share };
        }
        if let Some(share) = lasts(|shares| shares.buffer) {
            return Why::SendBuffer { share };
        }
        if let Some(Shares { busy, .. }) = shares.filter(|shares| shares.busy < BUSY) {
            return Why::Program { busy };
        }
        let held = facts.path.and_then(|path| Why::of_held(facts, &path));
        let why = held.unwrap_or_else(|| Why::of_window(facts));
        match why.yields() || facts.recovers == 0 {
            true => why, // beside others it loses packets too
            false => Why::RecoveringLoss { connections: facts.recovers, of: facts.open },
        }
    }

    /// Where its packets wait in this host.
    fn of_held(facts: &Facts, path: &Path) -> Option<Why> {
        let Some(rate) = path.rate_bits else { return Some(Why::Measuring) };
        let others = facts.others.as_ref().map_or(0.0, |others| others.bits);
        if !path.waits && path.background_bits + others < FULL * rate * path.part {
            return None;
        }
        let elsewhere = (1.0 - path.part) * rate;
        Some(match others.max(elsewhere) < LITTLE * rate {
            true => Why::PathRate { bits: rate },
            false if elsewhere > others => {
                Why::YieldingToHosts { part: path.part, path_bits: rate }
            }
            false => Why::YieldingToHost { bits: others, device: None },
        })
    }

    /// Where they do not.
    fn of_window(facts: &Facts) -> Why {
        let all = |others: &Others| others.bits + facts.rate();
        match (&facts.others, facts.window) {
            (Some(others), _)
                if facts.yields >= YIELDS && others.bits >= LITTLE_AT_DEVICE * all(others) =>
            {
                Why::YieldingToHost { bits: others.bits, device: Some(others.device.clone()) }
            }
            (others, _) if facts.yields >= YIELDS => {
                Why::YieldingToQueue { device: others.as_ref().map(|o| o.device.clone()) }
            }
            _ if facts.slow_start => Why::SlowStart,
            (_, Some((packets, rtt_us))) if rtt_us > 0 => Why::Window { packets, rtt_us },
            _ => Why::Unknown,
        }
    }

    fn yields(&self) -> bool {
        matches!(
            self,
            Why::YieldingToHost { .. } | Why::YieldingToHosts { .. } | Why::YieldingToQueue { .. }
        )
    }

    /// The word by which scripts and metrics know it.
    pub fn name(&self) -> &'static str {
        match self {
            Why::NotYetKnown => "not_yet_known",
            Why::Ended => "ended",
            Why::NoConnection => "no_connection",
            Why::OnlyDownloads => "only_downloads",
            Why::Starving { .. } => "starving",
            Why::Idle => "idle",
            Why::Program { .. } => "program",
            Why::RecoveringLoss { .. } => "recovering_loss",
            Why::ReceiverWindow { .. } => "receiver_window",
            Why::SendBuffer { .. } => "send_buffer",
            Why::YieldingToHost { .. } => "yielding_to_host",
            Why::YieldingToHosts { .. } => "yielding_to_hosts",
            Why::YieldingToQueue { .. } => "yielding_to_queue",
            Why::PathRate { .. } => "path_rate",
            Why::Measuring => "measuring",
            Why::SlowStart => "slow_start",
            Why::Window { .. } => "window",
            Why::Unknown => "unknown",
        }
    }
}

impl Facts {
    /// What two reports of a run tell, so many seconds apart.
    pub fn of_reports(before: &Report, now: &Report, seconds: f64) -> Facts {
        let yielded = now.yielding_us.saturating_sub(before.yielding_us) as f64 * 1e-6;
        Facts {
            seconds,
            sent: now.bytes_sent.saturating_sub(before.bytes_sent),
            unsent: now.bytes_unsent,
            open: now.open,
            only_down: now.only == Some(Only::Down),
            yields: (yielded / seconds / now.open.max(1) as f64).min(1.0),
            ..Facts::default()
        }
    }

    /// It has something to send, and so little is sent that it may starve.
    pub fn is_slow(&self) -> bool {
        self.unsent > 0 && self.rate() <= FED && !self.only_down
    }

    /// What it sent, bits/s of payload.
    pub fn rate(&self) -> f64 {
        self.sent as f64 * 8.0 / self.seconds.max(1e-9)
    }

    /// It has something to send, and gets next to nothing, while others have much more; where that is
    /// not known, while it gives way.
    pub fn starves(&self) -> bool {
        let rate = self.rate();
        let nothing = match &self.others {
            Some(others) if rate > NOTHING => others.bits >= OTHERS_HAVE_ALL * rate,
            Some(others) => others.bits >= OTHERS_HAVE * rate.max(1.0),
            None => rate <= NOTHING && self.yields >= MOSTLY,
        };
        self.is_slow() && nothing
    }
}

/// A rate in a sentence: 8.0 Mbit/s.
pub(super) fn words(bits: f64) -> String {
    match bits {
        b if b >= 999.5e6 => format!("{:.1} Gbit/s", b / 1e9),
        b if b >= 999.5e3 => format!("{:.1} Mbit/s", b / 1e6),
        b => format!("{:.0} kbit/s", b / 1e3),
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: &f64| 100.0 * share;
        match self {
            Why::NotYetKnown => write!(f, "not known yet"),
            Why::Ended => write!(f, "it has ended"),
            Why::NoConnection => write!(f, "it has no open connection"),
            Why::OnlyDownloads => write!(f, "only its downloads yield (--only down)"),
            Why::Starving { seconds, others_bits } => {
                write!(f, "starving: next to nothing for {seconds:.0} s")?;
                if let Some(bits) = others_bits {
                    write!(f, " beside {}", words(*bits))?;
                }
                write!(f, "; next step: --class fair")
            }
            Why::Idle => write!(f, "limited by the program: it sends nothing"),
            Why::Program { busy } => write!(
                f,
                "limited by the program: it has something to send {:.0} % of the time",
                percent(busy)
            ),
            Why::RecoveringLoss { of: 1, .. } => write!(f, "recovering a loss"),
            Why::RecoveringLoss { connections, of } => {
                write!(f, "recovering a loss: {connections} of {of} connections")
            }
            Why::ReceiverWindow { share } => {
                write!(f, "the receiver's window, {:.0} % of the time", percent(share))
            }
            Why::SendBuffer { share } => {
                write!(f, "the program's send buffer, {:.0} % of the time", percent(share))
            }
            Why::YieldingToHost { bits, device: None } => {
                write!(f, "yielding to {} of this host's other traffic", words(*bits))
            }
            Why::YieldingToHost { bits, device: Some(device) } => write!(
                f,
                "yielding; this host's other traffic is {} through {device}",
                words(*bits)
            ),
            Why::YieldingToHosts { part, path_bits } => write!(
                f,
                "yielding to other hosts: this host has {:.0} % of the path's {}",
                percent(part),
                words(*path_bits)
            ),
            Why::YieldingToQueue { device: None } => write!(f, "yielding to a queue"),
            Why::YieldingToQueue { device: Some(device) } => {
                write!(f, "yielding to a queue; this host sends nothing else through {device}")
            }
            Why::PathRate { bits } => write!(f, "the path's rate, {}", words(*bits)),
            Why::Measuring => write!(f, "the path's rate is being measured"),
            Why::SlowStart => write!(f, "it has just begun: its window still grows (slow start)"),
            Why::Window { packets, rtt_us } => write!(
                f,
                "its window: {packets:.1} packets in a round trip of {:.1} ms",
                f64::from(*rtt_us) / 1000.0
            ),
            Why::Unknown => write!(f, "not known"),
        }
    }
}

#[cfg(test)]
mod tests;
