// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Numbers for people.

use std::time::Duration;

/// A number with its noun.
pub fn count(n: u64, one: &str, several: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { several })
}

/// Without what would control a terminal: anybody may call a process what they like.
pub fn visible(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// Bytes for people.
pub fn size(bytes: f64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = if unit == 0 || value >= 99.95 { 0 } else { 1 };
    format!("{value:.digits$} {}", units[unit])
}

/// Bits per second for people.
pub fn rate(bits: f64) -> String {
    let units = ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"];
    let larger = |unit: &usize| bits >= 1000f64.powi(*unit as i32 + 1);
    let unit = (0..units.len() - 1).take_while(larger).count();
    let digits = if unit == 0 { 0 } else { 2 };
    format!("{:.digits$} {}", bits / 1000f64.powi(unit as i32), units[unit])
}

/// Seconds for people.
pub fn span(seconds: f64) -> String {
    let s = seconds.round().max(0.0) as u64;
    match s {
        0..60 => format!("{s} s"),
        60..3600 => format!("{}:{:02} min", s / 60, s % 60),
        3600..172_800 => format!("{}:{:02} h", s / 3600, s / 60 % 60),
        _ => format!("{} days", s / 86_400),
    }
}

/// How much of a time the connections yielded, as the end of what else is said; nothing if they did
/// not: what packets wait in this host is not counted.
pub fn yields(yielded: Duration, of: Duration) -> String {
    match yielded.is_zero() {
        true => String::new(),
        false => {
            format!(", yielded {} of {}", span(yielded.as_secs_f64()), span(of.as_secs_f64()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_rates_and_times_are_short() {
        assert_eq!(size(0.0), "0 B");
        assert_eq!(size(999.6), "1.0 kB");
        assert_eq!(size(12_345_678.0), "12.3 MB");
        assert_eq!(size(250e9), "250 GB");
        assert_eq!(rate(0.0), "0 bit/s");
        assert_eq!(rate(999.0), "999 bit/s");
        assert_eq!(rate(1000.0), "1.00 kbit/s");
        assert_eq!(rate(18_820_000.0), "18.82 Mbit/s");
        assert_eq!(rate(4e12), "4.00 Tbit/s");
        assert_eq!(span(59.4), "59 s");
        assert_eq!(span(61.0), "1:01 min");
        assert_eq!(span(7260.0), "2:01 h");
        assert_eq!(span(200_000.0), "2 days");
    }
}
