// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Connections that stay open for the next fetch.

use super::World;
use crate::connection::Class;
use crate::network::Paths;

impl World<'_, '_> {
    /// Whether a connection stays open when all of its data is acknowledged.
    pub(super) fn keeps(&mut self, flow: u32) -> bool {
        let keep_alive = self.fetches.as_ref().is_some_and(|fetches| fetches.keep_alive);
        keep_alive && self.slots.get(flow).is_fetch()
    }

    /// The connection between two ends that became idle last; it is idle no more.
    pub(super) fn idle_between(&mut self, host: usize, paths: Paths) -> Option<u32> {
        let slots = &mut self.slots;
        let at = self.idle.iter().rposition(|flow| {
            let connection = slots.get(*flow);
            (connection.host, connection.paths) == (host, paths)
        })?;
        Some(self.idle.remove(at))
    }

    /// A client fetches once more over a connection.
    pub(super) fn fetch_again(&mut self, flow: u32, class: Class, bytes: u64) {
        let (now, mss) = (self.agenda.now, u64::from(self.mss));
        self.slots.get(flow).reuse(class, bytes, mss, now);
        if self.profile.handshake {
            self.request(flow);
            self.schedule(flow);
        } else {
            self.serve_again(flow);
        }
    }

    /// The server of an open connection has, maybe for the second time, the client's request.
    pub(super) fn serve_again(&mut self, flow: u32) {
        let (now, profile) = (self.agenda.now, self.profile);
        let connection = self.slots.get(flow);
        let packets = connection.packets;
        if let Some(sender) = &mut connection.sender {
            sender.extend(&profile, packets, now);
        }
        self.transmit(flow);
    }
}
