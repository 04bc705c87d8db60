// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The clock that algorithms are told: one for the process, since groups compare times of several
//! connections.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

static START: OnceLock<Instant> = OnceLock::new();

/// Microseconds since a second before the first time that anybody asked about. Earlier is 0.
pub fn us(now: Instant) -> u64 {
    let start = *START.get_or_init(|| now);
    let since = (now + Duration::from_secs(1)).saturating_duration_since(start);
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
