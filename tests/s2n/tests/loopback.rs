// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Real sockets: what is sent arrives whole, under every algorithm, and while it is switched.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use netnice_s2n::{Algorithm, Background, Class, Config, Group};
use netnice_s2n_loopback::{receive, send, Peer};

/// Bytes that differ at every place.
fn content(bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

/// As a test fails that waits for ever.
async fn within<T>(seconds: u64, what: impl Future<Output = Result<T>>) -> T {
    tokio::time::timeout(Duration::from_secs(seconds), what).await.expect("in time").expect("whole")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_arrives_whole_under_every_algorithm() {
    let mut peer = Peer::start().expect("a server");
    let data = content(300_000);
    for algorithm in Algorithm::all() {
        within(60, async {
            let client = peer.client(Background::new(Config::new(algorithm)))?;
            let (mut here, mut there) = peer.connect(&client).await?;
            let (sent, received) = tokio::join!(send(&mut here, &data), receive(&mut there));
            sent?;
            assert!(received? == data, "{algorithm:?}");
            Ok(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_switched_every_few_milliseconds_sends_all() {
    let mut peer = Peer::start().expect("a server");
    let background = Background::of_class(Class::default());
    let switch = background.switch();
    let data = content(20_000_000);
    within(60, async {
        let client = peer.client(background)?;
        let (mut here, mut there) = peer.connect(&client).await?;
        let turning = tokio::spawn(async move {
            loop {
                switch.to_foreground();
                tokio::time::sleep(Duration::from_millis(3)).await;
                switch.to_background();
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
        });
        let (sent, received) = tokio::join!(send(&mut here, &data), receive(&mut there));
        turning.abort();
        sent?;
        assert!(received? == data);
        Ok(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_of_one_group_on_several_threads_send_all() {
    let mut peer = Peer::start().expect("a server");
    let grouped = Algorithm::all().find(|a| a.divides()).expect("one of the list");
    let group = Group::new(false);
    let background = Background::new(Config::new(grouped)).in_group(&group);
    let data = Arc::new(content(1_000_000));
    within(60, async {
        let mut tasks = Vec::new();
        for _ in 0..4 {
            let client = peer.client(background.clone())?;
            let (mut here, mut there) = peer.connect(&client).await?;
            let data = data.clone();
            tasks.push(tokio::spawn(async move {
                let (sent, received) = tokio::join!(send(&mut here, &data), receive(&mut there));
                sent?;
                assert!(received? == *data);
                drop(client);
                anyhow::Ok(())
            }));
        }
        assert_eq!(group.members(), 4);
        for task in tasks {
            task.await??;
        }
        Ok(())
    })
    .await;
}
