// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a run did, and what of it was not in the background.

use std::thread;
use std::time::Duration;

use netnice_bpf::{plain, Flows, Record, Totals};
use serde::{Deserialize, Serialize};

use crate::carrier::Carrier;
use crate::hold::Held;
use crate::peer::Only;
use crate::Result;

mod came;

/// Lower Effort (RFC 8622), as a TOS octet.
const LE: u8 = 4;
/// Less UDP than this is no transfer: a question for the time, an attempt at HTTP/3.
const LITTLE_UDP: u64 = 10_000;
/// Less received than this is no download.
const LITTLE_RECEIVED: u64 = 1_000_000;
/// Who receives so many times what it sends, downloads.
const MOSTLY: u64 = 4;
/// Whose UDP is dropped by more than one part in so many does not slow down for losses.
const STUBBORN: u64 = 8;

/// States of a TCP connection (linux/tcp_states.h) in which it is not established yet or no more.
const NOT_ESTABLISHED: [u32; 4] = [2, 3, 7, 10]; // SYN_SENT, SYN_RECV, CLOSE, LISTEN

/// Connections come and go while they are read: so often they are read again, after such a pause.
const LOOKS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(1);
/// A difference that is still there at this look is none of these: programs that were attached anew
/// have not counted what is older than they are.
const STANDING: u32 = 4;

/// The totals that `read` reads of some runs, and the connections of all runs, of one moment: each is
/// in the totals, or among the open ones. At most [`LOOKS`] looks; of a run that opens and closes without
/// a pause the last one, in which some may be missing.
pub(crate) fn moment(read: impl Fn() -> Result<Vec<Totals>>) -> Result<(Vec<Totals>, Vec<Record>)> {
    let list = Flows::open()?;
    let flows = || Ok(list.as_ref().map_or(Ok(Vec::new()), Flows::of_runs)?);
    look(read, flows, || thread::sleep(PAUSE))
}

fn look(
    read: impl Fn() -> Result<Vec<Totals>>,
    list: impl Fn() -> Result<Vec<Record>>,
    pause: impl Fn(),
) -> Result<(Vec<Totals>, Vec<Record>)> {
    let mut before = read()?;
    let mut looks = 1;
    loop {
        let flows = list()?;
        let now = read()?;
        let still = before.iter().map(counted).eq(now.iter().map(counted));
        let whole = || now.iter().all(|t| is_whole(t, &flows));
        if looks == LOOKS || still && (looks >= STANDING || whole()) {
            return Ok((now, flows));
        }
        before = now;
        looks += 1;
        pause();
    }
}

/// What the totals have of connections.
fn counted(t: &Totals) -> ([u64; 6], [u64; 4]) {
    let figures =
        [t.connections, t.closed, t.bytes_acked, t.bytes_received, t.retransmits, t.yielding_us];
    (figures, t.plain)
}

/// Whether the connections that are established, and not counted as closed, are all there.
fn is_whole(totals: &Totals, flows: &[Record]) -> bool {
    let seen = open(totals.run, flows).filter(|r| r.flow.settings.adopted == 0).count();
    totals.connections == totals.closed + seen as u64
}

/// Of a run's connections those that are established, and not yet in its totals.
pub(crate) fn open(run: u64, flows: &[Record]) -> impl Iterator<Item = &Record> {
    let own = flows.iter().filter(move |r| r.flow.settings.run == run);
    own.filter(|r| r.flow.closed == 0 && !NOT_ESTABLISHED.contains(&r.tcp_state))
}

