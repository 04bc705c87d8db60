// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Who has a connection: an algorithm in the background, or another controller in the foreground.

use netnice_core::Value;

use crate::host::Host;
use crate::setting::Setting;
use crate::told::Told;

/// Packets that a connection begins with (RFC 9002, 7.2).
pub const INITIAL_WINDOW: u32 = 10;

/// Who has a connection; `O` is the other controller.
pub enum Control<O> {
    /// It is in the background.
    Yields(Box<Host>),
    /// It is in the foreground.
    Competes(O),
}

impl<O> Control<O> {
    /// A new connection's, where the switch says; `other` makes the other controller.
    pub fn new(setting: &Setting, told: &Told, other: impl FnOnce() -> O) -> Control<O> {
        Control::begin(setting, told, None, other)
    }

    /// Begins anew, in the background with at most the window that there was.
    fn begin(
        setting: &Setting,
        told: &Told,
        before: Option<u64>,
        other: impl FnOnce() -> O,
    ) -> Control<O> {
        if !setting.switch.is_background() {
            return Control::Competes(other());
        }
        let before = before.map_or(INITIAL_WINDOW, |bytes| told.packets(bytes));
        let window = before.clamp(1, INITIAL_WINDOW);
        Control::Yields(Box::new(Host::new(setting, told, window)))
    }

    /// Moves it to where the switch says. `window` is that of the other controller in bytes.
    pub fn settle(
        &mut self,
        setting: &Setting,
        told: &Told,
        other: impl FnOnce() -> O,
        window: impl FnOnce(&O) -> u64,
    ) {
        let yields = matches!(self, Control::Yields(_));
        if yields != setting.switch.is_background() {
            let before = match self {
                Control::Yields(_) => None,
                Control::Competes(other) => Some(window(other)),
            };
            self.close(told);
            *self = Control::begin(setting, told, before, other);
        }
    }

    /// What a person wants to see of the algorithm; nothing in the foreground.
    pub fn show(&self) -> Vec<Value> {
        match self {
            Control::Yields(host) => host.show(),
            Control::Competes(_) => Vec::new(),
        }
    }

    /// The connection ends.
    pub fn close(&mut self, told: &Told) {
        if let Control::Yields(host) = self {
            host.close(told);
        }
    }
}
