// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Who waits for the end of a gap: quinn's controllers have no timer, and no clock while they are
//! asked for a window. Whoever asks gives the time and is told when to ask again.

use std::cell::RefCell;
use std::time::Instant;

use netnice_host::Switch;

struct Asking {
    now: Instant,
    again: Option<Instant>,
    /// Those whose change may end the gap.
    switches: Vec<Switch>,
}

thread_local! {
    static ASKING: RefCell<Option<Asking>> = const { RefCell::new(None) };
}

/// Runs `f`, in which quinn-proto may ask controllers for windows; `now` is the time that it gives to
/// quinn-proto. Returns when a gap ends that held data back, if one did: `poll_transmit` is to be called
/// then, as at a timeout of quinn's.
///
/// ```
/// # use std::time::Instant;
/// # fn loop_body(connection: &mut quinn_proto::Connection, now: Instant, buffer: &mut Vec<u8>) {
/// let (transmit, again) = netnice_quinn::gaps(now, || connection.poll_transmit(now, 10, buffer));
/// // send `transmit`, and wake at the lesser of `again` and `connection.poll_timeout()`
/// # let _ = (transmit, again);
/// # }
/// ```
pub fn gaps<T>(now: Instant, f: impl FnOnce() -> T) -> (T, Option<Instant>) {
    let (result, again, _) = watched(now, f);
    (result, again)
}

/// As [`gaps`], with the switches of the connections that were held back.
pub(crate) fn watched<T>(now: Instant, f: impl FnOnce() -> T) -> (T, Option<Instant>, Vec<Switch>) {
    let asking = Asking { now, again: None, switches: Vec::new() };
    let before = ASKING.replace(Some(asking));
    let result = f();
    let asked = ASKING.replace(before);
    let (again, switches) = asked.map_or((None, Vec::new()), |a| (a.again, a.switches));
    (result, again, switches)
}

/// The time, if somebody waits for the end of a gap.
pub(crate) fn now() -> Option<Instant> {
    ASKING.with_borrow(|asking| asking.as_ref().map(|a| a.now))
}

/// Data waits for a gap to end.
pub(crate) fn wait(until: Instant, switch: &Switch) {
    ASKING.with_borrow_mut(|asking| {
        if let Some(asking) = asking {
            asking.again = Some(asking.again.map_or(until, |at| at.min(until)));
            asking.switches.push(switch.clone());
        }
    });
}