/// A run at one moment.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Report {
    /// The id of its cgroup.
    pub run: u64,
    /// The kernel's name of the control that its connections are to have; empty: they keep theirs.
    pub control: String,
    /// The direction that alone is in the background; none: both are.
    pub only: Option<Only>,
    /// What comes over UDP is to yield.
    #[serde(default)]
    pub udp_downloads: bool,
    /// Its packets are marked Lower Effort, by which a device knows that its downloads are to yield.
    #[serde(skip)]
    pub is_marked: bool,
    /// TCP connections, the closed ones too.
    pub connections: u64,
    /// Others, which it is not for.
    pub spared: u64,
    /// Of its connections, those still open.
    pub open: u64,
    /// Acknowledged by the receivers.
    pub bytes_sent: u64,
    /// Given to the kernel, and not acknowledged yet.
    pub bytes_unsent: u64,
    pub bytes_received: u64,
    /// In packets.
    pub retransmits: u64,
    /// Summed over connections.
    pub yielding_us: u64,
    pub not_governed: Vec<NotGoverned>,
    /// The connection of another process that carries the command's output, and is in it too.
    pub carrier: Option<Carrier>,
    /// The run that has that connection, if it is another one.
    pub carried_by: Option<u64>,
    /// Where its packets waited, if they were to.
    pub held: Option<Held>,
}

/// Something of a run that was not in the background, and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum NotGoverned {
    /// Nothing to govern.
    NoConnection,
    /// It is for none of all connections.
    OnlySpared { connections: u64 },
    /// All connections are to this host itself.
    OnlyLocal { connections: u64 },
    /// Sockets that are older than the run: whom they will accept was not known before, or they lack the mark.
    Listeners { listeners: u64 },
    /// Processes moved to a cgroup of no run.
    Left { processes: u64 },
    /// Connections whose route has a congestion control that nobody may change.
    Locked { connections: u64 },
    /// Connections that began when the run's control was not registered any more.
    Missing { connections: u64 },
    /// Connections to which the kernel refused the run's control otherwise.
    Refused { connections: u64 },
    /// Connections that were given another control after their start.
    Changed { connections: u64 },
    /// Sent to other hosts without TCP, but for DNS.
    Udp { bytes: u64 },
    /// Mostly received over TCP, where no device holds: the other end sends.
    Received { bytes: u64 },
    /// The same where this device holds, but leaves the path alone: it carries so many bits/s, more than is
    /// asked for; none: nothing came out of the waiting devices.
    LeftAlone { bytes: u64, device: String, faster_bits: Option<u64> },
    /// Mostly received without TCP, from other hosts.
    UdpReceived { bytes: u64 },
    /// It yields, and its senders hardly slow down: so much of it, dropped included, was more than the line carries.
    UdpDropped { bytes: u64, dropped: u64 },
}

impl Report {
    /// Of the run with these totals; `flows` are the connections that the kernel knows. `adopted`:
    /// it has had sockets that are older than itself, if `flows` show none any more.
    pub(crate) fn of(totals: &Totals, control: &str, flows: &[Record], adopted: bool) -> Report {
        let mut plain = totals.plain;
        let mut report = Report {
            run: totals.run,
            control: control.into(),
            connections: totals.connections,
            spared: totals.spared,
            bytes_sent: totals.bytes_acked,
            bytes_received: totals.bytes_received,
            retransmits: totals.retransmits,
            yielding_us: totals.yielding_us,
            ..Report::default()
        };
        let run = totals.run;
        let own = || flows.iter().filter(move |r| r.flow.settings.run == run);
        for open in open(run, flows) {
            report.open += 1;
            report.connections += u64::from(open.flow.settings.adopted);
            report.bytes_sent += open.bytes_acked;
            report.bytes_unsent += u64::from(open.bytes_unsent);
            report.bytes_received += open.bytes_received;
            report.retransmits += u64::from(open.retransmits);
            report.yielding_us += open.flow.yielding_us;
            if !control.is_empty() && !open.has(control) {
                plain[open.plain as usize] += 1;
            }
        }
        report.not_governed = report.not_governed(totals, &plain);
        if adopted || own().any(|r| r.flow.settings.adopted != 0) {
            report.not_governed.retain(|what| *what != NotGoverned::NoConnection);
        }
        report
    }

