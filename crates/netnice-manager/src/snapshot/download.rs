// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What comes by the paths where downloads yield, and why it is as slow as it is.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::why::{words, FULL, LITTLE};
use super::wire::on_wire;
use crate::hold::{Download, Hold};

/// What comes by such a path, and its device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DownloadAt {
    pub device: String,
    #[serde(flatten)]
    pub download: Download,
}

impl DownloadAt {
    /// Those of all devices that hold by which something in the background came.
    pub(super) fn all(holds: &[Hold]) -> Vec<DownloadAt> {
        let of = |hold: &Hold| {
            let came = hold.downloads.iter().filter(|download| download.background_bytes > 0);
            let at = |download: &Download| DownloadAt {
                device: hold.device.clone(),
                download: download.clone(),
            };
            came.map(at).collect::<Vec<_>>()
        };
        holds.iter().flat_map(of).collect()
    }
}

/// The same, with what happened since the look before.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ViewedDownload {
    #[serde(flatten)]
    pub at: DownloadAt,
    /// Payload of the background, bits/s; none: it was only seen once.
    pub background_bits: Option<f64>,
    /// What else came, with headers, bits/s.
    pub others_bits: Option<f64>,
    pub why: Unhurried,
    /// `why` in words.
    pub why_text: String,
}

impl ViewedDownload {
    /// `before`: the same path so many seconds ago.
    pub(super) fn of(at: &DownloadAt, before: Option<(&DownloadAt, f64)>) -> ViewedDownload {
        let download = &at.download;
        let rates = before.map(|(before, seconds)| {
            let since =
                |of: fn(&Download) -> u64| of(download).saturating_sub(of(&before.download));
            let background = since(|d| d.background_bytes);
            let others = since(|d| d.received_bytes).saturating_sub(on_wire(background));
            let bits = |bytes: u64| bytes as f64 * 8.0 / seconds.max(1e-9);
            (bits(background), bits(others))
        });
        let why = Unhurried::of(download, rates);
        ViewedDownload {
            at: at.clone(),
            background_bits: rates.map(|(background, _)| background),
            others_bits: rates.map(|(_, others)| others),
            why_text: why.to_string(),
            why,
        }
    }
}

/// Why downloads are as slow as they are. Rates are in bits/s.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Unhurried {
    /// They were only seen once.
    NotYetKnown,
    NoConnection,
    /// For so long they do not yield: the path was faster than asked for, else nothing came out of the
    /// waiting devices.
    LeftAlone {
        seconds: u64,
        faster_than_bits: Option<f64>,
    },
    /// To so much that others on this host, or behind it, download.
    YieldingToHost {
        bits: f64,
    },
    PathRate {
        bits: f64,
    },
    /// So many packets under way, in each RTT.
    Window {
        packets: f64,
        rtt_us: Option<u64>,
    },
    /// They may have more than comes.
    Senders,
}

impl Unhurried {
    /// What the figures show; `rates`: those of the background and of others.
    fn of(download: &Download, rates: Option<(f64, f64)>) -> Unhurried {
        let path = download.rate_bits as f64;
        if let Some(seconds) = download.away_s {
            let fastest = download.fastest_bits as f64;
            let faster_than_bits = download.too_fast.then_some(fastest);
            return Unhurried::LeftAlone { seconds, faster_than_bits };
        }
        match rates {
            None => Unhurried::NotYetKnown,
            // UDP has none
            Some((background, _)) if download.connections == 0 && background == 0.0 => {
                Unhurried::NoConnection
            }
            Some((_, bits)) if bits >= LITTLE * path => Unhurried::YieldingToHost { bits },
            Some((background, _)) if background >= FULL * path => {
                Unhurried::PathRate { bits: path }
            }
            Some(_) if download.window_limits => {
                Unhurried::Window { packets: download.window_packets, rtt_us: download.rtt_us }
            }
            Some(_) => Unhurried::Senders,
        }
    }

    /// The word by which scripts and metrics know it.
    pub fn name(&self) -> &'static str {
        match self {
            Unhurried::NotYetKnown => "not_yet_known",
            Unhurried::NoConnection => "no_connection",
            Unhurried::LeftAlone { .. } => "left_alone",
            Unhurried::YieldingToHost { .. } => "yielding_to_host",
            Unhurried::PathRate { .. } => "path_rate",
            Unhurried::Window { .. } => "window",
            Unhurried::Senders => "senders",
        }
    }
}

