// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! s2n-quic's controller: passes what it is told to the algorithm in the background, and to another
//! controller in the foreground.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use netnice_host::{AckDelay, Control, Setting, Told};
use s2n_quic_core::random::Generator;
use s2n_quic_core::recovery::congestion_controller::{CongestionController, Publisher};
use s2n_quic_core::recovery::{RttEstimator, K_GRANULARITY};
use s2n_quic_core::time::Timestamp;

use crate::clock::Clock;
use crate::other::{Other, Quiet};
use crate::packet::Packet;

/// How soon a connection in a gap is looked at again, as a switch may have ended the gap.
const LOOK: Duration = Duration::from_millis(100);

/// Of the delay of an ACK, in microseconds, unless an end asks for another (RFC 9000, 18.2).
const DELAY_UNIT: u32 = 8;
/// How late the timer of a receiver may be that delays an ACK.
const LATE: Duration = Duration::from_millis(4);

/// The controller of one connection's path. A clone is the same controller.
#[derive(Clone)]
pub struct Controlled<C: CongestionController>(Arc<Mutex<Inner<C>>>);

pub(crate) struct Inner<C: CongestionController> {
    setting: Setting,
    clock: Clock,
    pub(crate) told: Told,
    pub(crate) control: Control<Other<C>>,
    /// As the other controller is at the start of a connection.
    foreground: C,

    /// The last time that s2n-quic spoke of, and how far ahead of the process' clock its times were at most.
    stamp: Option<Timestamp>,
    ahead: Duration,
    /// s2n-quic's RTTs.
    rtt: RttEstimator,
    /// By how much the ACK that is being told was delayed.
    delay: Duration,
    /// When the newest packet of an ACK was sent.
    newest: Option<Instant>,
    app_limited: Option<bool>,
    /// Of the next packet that counts.
    number: u64,
}

impl<C: CongestionController> Controlled<C> {
    pub(crate) fn new(setting: &Setting, clock: &Clock, foreground: C, mtu: u16) -> Self {
        let told = Told::new(clock.now(), mtu);
        let rtt = RttEstimator::default();
        let control =
            Control::new(setting, &told, || Other::begin(foreground.clone(), 0, 0, None, &rtt));
        Controlled(Arc::new(Mutex::new(Inner {
            setting: setting.clone(),
            clock: clock.clone(),
            told,
            control,
            foreground,
            stamp: None,
            ahead: Duration::ZERO,
            rtt,
            delay: Duration::ZERO,
            newest: None,
            app_limited: None,
            number: 0,
        })))
    }

    /// It, moved to where the switch says.
    pub(crate) fn settled(&self) -> MutexGuard<'_, Inner<C>> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.settle();
        inner
    }

    /// The same at that time.
    fn at(&self, now: Timestamp) -> MutexGuard<'_, Inner<C>> {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = inner.clock.instant(now);
        inner.told.now = inner.told.now.max(at);
        inner.ahead = inner.ahead.max(at.saturating_duration_since(inner.clock.now()));
        inner.stamp = inner.stamp.max(Some(now));
        inner.settle();
        inner
    }
}

impl<C: CongestionController> Inner<C> {
    fn settle(&mut self) {
        let Inner { setting, told, control, foreground, stamp, rtt, number, .. } = self;
        control.settle(
            setting,
            told,
            || Other::begin(foreground.clone(), *number, told.in_flight, *stamp, rtt),
            |other| other.controller.congestion_window().into(),
        );
    }

    /// An RTT was measured: by how much was its ACK delayed? s2n-quic means to leave that out of its smoothed
    /// RTT, s' = (7 s + RTT)/8, but takes the units of 8 us in which the delay is told for microseconds: an
    /// eighth is left out.
    fn delay(&self, rtt: &RttEstimator) -> Duration {
        if self.rtt.first_rtt_sample().is_none() {
            return Duration::ZERO; // the first sample is taken whole
        }
        let (before, measured) = (self.rtt.smoothed_rtt(), rtt.latest_rtt());
        let taken = (rtt.smoothed_rtt() * 8).saturating_sub(before * 7).min(measured);
        let delay = ((measured - taken) * DELAY_UNIT).min(rtt.max_ack_delay() + LATE);
        delay.min(measured.saturating_sub(rtt.min_rtt()))
    }

