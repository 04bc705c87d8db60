// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! How an algorithm's answer becomes a window and gaps, by the same rules as in the kernel and in the
//! simulator (`core/host/obey.h`).

use std::time::{Duration, Instant};

use netnice_core::{Ack, Event, Flow, Value};

use crate::peers::Peers;
use crate::setting::Setting;
use crate::told::Told;

const HOLD: u32 = netnice_core::sys::NN_ACK_HOLD;
const APP_LIMITED: u32 = netnice_core::sys::NN_ACK_APP_LIMITED;

/// Packets at the start of a connection that no gap holds back, as in the kernel.
const UNPACED: u64 = 10;

/// A gap ends after that time at the latest: a transport keeps no connection alive in it, and the other end
/// gives up one that is silent for 30 s.
const LONGEST_GAP: Duration = Duration::from_secs(10);

/// What is believed of the path.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Open,
    /// What was sent until then is accounted for by a loss or a mark.
    Recovery(Instant),
    /// All that was sent for a while, until then, was lost (RFC 9002, 7.6).
    Loss(Instant),
}

/// What an algorithm was told, for tests: a hook, with its event if it was one.
#[derive(Clone, Copy, Debug)]
pub enum Heard {
    /// The start, with a window of so many packets.
    Start(u32),
    /// An ACK.
    Ack,
    /// An event.
    Event(Event),
    /// A burst is about to leave.
    Send,
}

/// A connection in the background.
pub struct Host {
    flow: Flow,
    peers: Peers,
    state: State,
    cwnd: u32,
    ssthresh: u32,

    /// As in RFC 7661: whether the window was used up in the last round, and the most that was out.
    limited: bool,
    most_out: u32,
    usage_end: u32,

    /// The algorithm was asked for the burst that leaves next, or leaves now.
    asked: bool,
    /// Packets that this burst still has, and when its first one left.
    burst: u64,
    burst_at: Option<Instant>,
    gap_until: Option<Instant>,
    /// A window was given, by which the next packet may leave; and the number behind the last one that left
    /// by one. What else leaves is in no window, and may never be acknowledged: it carries an ACK alone.
    given: bool,
    given_end: u32,

    heard: Option<Vec<(Heard, Ack)>>,
}

impl Host {
    /// Begins with a window of so many packets.
    pub fn new(setting: &Setting, told: &Told, window: u32) -> Host {
        let config = &setting.config;
        let peers = Peers::join(config.algorithm());
        let facts = Ack { flows: peers.count(), ..told.facts() };
        let flow = match &setting.group {
            Some(group) => Flow::join(config, group, &facts, window),
            None => Flow::new(config, &facts, window),
        };
        let mut host = Host {
            flow,
            peers,
            state: State::Open,
            cwnd: window,
            ssthresh: u32::MAX,
            limited: false,
            most_out: 0,
            usage_end: told.nxt,
            asked: false,
            burst: u64::MAX,
            burst_at: None,
            gap_until: None,
            given: false,
            given_end: told.nxt,
            heard: setting.listens.then(|| vec![(Heard::Start(window), facts)]),
        };
        host.apply();
        host
    }

    fn facts(&self, told: &Told) -> Ack {
        Ack { flows: self.peers.count(), ..told.facts() }
    }

    fn note(&mut self, what: Heard, facts: &Ack) {
        if let Some(heard) = &mut self.heard {
            heard.push((what, *facts));
        }
    }

    /// Obeys the last answer.
    fn apply(&mut self) {
        let ctl = self.flow.ctl();
        self.cwnd = match self.state {
            State::Open => ctl.window(),
            State::Recovery(_) => ctl.target(),
            State::Loss(_) => ctl.window_in_loss(),
        };
        self.ssthresh = ctl.ssthresh(self.cwnd, self.ssthresh);
    }

    /// What it answered to an ACK or a loss takes the place of its answer for the next burst. So it is asked
    /// again, unless that burst leaves already: the kernel and the simulator ask just before a burst.
    fn answered(&mut self) {
        self.asked &= self.burst_at.is_some();
        self.apply();
    }

    fn event(&mut self, event: Event, told: &Told) {
        let facts = self.facts(told);
        self.note(Heard::Event(event), &facts);
        self.flow.event(event, &facts);
    }

    /// Datagrams of so many bytes left.
    pub fn sent(&mut self, told: &Told, bytes: u64) {
        self.note_usage(told);
        if std::mem::take(&mut self.given) {
            self.given_end = told.nxt;
        }
        let gap_us = self.flow.ctl().gap_us;
        if gap_us == 0 || told.sent <= UNPACED {
            self.asked = false;
            return;
        }
        let began = *self.burst_at.get_or_insert(told.now);
        self.burst = self.burst.saturating_sub(told.packets(bytes).into());
        self.gap_until = Some(began + Duration::from_micros(gap_us).min(LONGEST_GAP));
    }

