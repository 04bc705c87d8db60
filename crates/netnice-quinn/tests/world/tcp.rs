// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A connection of the simulator's TCP, both ends.

use netnice_core::Config;
use netnice_scenario as scenario;
use netnice_sim::packet::Ack;
use netnice_sim::tcp::{Marks, Peers, Profile, Receiver, Sender, Step};

use super::{config, Nanos, MS};

pub struct Tcp {
    /// Which fetch it is; none: a long transfer.
    pub fetch: Option<usize>,
    profile: Profile,
    sender: Sender,
    receiver: Receiver,
    packets: u32,
}

impl Tcp {
    /// A transfer without end.
    pub fn long(config: &Config, peers: &Peers, number: u64) -> Tcp {
        Tcp::new(None, config, peers, u32::MAX, number, 0)
    }

    /// A fetch of so many bytes, by Linux' own control.
    pub fn fetch(fetch: usize, bytes: f64, number: u64, now: Nanos) -> Tcp {
        let packets = (bytes / 1448.0).ceil().max(1.0) as u32;
        Tcp::new(Some(fetch), &config("cubic"), &Peers::default(), packets, number, now)
    }

    fn new(
        fetch: Option<usize>,
        config: &Config,
        peers: &Peers,
        packets: u32,
        number: u64,
        now: Nanos,
    ) -> Tcp {
        let profile = Profile::of(scenario::Profile::Linux);
        let first = scenario::pattern::mix(number) as u32;
        let control = (config, None, peers);
        let rtt = 50 * MS;
        let sender = Sender::new(&profile, control, packets, first, None, rtt, now);
        let mut receiver = Receiver::new(&profile);
        receiver.opened(&profile, rtt);
        Tcp { fetch, profile, sender, receiver, packets }
    }

    pub fn bytes(&self) -> u32 {
        self.profile.mss
    }

    pub fn received_all(&self) -> bool {
        self.receiver.next() == self.packets
    }

    pub fn receive(&mut self, seq: u32, sent: Nanos, cwr: bool, now: Nanos) -> Option<Ack> {
        let marks = Marks { ce: false, cwr };
        let last = self.fetch.is_some() && seq + 1 == self.packets;
        self.receiver.data(&self.profile, seq, sent, marks, last, now).ack
    }

    pub fn ack_at(&self) -> Nanos {
        self.receiver.ack_at
    }

    /// A delayed ACK, if it is due.
    pub fn late_ack(&mut self, now: Nanos) -> Option<Ack> {
        (self.receiver.ack_at <= now).then(|| self.receiver.acknowledge(false, now))
    }

    pub fn acknowledged(&mut self, ack: &Ack, now: Nanos) {
        self.sender.ack(&self.profile, ack, now, |_| ());
    }

    pub fn transmit(&mut self, now: Nanos) -> Vec<Step> {
        let mut out = Vec::new();
        if !self.sender.done() {
            self.sender.wake(&self.profile, now);
            self.sender.transmit(&self.profile, now, &mut out);
        }
        out
    }

    pub fn wake_at(&self) -> Nanos {
        if self.sender.done() {
            Nanos::MAX
        } else {
            self.sender.wake_at()
        }
    }
}