    /// Not before the time that it is: s2n-quic's, as far as can be known between its events.
    fn now(&self) -> Instant {
        self.told.now.max(self.clock.now() + self.ahead)
    }
}

impl<C: CongestionController> Drop for Inner<C> {
    fn drop(&mut self) {
        self.control.close(&self.told);
    }
}

impl<C: CongestionController> fmt::Debug for Controlled<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settled().setting.fmt(f)
    }
}

impl<C: CongestionController> CongestionController for Controlled<C> {
    type PacketInfo = Packet<C::PacketInfo>;

    fn congestion_window(&self) -> u32 {
        let Inner { told, control, .. } = &*self.settled();
        match control {
            Control::Yields(host) => u32::try_from(host.cwnd_bytes(told)).unwrap_or(u32::MAX),
            Control::Competes(other) => other.controller.congestion_window(),
        }
    }

    fn bytes_in_flight(&self) -> u32 {
        let Inner { told, control, .. } = &*self.settled();
        match control {
            Control::Yields(_) => u32::try_from(told.in_flight).unwrap_or(u32::MAX),
            Control::Competes(other) => other.controller.bytes_in_flight(),
        }
    }

    fn is_congestion_limited(&self) -> bool {
        let Inner { told, control, .. } = &*self.settled();
        match control {
            // nobody waits for room in the window that a gap takes: that is left to the gap
            Control::Yields(host) => {
                host.cwnd_bytes(told).saturating_sub(told.in_flight) < told.mtu.into()
            }
            Control::Competes(other) => other.controller.is_congestion_limited(),
        }
    }

    fn requires_fast_retransmission(&self) -> bool {
        match &self.settled().control {
            Control::Yields(_) => false,
            Control::Competes(other) => other.controller.requires_fast_retransmission(),
        }
    }

    fn on_packet_sent<P: Publisher>(
        &mut self,
        time_sent: Timestamp,
        sent_bytes: usize,
        app_limited: Option<bool>,
        rtt_estimator: &RttEstimator,
        publisher: &mut P,
    ) -> Self::PacketInfo {
        let inner = &mut *self.at(time_sent);
        inner.rtt = *rtt_estimator;
        let Inner { told, control, number, .. } = inner;
        let mut packet =
            Packet { number: *number, sent: inner.clock.instant(time_sent), other: None };
        let bytes = sent_bytes as u64;
        if bytes > 0 {
            *number += 1;
            inner.app_limited = app_limited;
        }
        match control {
            Control::Yields(host) if bytes > 0 => {
                // if a gap is over a burst begins, and the algorithm is asked first
                host.gap(told, true);
                host.window(told);
                told.sent(bytes, packet.number);
                host.sent(told, bytes);
            }
            Control::Yields(_) => (),
            Control::Competes(other) => {
                if bytes > 0 {
                    told.sent(bytes, packet.number);
                }
                packet.other = Some(other.controller.on_packet_sent(
                    time_sent,
                    sent_bytes,
                    app_limited,
                    rtt_estimator,
                    publisher,
                ));
            }
        }
        packet
    }

    fn on_rtt_update<P: Publisher>(
        &mut self,
        time_sent: Timestamp,
        now: Timestamp,
        rtt_estimator: &RttEstimator,
        publisher: &mut P,
    ) {
        let inner = &mut *self.at(now);
        inner.delay = inner.delay(rtt_estimator);
        inner.rtt = *rtt_estimator;
        inner.newest = Some(inner.clock.instant(time_sent));
        if let Control::Competes(other) = &mut inner.control {
            other.controller.on_rtt_update(time_sent, now, rtt_estimator, publisher);
        }
    }

