// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! One flow under the control of an algorithm.

use crate::{show, sys, Ack, Config, Ctl, Event, Group, State, Value, ONE};

/// One flow under the control of an algorithm.
///
/// A clone of a flow of a group is the same member: only one of them may go on.
#[derive(Clone, Debug)]
pub struct Flow {
    config: Config,
    group: Option<Group>,
    state: State,
    ctl: Ctl,
}

impl Flow {
    /// Starts a flow at `now` (of which `now_us`, `una`, `nxt` and `inflight` count) with the
    /// host's initial window in packets (10 in Linux), which the algorithm may lower.
    pub fn new(config: &Config, now: &Ack, initial_window: u32) -> Flow {
        Self::start(config, None, now, initial_window)
    }

    /// As [`Flow::new`], as a member of a group until [`Flow::close`]. All members have the same
    /// algorithm.
    pub fn join(config: &Config, group: &Group, now: &Ack, initial_window: u32) -> Flow {
        Self::start(config, Some(group.clone()), now, initial_window)
    }

    fn start(config: &Config, group: Option<Group>, now: &Ack, initial_window: u32) -> Flow {
        let ctl = Ctl { cwnd_q16: u64::from(initial_window) * ONE, ..Default::default() };
        let mut flow =
            Flow { config: config.clone(), group, state: [0; sys::NN_STATE_MAX as usize / 8], ctl };
        let call = config.algorithm.0.init.expect("user.c fills every entry");
        flow.call(|s, cfg, g, ctl| unsafe { call(s, cfg, g, now, ctl) });
        flow
    }

    /// Gives an ACK; returns the window and gap to obey from now on.
    pub fn ack(&mut self, ack: &Ack) -> Ctl {
        let call = self.config.algorithm.0.ack.expect("user.c fills every entry");
        self.call(|s, cfg, g, ctl| unsafe { call(s, cfg, g, ack, ctl) })
    }

    /// Gives an event; `now` as in [`Flow::new`]. Before [`Event::NN_IDLE`] the host sets what it
    /// left of the window with [`Flow::cut`].
    pub fn event(&mut self, event: Event, now: &Ack) -> Ctl {
        let call = self.config.algorithm.0.event.expect("user.c fills every entry");
        self.call(|s, cfg, g, ctl| unsafe { call(s, cfg, g, event, now, ctl) })
    }

    /// Asks just before a burst leaves.
    pub fn send(&mut self, now: &Ack) -> Ctl {
        let call = self.config.algorithm.0.send.expect("user.c fills every entry");
        self.call(|s, cfg, g, ctl| unsafe { call(s, cfg, g, now, ctl) })
    }

    /// The connection has ended: the flow leaves its group, if it is in one.
    pub fn close(&mut self, now: &Ack) {
        if self.group.is_some() {
            self.event(Event::NN_CLOSE, now);
            self.group = None;
        }
    }

    /// Other values for the parameters, such as another share, of the same algorithm.
    pub fn configure(&mut self, config: &Config) {
        assert_eq!(self.config.algorithm, config.algorithm, "a flow keeps its algorithm");
        self.config.clone_from(config);
    }

    /// The group whose host tags packets with windows, for this flow's packets to be tagged.
    pub fn tagging(&self) -> Option<&Group> {
        self.group.as_ref().filter(|group| group.tags())
    }

    /// The host has cut an unused window to `cwnd_q16`.
    pub fn cut(&mut self, cwnd_q16: u64) {
        self.ctl.cwnd_q16 = cwnd_q16;
    }

    /// The last answer.
    pub fn ctl(&self) -> Ctl {
        self.ctl
    }

    /// What a person wants to see.
    pub fn show(&self) -> Vec<Value> {
        show(&self.config, &self.state)
    }

    /// The raw state, for comparing hosts. Words past the algorithm's own state are zero.
    pub fn state(&self) -> &[u64] {
        &self.state[..self.config.algorithm.0.state_size as usize / 8]
    }

    /// SAFETY of the callers' blocks: `state` holds NN_STATE_MAX bytes aligned to 8, `values` has
    /// n_params entries, the group is NULL or nobody else's meanwhile, and the algorithms keep
    /// none of the pointers.
    fn call(
        &mut self,
        f: impl FnOnce(*mut std::ffi::c_void, *const u32, *mut sys::nn_group, *mut Ctl),
    ) -> Ctl {
        let (s, cfg, ctl) =
            (self.state.as_mut_ptr().cast(), self.config.values.as_ptr(), &raw mut self.ctl);
        match &self.group {
            None => f(s, cfg, std::ptr::null_mut(), ctl),
            Some(group) => group.with(|g| f(s, cfg, g, ctl)),
        }
        self.ctl
    }
}
