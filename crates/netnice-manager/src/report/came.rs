// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Whether what a run received has yielded, as the devices know that it came in at.

use std::mem;

use super::{NotGoverned, Report};
use crate::hold::{Held, Hold};
use crate::system::System;

impl Report {
    /// Where its packets waited. Whether its downloads yielded, a look at the devices shows: one may hold
    /// for others.
    #[must_use]
    pub fn held(mut self, held: Held) -> Report {
        if !held.elsewhere {
            self = self.looked_after();
        }
        self.held = Some(held);
        self
    }

    /// The same where it is not known at which devices its packets waited.
    #[must_use]
    pub fn looked_after(self) -> Report {
        match self.not_governed.iter().any(|what| self.may_have_yielded(what).is_some()) {
            // what cannot be read must not keep the rest from being said
            true => self.came_by(&System::look().and_then(|s| s.holds()).unwrap_or_default()),
            false => self,
        }
    }

    /// So many bytes that came, and may have yielded nonetheless: devices know.
    fn may_have_yielded(&self, what: &NotGoverned) -> Option<u64> {
        match what {
            NotGoverned::Received { bytes } if self.is_marked => Some(*bytes),
            NotGoverned::UdpReceived { bytes } if self.udp_downloads => Some(*bytes),
            _ => None,
        }
    }

    /// What it received came in at one of these devices, if one has had as much of the background.
    #[must_use]
    pub(crate) fn came_by(mut self, holds: &[Hold]) -> Report {
        let told = mem::take(&mut self.not_governed);
        let yielded = |what: NotGoverned| {
            let Some(bytes) = self.may_have_yielded(&what) else { return Some(what) };
            let paths = holds.iter().flat_map(|h| h.downloads.iter().map(move |d| (&h.device, d)));
            let by: Vec<_> = paths.filter(|(_, d)| d.background_bytes >= bytes / 2).collect();
            if by.iter().any(|(_, download)| download.away_s.is_none()) {
                // of UDP only what did not yield is told
                return matches!(what, NotGoverned::UdpReceived { .. }).then_some(what);
            }
            let Some((device, download)) = by.first() else { return Some(what) };
            Some(NotGoverned::LeftAlone {
                bytes,
                device: (*device).clone(),
                faster_bits: download.too_fast.then_some(download.rate_bits),
            })
        };
        self.not_governed = told.into_iter().filter_map(yielded).collect();
        self
    }
}

#[cfg(test)]
mod tests {
    use netnice_bpf::Totals;

    use super::super::LE;
    use super::*;
    use crate::hold::Download;

    const MB: u64 = 1_000_000;

    #[test]
    fn downloads_yielded_where_a_device_holds_unless_it_leaves_the_path_alone() {
        let received =
            Totals { run: 7, connections: 1, bytes_received: 512 * MB, ..Totals::default() };
        let at = |device: &str, background_bytes, away_s, too_fast| Hold {
            device: device.into(),
            paths: vec![],
            downloads: vec![Download {
                rate_bits: 312 * MB,
                background_bytes,
                away_s,
                too_fast,
                ..Download::default()
            }],
        };
        let why = |holds: &[Hold]| {
            let report = Report::of(&received, "nn_nice", &[], false).asked(None, LE, false);
            report.came_by(holds).not_governed
        };
        let bytes = 512 * MB;
        assert_eq!(why(&[]), [NotGoverned::Received { bytes }]);
        assert_eq!(why(&[at("eth0", bytes, None, false)]), []);
        let alone =
            |faster_bits| NotGoverned::LeftAlone { bytes, device: "eth0".into(), faster_bits };
        assert_eq!(why(&[at("eth0", bytes, Some(60), true)]), [alone(Some(312 * MB))]);
        assert_eq!(why(&[at("eth0", bytes, Some(10), false)]), [alone(None)]);
        // it came by the other one
        assert_eq!(why(&[at("eth0", 9, Some(60), true), at("wlan0", bytes, None, false)]), []);
        // by none of these
        assert_eq!(why(&[at("eth0", 9, None, false)]), [NotGoverned::Received { bytes }]);
        // without a mark its downloads are like any
        let plain = Report::of(&received, "nn_nice", &[], false).asked(None, 0, false);
        let plain = plain.came_by(&[at("eth0", bytes, None, false)]).not_governed;
        assert_eq!(plain, [NotGoverned::Received { bytes }]);
        // of UDP it is known what did not yield
        let udp = Totals { run: 7, udp_received: bytes, ..Totals::default() };
        let why = |asked, holds: &[Hold]| {
            let report = Report::of(&udp, "nn_nice", &[], false).asked(None, LE, asked);
            report.came_by(holds).not_governed
        };
        for holds in [&[][..], &[at("eth0", bytes, None, false)]] {
            assert_eq!(why(true, holds), [NotGoverned::UdpReceived { bytes }]);
        }
        let away = [at("eth0", bytes, Some(60), true)];
        assert_eq!(why(true, &away), [alone(Some(312 * MB))]);
        assert_eq!(why(false, &away), [NotGoverned::UdpReceived { bytes }]);
    }
}
