// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What happens over time in one run: windows, queue lengths, round-trip times.
//!
//! As CSV with a header and five columns, whatever the kind of the line:
//!
//! | kind | name | value | inflight_packets |
//! |---|---|---|---|
//! | `window_packets` | class and number of the flow, as in `background 0` | congestion window | packets sent and not yet acknowledged |
//! | `acked_packets` | as for windows | packets that the flow sent and are acknowledged, in order, since its start | |
//! | `queue_packets` | name of the link | packets waiting | |
//! | `left_bytes` | name of the link | bytes that have left it since the start | |
//! | `dropped_packets` | name of the link | packets that it has dropped since the start | |
//! | `rtt_ms` | as for windows | round-trip time that an ACK measured | |
//! | `base_rtt_us`, `weight`, ... | as for windows | what the flow's algorithm shows of it, under the names of [`netnice_core::Shown::keys`]; `netnice algorithms NAME` lists them | |
//! | `available_mbit`, ... | as for windows | a measured rate, on the wire; with `_low_` and `_high_` its confidence interval | |
//!
//! The first column, `time_s`, is the time since the start of the run in seconds. Windows of the flows
//! that are alive and queues are sampled every [`INTERVAL`], round-trip times as they are measured, the rest when
//! it changes and is known.

use std::fmt;
use std::io::Write;
use std::sync::LazyLock;

use netnice_core::{Shown, Value};

use crate::packet::Nanos;

/// Time between samples of windows and of queues: 10 ms.
pub const INTERVAL: Nanos = 10_000_000;

/// What lines a trace has of its own; the others are [`kinds`] of what flows show.
const OWN_KINDS: [&str; 6] =
    ["window_packets", "acked_packets", "queue_packets", "left_bytes", "dropped_packets", "rtt_ms"];

/// What lines a trace has.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    static SHOWN: LazyLock<Vec<String>> =
        LazyLock::new(|| Shown::all().iter().flat_map(Shown::keys).collect());
    OWN_KINDS.into_iter().chain(SHOWN.iter().map(String::as_str))
}

/// Whose flow it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// `[foreground]`.
    Foreground,
    /// The background of this run.
    Background,
    /// `[[cross]]`.
    Cross,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Foreground => "foreground",
            Self::Background => "background",
            Self::Cross => "cross",
        })
    }
}

/// Takes what the event loop tells. Flows are numbered within their class from 0, in the order of
/// their starts; `now` never decreases.
pub trait Sink {
    /// The window of a flow and the packets in flight, every [`INTERVAL`].
    fn window(&mut self, now: Nanos, class: Class, flow: u32, cwnd_packets: f64, inflight: u32);

    /// The packets that a flow sent and that are acknowledged, every [`INTERVAL`].
    fn acked(&mut self, now: Nanos, class: Class, flow: u32, packets: u32);

    /// The packets waiting for a link, the bytes that have left it and the packets that it has dropped,
    /// every [`INTERVAL`].
    fn link(&mut self, now: Nanos, name: &str, waiting: usize, left_bytes: u64, dropped: u64);

    /// A measured round-trip time in nanoseconds.
    fn rtt(&mut self, now: Nanos, class: Class, flow: u32, rtt: Nanos);

    /// A new value of what a flow shows; a full packet has so many bytes on the wire.
    fn shown(&mut self, now: Nanos, class: Class, flow: u32, value: &Value, packet_bytes: u32);
}

/// Writes the CSV.
pub struct Csv<W: Write> {
    to: csv::Writer<W>,
    /// The kinds that are written; empty: all.
    kinds: Vec<String>,
    /// The first failure; nothing is written after it.
    failed: Option<csv::Error>,
}

impl<W: Write> Csv<W> {
    /// Writes the header, and then what comes of these `kinds`, or of all if it is empty.
    pub fn new(to: W, kinds: &[String]) -> Self {
        let to = csv::Writer::from_writer(to);
        let mut csv = Self { to, kinds: kinds.to_vec(), failed: None };
        csv.write(["time_s", "kind", "name", "value", "inflight_packets"]);
        csv
    }

    /// Ends the table, and returns what it was written to.
    ///
    /// # Errors
    /// The first write that failed.
    pub fn finish(self) -> Result<W, csv::Error> {
        match self.failed {
            Some(error) => Err(error),
            None => self.to.into_inner().map_err(|e| e.into_error().into()),
        }
    }

    fn write<T: AsRef<[u8]>>(&mut self, fields: [T; 5]) {
        if self.failed.is_none() {
            self.failed = self.to.write_record(fields).err();
        }
    }

