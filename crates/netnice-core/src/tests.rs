// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The rules of the algorithms, one by one, as any host sees them; and what every algorithm of
//! the list must keep to. The host that they share is here.

mod any;
mod bounds;
mod class;
mod cubic;
mod down;
mod ebb;
mod errors;
mod every_algorithm;
mod fairbat;
mod fixed;
mod imtcp;
mod ledbat;
mod ledbatpp;
mod line;
mod lp;
mod mpat;
mod nice;
mod obey;
mod path;
mod proteus_s;
mod reno;
mod rtt;
mod shown;
mod tfrc;
mod vegas;

use super::*;

const CWND_MAX: u64 = ONE << 20;
const GAP_MAX: u64 = sys::NN_GAP_MAX as u64;
const SLOW_START: u32 = sys::NN_CTL_SLOW_START;
const YIELDING: u32 = sys::NN_CTL_YIELDING;
const HOLD: u32 = sys::NN_ACK_HOLD;
const APP_LIMITED: u32 = sys::NN_ACK_APP_LIMITED;
/// A round trip over the empty path, us.
const BASE: u32 = 50_000;
/// A millisecond, us.
const MS: u32 = 1000;
/// Payload of a packet, bytes: 10^4 bits.
const MSS: u32 = 1250;

/// Whole packets as a window.
fn packets(n: u64) -> u64 {
    n * ONE
}

fn algorithm(name: &str) -> Algorithm {
    Algorithm::by_name(name).expect("an algorithm of the list")
}

fn config(name: &str, settings: &[&str]) -> Config {
    let mut config = Config::new(algorithm(name));
    for setting in settings {
        config.set(setting).expect("within the range");
    }
    config
}

/// What a flow shows under that name, in its unit.
fn shown(flow: &Flow, name: &str) -> sys::nn_value {
    let values = flow.show();
    values.iter().find(|v| v.shown.name() == name).expect("the algorithm shows that").raw
}

/// A host that counts packets as its sequence numbers, has more in flight than it needs to, and
/// sends two packets for each ACK.
#[derive(Clone, Debug)]
struct Host {
    flow: Flow,
    now: Ack,
    /// What was sent before this round started ends here.
    end: u32,
}

impl Host {
    fn new(config: &Config, initial_window: u32) -> Host {
        Host::numbered_from(0, config, initial_window)
    }

    fn numbered_from(first: u32, config: &Config, initial_window: u32) -> Host {
        let now = Ack {
            srtt_us: BASE,
            inflight: 100,
            una: first,
            nxt: first,
            mss: MSS,
            ..Default::default()
        };
        Host { flow: Flow::new(config, &now, initial_window), now, end: first }
    }

    fn start(name: &str, initial_window: u32) -> Host {
        Host::new(&config(name, &[]), initial_window)
    }

    fn cwnd(&self) -> u64 {
        self.flow.ctl().cwnd_q16
    }

    fn flags(&self) -> u32 {
        self.flow.ctl().flags
    }

    /// What the flow shows under that name: microseconds.
    fn shows(&self, name: &str) -> u32 {
        shown(&self.flow, name).value as u32
    }

    /// One ACK, for packets in the middle of a round.
    fn ack(&mut self, acked: u32, rtt_us: u32, flags: u32) -> u64 {
        self.now.nxt = self.now.nxt.wrapping_add(2);
        let ack = Ack { acked, rtt_us, flags, una: self.end, ..self.now };
        self.flow.ack(&ack).cwnd_q16
    }

    /// What one packet changes after four samples of a queue of `queue_us`, in 1/65536 packet.
    fn change(&mut self, queue_us: u32) -> i64 {
        for _ in 0..4 {
            self.ack(0, BASE + queue_us, HOLD);
        }
        let before = self.cwnd() as i64;
        self.ack(1, BASE + queue_us, 0) as i64 - before
    }

    /// RTTs of a full queue: the second is of a packet that was sent after the first was known.
    fn full(&mut self, rtt_us: u32) {
        for _ in 0..2 {
            self.ack(0, rtt_us, HOLD);
            self.now.now_us += u64::from(rtt_us);
        }
    }

    /// The last ACK of a round: what was sent after the round's start is acknowledged.
    fn last_ack(&mut self, acked: u32, rtt_us: u32, flags: u32) -> u64 {
        self.end = self.end.wrapping_add(1);
        self.ack(acked, rtt_us, flags);
        self.end = self.now.nxt;
        self.cwnd()
    }

    /// A round of `n` packets, each acknowledged on its own after `rtt_us`.
    fn round(&mut self, n: u32, rtt_us: u32) -> u64 {
        for _ in 1..n {
            self.ack(1, rtt_us, 0);
        }
        self.last_ack(1, rtt_us, 0)
    }

    fn event(&mut self, event: Event) -> u64 {
        self.end = self.now.nxt;
        self.flow.event(event, &self.now).cwnd_q16
    }

    /// The host left `left` packets of an unused window.
    fn idle(&mut self, left: u64) -> u64 {
        self.flow.cut(packets(left));
        self.event(Event::NN_IDLE)
    }

    /// Out of slow start: loses a packet with a window of twice `n` packets.
    fn avoiding(config: &Config, n: u32) -> Host {
        let mut host = Host::new(config, 2 * n);
        if host.cwnd() < packets(2 * u64::from(n)) {
            host.ack(2 * n - (host.cwnd() / ONE) as u32, BASE, 0);
        }
        assert_eq!(host.event(Event::NN_LOSS), packets(u64::from(n)));
        assert_eq!(host.flags() & SLOW_START, 0);
        host
    }
}
