// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Defaults of keys, where they are not those of their types.

pub fn warmup_s() -> f64 {
    3.0
}
pub fn measure_s() -> f64 {
    30.0
}
pub fn drain_s() -> f64 {
    30.0
}
/// The congestion control of Linux and of quinn, if nobody chooses another.
pub const CONTROL: &str = "cubic";

pub fn control() -> String {
    CONTROL.into()
}
pub fn shape() -> f64 {
    1.5
}
pub fn mean_bytes() -> u64 {
    30_000
}
pub fn max_bytes() -> u64 {
    10_000_000
}
pub fn load() -> f64 {
    0.5
}
pub fn flows() -> u32 {
    1
}
pub fn packet_bytes() -> u32 {
    1024
}
pub fn limit_packets() -> u32 {
    1000
}
pub fn on_off_ms() -> f64 {
    250.0
}
pub fn part() -> f64 {
    1.0
}
pub fn brings() -> u32 {
    2
}
