// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Who drives a connection wakes at the end of a gap, or when a switch ends it.

use std::future::poll_fn;
use std::sync::Mutex;
use std::task::Poll;

use quinn::Runtime;
use tokio::sync::oneshot;

use super::*;
use crate::{Gaps, Switch};

/// Drives something that is in a gap until then, unless `over` says that it has ended. Returns what tells
/// of the end.
fn drive(
    switch: &Switch,
    until: Instant,
    over: impl Fn() -> bool + Send + 'static,
) -> oneshot::Receiver<()> {
    let (done, end) = oneshot::channel();
    let done = Mutex::new(Some(done));
    let switch = switch.clone();
    let gaps = Gaps::over(quinn::default_runtime().expect("in a runtime"));
    gaps.spawn(Box::pin(poll_fn(move |_| {
        if !over() {
            crate::gaps::wait(until, &switch);
            return Poll::Pending;
        }
        done.lock().expect("one thread").take().map(|done| done.send(()));
        Poll::Ready(())
    })));
    end
}

#[tokio::test]
async fn the_end_of_a_gap_wakes_it_and_not_before() {
    let switch = Switch::default();
    let until = Instant::now() + BASE;
    let end = drive(&switch, until, move || Instant::now() >= until);
    end.await.expect("it ended");
    assert!(until <= Instant::now());
}

#[tokio::test]
async fn a_switch_wakes_whoever_is_in_a_long_gap() {
    let switch = Switch::default();
    let hour = Instant::now() + Duration::from_secs(3600);
    let asked = switch.clone();
    let mut end = drive(&switch, hour, move || !asked.is_background());
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(end.try_recv().is_err(), "it is in the gap");
    switch.to_foreground();
    tokio::time::timeout(Duration::from_secs(10), end).await.expect("woken").expect("it ended");
}

#[tokio::test]
async fn who_no_longer_waits_is_forgotten() {
    let switch = Switch::default();
    let until = Instant::now() + Duration::from_millis(20);
    drive(&switch, until, move || Instant::now() >= until).await.expect("it ended");
    tokio::task::yield_now().await;
    assert_eq!(switch.waiting_tasks(), 0);
}
