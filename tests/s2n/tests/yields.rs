// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A transfer in the background beside a user's, over one bottleneck in real time: what each gets, and what a
//! switch changes.

use std::time::Duration;

use anyhow::Result;
use netnice_s2n::{Background, Class};
use netnice_s2n_loopback::relay::Relay;
use netnice_s2n_loopback::Peer;
use s2n_quic::client::Client;
use s2n_quic::provider::congestion_controller::Cubic;

/// Sends for ever; returns the port that it sends from.
async fn endless(peer: &mut Peer, relay: &Relay, client: &Client) -> Result<u16> {
    let (mut here, mut there) = peer.connect_by(relay.address(), client).await?;
    let port = here.local_addr()?.port();
    tokio::spawn(async move {
        let mut stream = here.open_send_stream().await?;
        loop {
            stream.send(vec![7; 10_000].into()).await?;
        }
        #[allow(unreachable_code)]
        anyhow::Ok(())
    });
    tokio::spawn(async move {
        let mut stream = there.accept_receive_stream().await?.expect("a stream");
        while stream.receive().await?.is_some() {}
        anyhow::Ok(())
    });
    Ok(port)
}

/// The share of the first of two ports in what passes, after some seconds to settle.
async fn share(relay: &Relay, ports: [u16; 2]) -> f64 {
    tokio::time::sleep(Duration::from_secs(5)).await;
    let before = ports.map(|port| relay.passed(port));
    tokio::time::sleep(Duration::from_secs(10)).await;
    let [one, other] = [0, 1].map(|i| (relay.passed(ports[i]) - before[i]) as f64);
    one / (one + other)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transfer_in_the_background_yields_to_a_user_until_it_is_switched() {
    let mut peer = Peer::start().expect("a server");
    let relay = Relay::start(peer.address().expect("bound")).expect("a socket");
    let background = Background::of_class(Class::default());
    let switch = background.switch();
    let ours = peer.client(background).expect("a client");
    let theirs = peer.client(Cubic::default()).expect("a client");
    let port = endless(&mut peer, &relay, &ours).await.expect("connected");
    tokio::time::sleep(Duration::from_secs(3)).await;
    let before = relay.passed(port);
    tokio::time::sleep(Duration::from_secs(5)).await;
    let alone = (relay.passed(port) - before) as f64 / 5e6;
    let user = endless(&mut peer, &relay, &theirs).await.expect("connected");
    let yielding = share(&relay, [port, user]).await;
    switch.to_foreground();
    let competing = share(&relay, [port, user]).await;
    switch.to_background();
    let again = share(&relay, [port, user]).await;
    println!("s2n_alone {alone:.3} share");
    println!("s2n_background {yielding:.3} share");
    println!("s2n_foreground {competing:.3} share");
    println!("s2n_background_again {again:.3} share");
    // in real time, beside whatever else this machine does: the bounds are wide. Those in virtual time are narrow.
    assert!(alone > 0.15, "{alone}: it took the delays of ACKs for a queue");
    assert!(yielding < competing / 2.0, "{yielding}, and {competing} in the foreground");
    assert!(competing > 0.25, "{competing}");
    assert!(again < competing / 2.0, "{again}, and {competing} in the foreground");
}