    fn on_ack<P: Publisher>(
        &mut self,
        newest_acked_time_sent: Timestamp,
        bytes_acknowledged: usize,
        newest_acked_packet_info: Self::PacketInfo,
        rtt_estimator: &RttEstimator,
        random_generator: &mut dyn Generator,
        ack_receive_time: Timestamp,
        publisher: &mut P,
    ) {
        let inner = &mut *self.at(ack_receive_time);
        let delay = std::mem::take(&mut inner.delay);
        inner.rtt = *rtt_estimator;
        let Inner { told, control, .. } = inner;
        let (packet, bytes) = (newest_acked_packet_info, bytes_acknowledged as u64);
        told.delivered(told.packets(bytes), packet.sent, AckDelay::Known(delay));
        let in_flight = told.in_flight.saturating_sub(bytes);
        let news = told.acked(in_flight, Some(packet.number));
        match control {
            Control::Yields(host) => {
                if let Some((facts, newest)) = news {
                    host.acked(facts, newest, inner.app_limited == Some(false));
                }
            }
            Control::Competes(other) => {
                if let Some(info) = other.info(&packet) {
                    other.controller.on_ack(
                        newest_acked_time_sent,
                        bytes_acknowledged,
                        info,
                        rtt_estimator,
                        random_generator,
                        ack_receive_time,
                        publisher,
                    );
                }
            }
        }
    }

    fn on_packet_lost<P: Publisher>(
        &mut self,
        lost_bytes: u32,
        packet_info: Self::PacketInfo,
        persistent_congestion: bool,
        new_loss_burst: bool,
        random_generator: &mut dyn Generator,
        timestamp: Timestamp,
        publisher: &mut P,
    ) {
        let Inner { told, control, .. } = &mut *self.at(timestamp);
        told.lost(lost_bytes.into());
        match control {
            Control::Yields(host) => {
                host.lost(told, packet_info.sent, persistent_congestion, lost_bytes.into());
            }
            Control::Competes(other) => {
                if let Some(info) = other.info(&packet_info) {
                    other.controller.on_packet_lost(
                        lost_bytes,
                        info,
                        persistent_congestion,
                        new_loss_burst,
                        random_generator,
                        timestamp,
                        publisher,
                    );
                }
            }
        }
    }

    fn on_explicit_congestion<P: Publisher>(
        &mut self,
        ce_count: u64,
        event_time: Timestamp,
        publisher: &mut P,
    ) {
        let Inner { told, control, newest, .. } = &mut *self.at(event_time);
        match control {
            Control::Yields(host) => host.lost(told, newest.unwrap_or(told.now), false, 0),
            Control::Competes(other) => {
                other.controller.on_explicit_congestion(ce_count, event_time, publisher);
            }
        }
    }

    fn on_mtu_update<P: Publisher>(&mut self, max_data_size: u16, publisher: &mut P) {
        let Inner { told, control, foreground, .. } = &mut *self.settled();
        told.mtu = max_data_size.max(1);
        foreground.on_mtu_update(max_data_size, &mut Quiet);
        if let Control::Competes(other) = control {
            other.controller.on_mtu_update(max_data_size, publisher);
        }
    }

    fn on_packet_discarded<P: Publisher>(&mut self, bytes_sent: usize, publisher: &mut P) {
        let Inner { told, control, .. } = &mut *self.settled();
        told.in_flight = told.in_flight.saturating_sub(bytes_sent as u64);
        if let Control::Competes(other) = control {
            other.controller.on_packet_discarded(bytes_sent, publisher);
        }
    }

    fn earliest_departure_time(&self) -> Option<Timestamp> {
        let mut inner = self.settled();
        let look = inner.now() + LOOK;
        let Inner { told, control, clock, .. } = &mut *inner;
        match control {
            Control::Yields(host) => {
                let until = host.gap(told, true)?;
                // s2n-quic takes a time for over that is less than a granule ahead
                Some(clock.stamp(until.min(look))? + K_GRANULARITY)
            }
            Control::Competes(other) => other.controller.earliest_departure_time(),
        }
    }

    fn send_quantum(&self) -> Option<usize> {
        match &self.settled().control {
            Control::Yields(_) => None,
            Control::Competes(other) => other.controller.send_quantum(),
        }
    }
}