    fn line(&mut self, now: Nanos, kind: &str, name: &str, value: f64, inflight: Option<u32>) {
        if !self.kinds.is_empty() && !self.kinds.iter().any(|k| k == kind) {
            return;
        }
        let time_s = format!("{:.6}", now as f64 / 1e9);
        let inflight = inflight.map(|n| n.to_string()).unwrap_or_default();
        self.write([&time_s, kind, name, &value.to_string(), &inflight]);
    }
}

impl<W: Write> Sink for Csv<W> {
    fn window(&mut self, now: Nanos, class: Class, flow: u32, cwnd_packets: f64, inflight: u32) {
        self.line(now, "window_packets", &format!("{class} {flow}"), cwnd_packets, Some(inflight));
    }

    fn acked(&mut self, now: Nanos, class: Class, flow: u32, packets: u32) {
        self.line(now, "acked_packets", &format!("{class} {flow}"), f64::from(packets), None);
    }

    fn link(&mut self, now: Nanos, name: &str, waiting: usize, left_bytes: u64, dropped: u64) {
        self.line(now, "queue_packets", name, waiting as f64, None);
        self.line(now, "left_bytes", name, left_bytes as f64, None);
        self.line(now, "dropped_packets", name, dropped as f64, None);
    }

    fn rtt(&mut self, now: Nanos, class: Class, flow: u32, rtt: Nanos) {
        self.line(now, "rtt_ms", &format!("{class} {flow}"), rtt as f64 / 1e6, None);
    }

    fn shown(&mut self, now: Nanos, class: Class, flow: u32, value: &Value, packet_bytes: u32) {
        for (kind, number) in value.shown.keys().iter().zip(value.numbers(packet_bytes)) {
            self.line(now, kind, &format!("{class} {flow}"), number, None);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use netnice_core::sys::nn_value;

    use super::*;

    #[test]
    fn every_line_has_the_same_five_columns() {
        let mut bytes = Vec::new();
        let mut csv = Csv::new(&mut bytes, &[]);
        csv.window(10_000_000, Class::Background, 3, 0.0625, 1);
        csv.acked(10_000_000, Class::Background, 3, 20);
        csv.link(10_000_000, "a,b", 17, 30_000, 2);
        csv.rtt(12_345_678, Class::Foreground, 0, 50_500_000);
        // a value of 4500 packets/s of 1125 bytes is 40.5 Mbit/s; 4500 in Q16 is 0.0687
        let raw = nn_value { value: 4500, low: 4000, high: 5000, results: 1 };
        for shown in Shown::all() {
            csv.shown(13_000_000, Class::Background, 1, &Value { shown, raw }, 1125);
        }
        csv.finish().unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let kinds: BTreeSet<_> =
            text.lines().skip(1).map(|l| l.split(',').nth(1).unwrap()).collect();
        assert_eq!(kinds, BTreeSet::from_iter(super::kinds()), "every kind has a line here");
        assert_eq!(kinds.len(), super::kinds().count(), "no two kinds have the same name");
        let (own, shown) = text.split_at(text.find("0.013000").unwrap());
        for line in [
            "0.013000,base_rtt_us,background 1,4500,",
            "0.013000,weight,background 1,0.06866455078125,",
            "0.013000,available_mbit,background 1,40.5,",
            "0.013000,available_low_mbit,background 1,36,",
            "0.013000,available_high_mbit,background 1,45,",
        ] {
            assert!(shown.lines().any(|l| l == line), "{line}:\n{shown}");
        }
        assert_eq!(
            own,
            "time_s,kind,name,value,inflight_packets\n\
             0.010000,window_packets,background 3,0.0625,1\n\
             0.010000,acked_packets,background 3,20,\n\
             0.010000,queue_packets,\"a,b\",17,\n\
             0.010000,left_bytes,\"a,b\",30000,\n\
             0.010000,dropped_packets,\"a,b\",2,\n\
             0.012346,rtt_ms,foreground 0,50.5,\n"
        );
    }

    #[test]
    fn other_kinds_than_those_asked_for_are_not_written() {
        let mut bytes = Vec::new();
        let mut csv = Csv::new(&mut bytes, &["queue_packets".into()]);
        csv.link(10_000_000, "ab", 17, 0, 0);
        csv.rtt(12_345_678, Class::Foreground, 0, 50_500_000);
        csv.finish().unwrap();
        let expected = "time_s,kind,name,value,inflight_packets\n0.010000,queue_packets,ab,17,\n";
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }

    #[test]
    fn a_full_disk_is_an_error_at_the_end() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Ok(())
            }
        }
        let mut csv = Csv::new(Full, &[]);
        (0..10_000).for_each(|i| csv.link(i, "ab", 0, 0, 0));
        assert!(csv.finish().is_err());
    }
}