    /// Of a run with this direction alone: what comes or goes the other way is no matter of it. `tos` is that of
    /// its packets.
    #[must_use]
    pub(crate) fn asked(mut self, only: Option<Only>, tos: u8, udp_downloads: bool) -> Report {
        self.only = only;
        self.udp_downloads = udp_downloads;
        self.is_marked = tos == LE || only == Some(Only::Down);
        self.not_governed.retain(|what| {
            !matches!(
                (only, what),
                (
                    Some(Only::Up),
                    NotGoverned::Received { .. }
                        | NotGoverned::LeftAlone { .. }
                        | NotGoverned::UdpReceived { .. }
                ) | (Some(Only::Down), NotGoverned::Udp { .. })
            )
        });
        self
    }

    /// With so many listeners that it left alone.
    pub(crate) fn with_listeners(mut self, listeners: u64) -> Report {
        if listeners > 0 {
            self.not_governed.retain(|what| *what != NotGoverned::NoConnection);
            self.not_governed.push(NotGoverned::Listeners { listeners });
        }
        self
    }

    fn not_governed(&self, totals: &Totals, plain: &[u64]) -> Vec<NotGoverned> {
        use NotGoverned::{
            Changed, Left, Locked, Missing, NoConnection, OnlyLocal, OnlySpared, Received, Refused,
            Udp, UdpDropped, UdpReceived,
        };
        let connections = self.connections;
        let plain = |why: u32| plain[why as usize];
        let elsewhere = totals.left + totals.inner > 0; // what sends is there
        let mostly = |received, sent| received >= LITTLE_RECEIVED && received > MOSTLY * sent;
        let udp_sent = totals.udp_bytes + totals.udp_held;
        // what goes out with a download are its ACKs
        let udp_downloads = mostly(totals.udp_received + totals.udp_pulled, udp_sent);
        let udp_received = udp_downloads && totals.udp_received >= LITTLE_RECEIVED;
        let udp_yields = totals.udp_pulled + totals.udp_dropped;
        let udp_dropped =
            udp_yields >= LITTLE_RECEIVED && totals.udp_dropped > udp_yields / STUBBORN;
        let udp = totals.udp_bytes >= LITTLE_UDP && !udp_downloads;
        let none = connections == 0 && !elsewhere && !udp && !udp_downloads && totals.udp_held == 0;
        let downloads = mostly(self.bytes_received, self.bytes_sent + self.bytes_unsent);
        let local = connections > 0 && totals.local == connections;
        let all = [
            (none && self.spared == 0, NoConnection),
            (none && self.spared > 0, OnlySpared { connections: self.spared }),
            (local && !elsewhere && !udp && !udp_downloads, OnlyLocal { connections }),
            (totals.left > 0, Left { processes: totals.left }),
            (plain(plain::LOCKED) > 0, Locked { connections: plain(plain::LOCKED) }),
            (plain(plain::MISSING) > 0, Missing { connections: plain(plain::MISSING) }),
            (plain(plain::REFUSED) > 0, Refused { connections: plain(plain::REFUSED) }),
            (plain(plain::CHANGED) > 0, Changed { connections: plain(plain::CHANGED) }),
            (udp, Udp { bytes: totals.udp_bytes }),
            (downloads && !local, Received { bytes: self.bytes_received }),
            (udp_received, UdpReceived { bytes: totals.udp_received }),
            (udp_dropped, UdpDropped { bytes: udp_yields, dropped: totals.udp_dropped }),
        ];
        all.into_iter().filter(|(is_so, _)| *is_so).map(|(_, what)| what).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    const MB: u64 = 1_000_000;

    fn sent_by_tcp() -> Totals {
        Totals { run: 7, connections: 2, bytes_acked: 5 * MB, ..Totals::default() }
    }

    fn why(totals: &Totals) -> Vec<NotGoverned> {
        Report::of(totals, "nn_nice", &[], false).not_governed
    }

    #[test]
    fn a_run_that_sent_over_tcp_has_nothing_to_be_told_of() {
        assert_eq!(why(&sent_by_tcp()), []);
        // the answers of an upload, a question for the time
        let little = Totals { bytes_received: 20 * MB, udp_bytes: 76, ..sent_by_tcp() };
        assert_eq!(why(&little), []);
    }

    #[test]
    fn what_was_not_governed_is_told_with_its_reason() {
        use NotGoverned::{
            Changed, Left, Locked, NoConnection, OnlyLocal, OnlySpared, Received, Udp, UdpDropped,
            UdpReceived,
        };
        let nothing = Totals { run: 7, ..Totals::default() };
        assert_eq!(why(&nothing), [NoConnection]);
        let spared = Totals { spared: 3, ..nothing };
        assert_eq!(why(&spared), [OnlySpared { connections: 3 }]);
        assert_eq!(why(&Totals { spared: 3, ..sent_by_tcp() }), []);
        let local = Totals { local: 2, ..sent_by_tcp() };
        assert_eq!(why(&local), [OnlyLocal { connections: 2 }]);
        let one_local = Totals { local: 1, ..sent_by_tcp() };
        assert_eq!(why(&one_local), []);
        let download = Totals { bytes_received: 512 * MB, ..sent_by_tcp() };
        assert_eq!(why(&download), [Received { bytes: 512 * MB }]);
        let mut plain = sent_by_tcp();
        plain.plain[plain::LOCKED as usize] = 1;
        plain.plain[plain::CHANGED as usize] = 1;
        assert_eq!(why(&plain), [Locked { connections: 1 }, Changed { connections: 1 }]);
        let udp = Totals { udp_bytes: 3 * MB, ..nothing };
        assert_eq!(why(&udp), [Udp { bytes: 3 * MB }]);
        let fetched = Totals { udp_received: 13 * MB, ..udp };
        assert_eq!(why(&fetched), [UdpReceived { bytes: 13 * MB }]);
        // answers to what goes out
        let answered = Totals { udp_received: 12 * MB, ..udp };
        assert_eq!(why(&answered), why(&udp));
        // its ACKs wait, and it comes as ever
        let held = Totals { udp_held: 3 * MB, udp_received: 13 * MB, ..sent_by_tcp() };
        assert_eq!(why(&held), [UdpReceived { bytes: 13 * MB }]);
        // all of it yielded, or all but the beginning
        for (received, told) in [(0, vec![]), (2 * MB, vec![UdpReceived { bytes: 2 * MB }])] {
            let pulled = Totals { udp_pulled: 13 * MB, udp_received: received, ..udp };
            assert_eq!(why(&pulled), told);
        }
        // what a sender loses that slows down, and what one loses that does not
        for (dropped, told) in
            [(MB, vec![]), (4 * MB, vec![UdpDropped { bytes: 17 * MB, dropped: 4 * MB }])]
        {
            let pulled = Totals { udp_pulled: 13 * MB, udp_dropped: dropped, ..udp };
            assert_eq!(why(&pulled), told);
        }
        let of = |only, totals| {
            let report = Report::of(totals, "nn_nice", &[], false).asked(Some(only), LE, false);
            report.not_governed
        };
        assert_eq!(of(Only::Up, &download), []);
        assert_eq!(of(Only::Down, &download), why(&download));
        assert_eq!(of(Only::Down, &udp), []);
        assert_eq!(of(Only::Up, &fetched), []);
        assert_eq!(of(Only::Down, &fetched), why(&fetched));
        let left = Totals { left: 1, ..nothing };
        assert_eq!(why(&left), [Left { processes: 1 }]);
    }

    #[test]
    fn a_run_inside_of_it_is_no_reason_to_tell_that_it_has_no_connection() {
        assert_eq!(why(&Totals { run: 7, inner: 1, ..Totals::default() }), []);
    }

    #[test]
    fn a_socket_that_is_older_than_the_run_is_a_connection_too() {
        let nothing = Totals { run: 7, ..Totals::default() };
        let gone = Report::of(&nothing, "nn_nice", &[], true);
        assert_eq!((gone.connections, gone.not_governed.len()), (0, 0));
        let mut listener = connection(10);
        listener.flow.settings.adopted = 1;
        let mut accepted = connection(1);
        accepted.flow.settings.adopted = 1;
        let there = Report::of(&nothing, "nn_nice", &[listener, accepted], false);
        assert_eq!((there.connections, there.open, there.not_governed.len()), (1, 1, 0));
    }

    /// A connection of run 7 with these figures, as the kernel lists it.
    fn connection(state: u32) -> Record {
        let mut record = Record { tcp_state: state, ..Record::default() };
        record.ca[..7].copy_from_slice(&b"nn_nice".map(|c| c as _));
        record.bytes_acked = 1000;
        record.bytes_received = 20;
        record.bytes_unsent = 300;
        record.flow.settings.run = 7;
        record
    }

    #[test]
    fn a_connection_that_closes_while_it_is_read_is_counted_once_and_with_all_that_it_sent() {
        let open = Totals { run: 7, connections: 1, ..Totals::default() };
        let closed = Totals { closed: 1, bytes_acked: 1000, ..open };
        let gone = || Record { tcp_state: 7, ..connection(7) };
        // between totals and list; between list and totals; while its figures are being added
        let adding = Totals { closed: 0, ..closed };
        for (totals, listed) in [
            (vec![open, closed, closed], vec![vec![gone()], vec![gone()]]),
            (vec![open, closed, closed], vec![vec![connection(1)], vec![gone()]]),
            (vec![open, adding, closed, closed], vec![vec![gone()], vec![gone()], vec![]]),
            // the list left it out, since another one went away
            (vec![open, open, open], vec![vec![], vec![connection(1)]]),
        ] {
            let (totals, listed) = (RefCell::new(totals), RefCell::new(listed));
            let found = look(
                || Ok(vec![totals.borrow_mut().remove(0)]),
                || Ok(listed.borrow_mut().remove(0)),
                || {},
            );
            let (totals, flows) = found.expect("nothing fails");
            let report = Report::of(&totals[0], "nn_nice", &flows, false);
            assert_eq!((report.connections, report.bytes_sent), (1, 1000));
            assert_eq!(report.open, 1 - totals[0].closed);
        }
    }

    #[test]
    fn what_programs_did_not_count_keeps_no_report_waiting() {
        let looks = Cell::new(0);
        let pause = || looks.set(looks.get() + 1);
        let found = look(|| Ok(vec![sent_by_tcp()]), || Ok(vec![connection(1)]), pause);
        assert_eq!((found.expect("nothing fails").1.len(), looks.get()), (1, STANDING - 1));
    }

    #[test]
    fn connections_that_are_open_count_with_what_they_have_sent_and_have_still_to_send() {
        let mut counted = connection(7); // closed, in the totals
        counted.flow.closed = 1;
        let mut others = connection(1);
        others.flow.settings.run = 8;
        let mut changed = connection(4); // FIN_WAIT1: the program has ended
        changed.ca = Record::default().ca;
        changed.plain = plain::CHANGED;
        let flows = [counted, others, connection(1), connection(2), connection(10), changed];
        let report = Report::of(&sent_by_tcp(), "nn_nice", &flows, false);
        assert_eq!((report.connections, report.open), (2, 2));
        assert_eq!(report.bytes_sent, 5 * MB + 2 * 1000);
        assert_eq!((report.bytes_unsent, report.bytes_received), (2 * 300, 2 * 20));
        assert_eq!(report.not_governed, [NotGoverned::Changed { connections: 1 }]);
    }
}
