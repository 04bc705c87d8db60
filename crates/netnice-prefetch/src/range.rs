// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! From what to what the numbers may be that a user writes.

use std::fmt::Display;
use std::ops::RangeInclusive;

/// Says which of some numbers is first out of its range.
///
/// # Errors
/// A sentence that names the number, its value and its range.
pub fn check<T: Display + PartialOrd>(
    numbers: impl IntoIterator<Item = (&'static str, T, RangeInclusive<T>)>,
) -> Result<(), String> {
    match numbers.into_iter().find(|(_, value, range)| !range.contains(value)) {
        Some((name, value, range)) => {
            Err(format!("{name} is {value}, not {} to {}", range.start(), range.end()))
        }
        None => Ok(()),
    }
}
