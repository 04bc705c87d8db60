// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A connection of two priorities on loopback.

use std::future::poll_fn;
use std::task::Wake;

use tokio::net::TcpListener;
use tokio::time::timeout;

use super::*;

const PATIENCE: Duration = Duration::from_secs(60);

/// A connected socket and a background control that the kernel has beside its default.
async fn line() -> (Arc<Line>, TcpStream, Controls) {
    let available =
        std::fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control").unwrap();
    let default = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
    let other = available
        .split_whitespace()
        .find(|c| *c != default.trim())
        .expect("a second congestion control to switch to, such as reno");
    let controls = Controls::probe(other).unwrap();
    assert_eq!(controls.foreground, default.trim().as_bytes());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (socket, _) = listener.accept().await.unwrap();
    let line = Line::new(Arc::new(socket), Some(controls.clone()), PATIENCE).unwrap();
    (line, peer, controls)
}

fn socket(line: &Line) -> &Arc<TcpStream> {
    match &line.carrier {
        Carrier::Tcp(socket, ..) => socket,
        Carrier::Quic(_) => panic!("it is of TCP"),
    }
}

/// What the kernel says.
fn control(line: &Line) -> Vec<u8> {
    let name = SockRef::from(&**socket(line)).tcp_congestion().unwrap();
    name.into_iter().take_while(|b| *b != 0).collect()
}

struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn one_connection_is_switched_for_each_answer() {
    let (line, _peer, controls) = line().await;
    for _ in 0..2 {
        drop(line.foreground().unwrap());
        assert_eq!(control(&line), controls.foreground);
        drop(line.background().unwrap());
        assert_eq!(control(&line), controls.background);
    }
}

#[tokio::test]
async fn in_the_background_a_client_may_take_and_ask_late() {
    let (line, _peer, _) = line().await;
    let taken = || SockRef::from(&**socket(&line)).tcp_user_timeout().unwrap().unwrap();
    for _ in 0..2 {
        drop(line.foreground().unwrap());
        assert!(line.idle_until(PATIENCE).unwrap() <= Instant::now() + PATIENCE);
        assert_eq!(taken(), PATIENCE);
        drop(line.background().unwrap());
        assert!(line.idle_until(PATIENCE).unwrap() > Instant::now() + 2 * PATIENCE);
        assert_eq!(taken(), BACKGROUND_PATIENCE);
    }
}

#[tokio::test]
async fn background_answers_wait_while_a_demand_answer_is_under_way() {
    let (line, _peer, controls) = line().await;
    let woken = Arc::new(Flag(false.into()));
    let waker = woken.clone().into();
    let mut cx = Context::from_waker(&waker);
    let mut background = line.background().unwrap();
    assert!(background.poll_may_send(&mut cx).is_ready());
    let mut demand = line.foreground().unwrap();
    assert_eq!(control(&line), controls.foreground, "demand takes the connection back");
    assert!(background.poll_may_send(&mut cx).is_pending());
    assert!(demand.poll_may_send(&mut cx).is_ready());
    drop(demand);
    assert!(woken.0.load(Ordering::SeqCst));
    assert!(background.poll_may_send(&mut cx).is_ready());
    assert_eq!(control(&line), controls.background);
    drop(background);
    assert!(line.idle_until(PATIENCE).is_some());
}

#[tokio::test]
async fn an_answer_is_under_way_while_a_piece_of_it_is_kept() {
    let (line, _peer, controls) = line().await;
    let demand = line.foreground().unwrap();
    let piece = demand.keep();
    drop(demand);
    assert!(line.idle_until(PATIENCE).is_none());
    let mut ahead = line.background().unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    assert!(ahead.poll_may_send(&mut cx).is_pending());
    assert_eq!(control(&line), controls.foreground);
    drop(piece);
    assert!(ahead.poll_may_send(&mut cx).is_ready());
    assert_eq!(control(&line), controls.background);
}

#[tokio::test]
async fn the_background_begins_when_the_kernel_has_sent_the_foregrounds_tail() {
    let (line, peer, controls) = line().await;
    let demand = line.foreground().unwrap();
    let mut sent = 0;
    while let Ok(bytes) = socket(&line).try_write(&[b'.'; 65536]) {
        sent += bytes; // until nothing more fits
    }
    drop(demand);
    let mut ahead = line.background().unwrap();
    let waited = Duration::from_millis(300);
    let waits = timeout(waited, poll_fn(|cx| ahead.poll_may_send(cx))).await;
    assert!(waits.is_err(), "while the peer takes nothing");
    assert_eq!(control(&line), controls.foreground);
    let taking = async {
        let (mut got, mut buf) = (0, vec![0; 65536]);
        while got < sent {
            peer.readable().await.unwrap();
            got += peer.try_read(&mut buf).unwrap_or(0);
        }
    };
    let both = async { tokio::join!(taking, poll_fn(|cx| ahead.poll_may_send(cx))).1 };
    timeout(PATIENCE, both).await.expect("it begins").unwrap();
    assert_eq!(control(&line), controls.background);
}

#[tokio::test]
async fn without_controls_no_answer_goes_to_the_background() {
    let (line, _peer, _) = line().await;
    let plain = Line::new(socket(&line).clone(), None, PATIENCE).unwrap();
    assert!(plain.background().is_err());
    assert!(plain.foreground().is_ok());
    assert!(plain.idle_until(PATIENCE).is_some());
}

#[test]
fn an_unknown_control_is_refused_with_the_next_step() {
    let said = Controls::probe("nn_unknown").unwrap_err();
    assert!(said.contains("netnice enable"), "{said}");
}