impl fmt::Display for Unhurried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unhurried::NotYetKnown => write!(f, "not known yet"),
            Unhurried::NoConnection => write!(f, "no connection is open"),
            Unhurried::LeftAlone { seconds, faster_than_bits: Some(fastest) } => write!(
                f,
                "does not yield for {seconds} s: faster than --fastest, {}",
                words(*fastest)
            ),
            Unhurried::LeftAlone { seconds, faster_than_bits: None } => {
                write!(f, "does not yield for {seconds} s: nothing came out of the waiting devices")
            }
            Unhurried::YieldingToHost { bits } => {
                write!(f, "yielding to {} that others download", words(*bits))
            }
            Unhurried::PathRate { bits } => write!(f, "the path's rate, {}", words(*bits)),
            Unhurried::Window { packets, rtt_us } => {
                write!(f, "their window: {packets:.1} packets")?;
                if let Some(us) = rtt_us {
                    write!(f, " in a round trip of {:.1} ms", *us as f64 / 1000.0)?;
                }
                write!(f, "; it still grows, or yields to a queue")
            }
            Unhurried::Senders => write!(f, "limited by their senders: they may send more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn download() -> Download {
        Download {
            rate_bits: 8_000_000,
            fastest_bits: 100_000_000,
            rtt_us: Some(50_000),
            window_packets: 3.0,
            connections: 2,
            background_bytes: 1_000_000,
            received_bytes: 2_000_000,
            ..Download::default()
        }
    }

    fn at(download: Download) -> DownloadAt {
        DownloadAt { device: "eth0".into(), download }
    }

    fn why(download: &Download, background: f64, others: f64) -> String {
        Unhurried::of(download, Some((background, others))).to_string()
    }

    #[test]
    fn a_download_says_to_whom_it_yields_or_what_else_keeps_it() {
        let path = download();
        assert_eq!(why(&path, 0.4e6, 6.1e6), "yielding to 6.1 Mbit/s that others download");
        // ACKs of uploads, questions for names
        assert_eq!(why(&path, 7.6e6, 0.1e6), "the path's rate, 8.0 Mbit/s");
        assert_eq!(why(&path, 1e6, 0.0), "limited by their senders: they may send more");
        let limited = Download { window_limits: true, ..download() };
        assert!(why(&limited, 1e6, 0.0)
            .starts_with("their window: 3.0 packets in a round trip of 50.0 ms; "));
        let udp = Download { connections: 0, ..path };
        assert_eq!(why(&udp, 0.0, 6e6), "no connection is open");
        assert_eq!(why(&udp, 0.4e6, 6.1e6), "yielding to 6.1 Mbit/s that others download");
    }

    #[test]
    fn what_does_not_yield_says_for_how_long_and_why() {
        let open = Download { away_s: Some(60), ..download() };
        // the rate may have fallen since
        for rate_bits in [300_000_000, 8_000_000] {
            let fast = Download { rate_bits, too_fast: true, ..open.clone() };
            assert_eq!(
                why(&fast, 3e8, 0.0),
                "does not yield for 60 s: faster than --fastest, 100.0 Mbit/s"
            );
        }
        assert!(why(&open, 1e6, 0.0).ends_with("nothing came out of the waiting devices"));
    }

    #[test]
    fn rates_are_those_since_the_look_before_and_others_are_without_the_backgrounds_headers() {
        let before = at(download());
        // in two seconds 100 full packets of the background, and 50 of others
        let now = at(Download {
            background_bytes: 1_000_000 + 100 * 1448,
            received_bytes: 2_000_000 + 150 * 1514,
            ..download()
        });
        let seen = ViewedDownload::of(&now, Some((&before, 2.0)));
        assert_eq!(seen.background_bits, Some(100.0 * 1448.0 * 8.0 / 2.0));
        assert_eq!(seen.others_bits, Some(50.0 * 1514.0 * 8.0 / 2.0));
        let json = serde_json::to_value(&seen).expect("it is JSON");
        assert_eq!(json["why"]["reason"], seen.why.name());
        assert_eq!((&json["device"], &json["connections"]), (&"eth0".into(), &2.into()));
        assert_eq!(json["why_text"], "yielding to 303 kbit/s that others download");
        let first = ViewedDownload::of(&now, None);
        assert_eq!((first.background_bits, first.why), (None, Unhurried::NotYetKnown));
    }

    #[test]
    fn a_path_by_which_nothing_of_the_background_came_is_none_of_it() {
        let hold = Hold {
            device: "eth0".into(),
            paths: Vec::new(),
            downloads: vec![Download { background_bytes: 0, ..download() }, download()],
        };
        let all = DownloadAt::all(&[hold]);
        assert_eq!(all, [at(download())]);
        let text = serde_json::to_string(&all).expect("it is JSON");
        assert_eq!(serde_json::from_str::<Vec<DownloadAt>>(&text).expect("it reads"), all);
    }
}