    /// Remembers for a window of data whether the window was used up.
    fn note_usage(&mut self, told: &Told) {
        let out = told.packets(told.in_flight);
        let limited = out >= self.cwnd;
        let over = told.una.wrapping_sub(self.usage_end) as i32 >= 0;
        if over || limited || (!self.limited && out > self.most_out) {
            self.limited = limited;
            self.most_out = out;
            self.usage_end = told.nxt;
        }
    }

    /// An ACK, and when the newest packet that it delivered was sent.
    pub fn acked(&mut self, mut facts: Ack, newest: Instant, data_waits: bool) {
        if let State::Recovery(until) | State::Loss(until) = self.state {
            if newest > until {
                self.state = State::Open;
            }
        }
        // after a loss of all, the window grows by what arrives
        if matches!(self.state, State::Recovery(_)) {
            facts.flags |= HOLD;
        }
        if self.flow.ctl().app_limited(data_waits, self.cwnd, self.most_out, self.limited) {
            facts.flags |= APP_LIMITED;
        }
        facts.flows = self.peers.count();
        self.note(Heard::Ack, &facts);
        self.flow.ack(&facts);
        self.answered();
    }

    /// Packets were lost, or marked if no bytes were; the newest was sent then. `all`: for a while nothing
    /// arrived.
    pub fn lost(&mut self, told: &Told, sent: Instant, all: bool, bytes: u64) {
        let known = match self.state {
            State::Open => false,
            State::Recovery(until) | State::Loss(until) => sent <= until,
        };
        if !known {
            self.event(if bytes > 0 { Event::NN_LOSS } else { Event::NN_ECN }, told);
            self.state = State::Recovery(told.now);
        }
        if all && !(known && matches!(self.state, State::Loss(_))) {
            self.event(Event::NN_TIMEOUT, told);
            self.state = State::Loss(told.now);
        }
        self.answered();
    }

    /// Until when nothing may leave, if so. Unless somebody waits for the ends of gaps (`awaited`), they
    /// end when nothing is in flight: only an ACK makes the transport look again. Bytes in flight do not tell
    /// it always, as quinn gives up a probe of the MTU without a word: that the burst was acknowledged does.
    pub fn gap(&mut self, told: &Told, awaited: bool) -> Option<Instant> {
        let until = self.gap_until?;
        let over = told.in_flight == 0 || told.una.wrapping_sub(self.given_end) as i32 >= 0;
        if told.now >= until || (!awaited && over) {
            (self.gap_until, self.burst_at, self.asked) = (None, None, false);
            return None;
        }
        // what is left of a burst leaves at once, or not in this one
        let rest = self.burst > 0 && self.burst_at.is_some_and(|at| told.now <= at);
        (!rest).then_some(until)
    }

    /// Bytes that may be in flight now, where no gap is. Asks the algorithm, if a burst is to begin.
    pub fn window(&mut self, told: &Told) -> u64 {
        self.given = true;
        if !self.asked {
            self.asked = true;
            let facts = self.facts(told);
            self.note(Heard::Send, &facts);
            let ctl = self.flow.send(&facts);
            self.burst = if ctl.gap_us > 0 { ctl.burst.max(1).into() } else { u64::MAX };
            if self.state == State::Open {
                self.apply();
            }
        }
        let burst = self.burst.saturating_mul(told.mtu.into()).saturating_add(told.in_flight);
        self.cwnd_bytes(told).min(burst)
    }

    /// The window without what a gap takes from it.
    pub fn cwnd_bytes(&self, told: &Told) -> u64 {
        u64::from(self.cwnd) * u64::from(told.mtu)
    }

    /// None before the first loss.
    pub fn ssthresh_bytes(&self, told: &Told) -> Option<u64> {
        (self.ssthresh < u32::MAX).then(|| u64::from(self.ssthresh) * u64::from(told.mtu))
    }

    /// What a person wants to see of the algorithm.
    pub fn show(&self) -> Vec<Value> {
        self.flow.show()
    }

    /// The algorithm.
    pub fn flow(&self) -> &Flow {
        &self.flow
    }

    /// What the algorithm was told since the last call, if the setting listens.
    pub fn heard(&mut self) -> Vec<(Heard, Ack)> {
        self.heard.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The connection ends, or is in the foreground from now on.
    pub fn close(&mut self, told: &Told) {
        let facts = self.facts(told);
        self.flow.close(&facts);
    }
}
