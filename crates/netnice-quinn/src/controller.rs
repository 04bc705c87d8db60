// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! quinn's controller: passes what it is told to the algorithm in the background, and to another
//! controller in the foreground.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use netnice_core::Value;
use netnice_host::{AckDelay, Control, Told, INITIAL_WINDOW};
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use quinn_proto::RttEstimator;

use crate::background::Background;
use crate::gaps;

/// quinn's smallest datagram: an initial window is ten of them (RFC 9002, 7.2).
const BASE_DATAGRAM: u64 = 1200;

/// The controller of one connection. A clone is the same controller.
#[derive(Clone)]
pub struct Controlled(Arc<Mutex<Inner>>);

pub(crate) struct Inner {
    pub(crate) background: Background,
    pub(crate) told: Told,
    pub(crate) control: Control<Box<dyn Controller>>,
    /// Somebody waits for the ends of its gaps. Whoever asks for a window but for that only looks.
    awaited: bool,
}

impl Controlled {
    pub(crate) fn new(background: &Background, now: Instant, mtu: u16) -> Controlled {
        let background = background.clone();
        let told = Told::new(now, mtu);
        let control = Control::new(&background.setting, &told, || background.other(&told));
        Controlled(Arc::new(Mutex::new(Inner { background, told, control, awaited: false })))
    }

    /// What a person wants to see of the algorithm; nothing in the foreground.
    pub fn show(&self) -> Vec<Value> {
        self.inner().control.show()
    }

    pub(crate) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same at that time, moved to where the switch says.
    pub(crate) fn at(&self, now: Option<Instant>) -> MutexGuard<'_, Inner> {
        let mut inner = self.inner();
        inner.told.now = inner.told.now.max(now.unwrap_or(inner.told.now));
        inner.settle();
        inner
    }
}

/// What a person wants to see of a connection's algorithm; `None`: it has another controller.
pub fn show(connection: &quinn::Connection) -> Option<Vec<Value>> {
    let state = connection.congestion_state().into_any();
    Some(state.downcast::<Controlled>().ok()?.show())
}

impl Background {
    fn other(&self, told: &Told) -> Box<dyn Controller> {
        self.foreground.clone().build(told.now, told.mtu)
    }
}

impl Inner {
    fn settle(&mut self) {
        let Inner { background, told, control, .. } = self;
        let other = || background.other(told);
        control.settle(&background.setting, told, other, |other| other.window());
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.control.close(&self.told);
    }
}

impl ControllerFactory for Background {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(Controlled::new(&self, now, current_mtu))
    }
}

impl Controller for Controlled {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        let Inner { told, control, .. } = &mut *self.at(Some(now));
        told.sent(bytes, last_packet_number);
        match control {
            Control::Yields(host) => host.sent(told, bytes),
            Control::Competes(other) => other.on_sent(now, bytes, last_packet_number),
        }
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        let Inner { told, control, .. } = &mut *self.at(Some(now));
        told.delivered(1, sent, AckDelay::Smoothed(rtt.get())); // and the algorithm at `on_end_acks`
        if let Control::Competes(other) = control {
            other.on_ack(now, sent, bytes, app_limited, rtt);
        }
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        let Inner { told, control, .. } = &mut *self.at(Some(now));
        let news = told.acked(in_flight, largest_packet_num_acked);
        match control {
            Control::Yields(host) => {
                if let Some((facts, newest)) = news {
                    host.acked(facts, newest, !app_limited);
                }
            }
            Control::Competes(other) => {
                other.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
            }
        }
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let Inner { told, control, .. } = &mut *self.at(Some(now));
        told.lost(lost_bytes);
        match control {
            Control::Yields(host) => host.lost(told, sent, is_persistent_congestion, lost_bytes),
            Control::Competes(other) => {
                other.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
            }
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        let Inner { told, control, .. } = &mut *self.at(None);
        told.mtu = new_mtu.max(1);
        if let Control::Competes(other) = control {
            other.on_mtu_update(new_mtu);
        }
    }

    fn window(&self) -> u64 {
        let asked = gaps::now();
        let Inner { background, told, control, awaited } = &mut *self.at(asked);
        *awaited |= asked.is_some();
        match control {
            Control::Competes(other) => other.window(),
            Control::Yields(host) if *awaited && asked.is_none() => host.cwnd_bytes(told),
            Control::Yields(host) => match host.gap(told, asked.is_some()) {
                Some(until) => {
                    gaps::wait(until, &background.setting.switch);
                    1 // nothing fits, and quinn wants no 0
                }
                // what quinn has in flight stays below a window: a last full packet fits only so
                None => host.window(told).saturating_add(1),
            },
        }
    }

    fn metrics(&self) -> ControllerMetrics {
        let Inner { told, control, .. } = &*self.inner();
        match control {
            Control::Yields(host) => {
                let mut metrics = ControllerMetrics::default();
                metrics.congestion_window = host.cwnd_bytes(told);
                metrics.ssthresh = host.ssthresh_bytes(told);
                metrics
            }
            Control::Competes(other) => other.metrics(),
        }
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        u64::from(INITIAL_WINDOW) * BASE_DATAGRAM
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
