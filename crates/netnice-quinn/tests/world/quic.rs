// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Connections of quinn-proto from one client to one server, each with a stream without end.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::BytesMut;
use netnice_quinn::{gaps, Background};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig,
    Event, ServerConfig, StreamEvent, StreamId, Transmit, TransportConfig,
};

const CLIENT: &str = "10.0.0.1:4433";
const SERVER: &str = "10.0.0.2:443";

struct Side {
    endpoint: Endpoint,
    connections: HashMap<ConnectionHandle, Connection>,
    streams: HashMap<ConnectionHandle, StreamId>,
    /// When to look at each again.
    due: HashMap<ConnectionHandle, Instant>,
    peer: SocketAddr,
    is_client: bool,
}

pub struct Quic {
    sides: [Side; 2],
    out: Vec<(bool, Vec<u8>)>,
    /// Whether the ends of gaps are awaited; else nobody looks again.
    awaits: bool,
    /// Datagrams that the client has sent.
    pub sent: u64,
    /// Bytes of streams that the server has read.
    pub read: u64,
}

impl Quic {
    pub fn new(background: &Background, connections: usize, awaits: bool, now: Instant) -> Quic {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).expect("made");
        let certificate = made.cert.der().clone();
        let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der());
        let mut roots = rustls::RootCertStore::empty();
        roots.add(certificate.clone()).expect("a certificate");
        let server = ServerConfig::with_single_cert(vec![certificate], key.expect("a key"));
        let mut client = ClientConfig::with_root_certificates(Arc::new(roots)).expect("roots");
        let mut transport = TransportConfig::default();
        transport.congestion_controller_factory(Arc::new(background.clone()));
        client.transport_config(Arc::new(transport));
        let side = |server: Option<ServerConfig>, peer: &str| Side {
            endpoint: Endpoint::new(
                Arc::new(EndpointConfig::default()),
                server.map(Arc::new),
                true,
                Some([7; 32]),
            ),
            connections: HashMap::new(),
            streams: HashMap::new(),
            due: HashMap::new(),
            peer: peer.parse().expect("an address"),
            is_client: peer == SERVER,
        };
        let mut sides = [side(None, SERVER), side(Some(server.expect("a server")), CLIENT)];
        for _ in 0..connections {
            let peer = sides[0].peer;
            let made = sides[0].endpoint.connect(now, client.clone(), peer, "localhost");
            let (handle, connection) = made.expect("it connects");
            sides[0].connections.insert(handle, connection);
            sides[0].due.insert(handle, now);
        }
        Quic { sides, out: Vec::new(), awaits, sent: 0, read: 0 }
    }

    /// A datagram arrives.
    pub fn receive(&mut self, to_server: bool, bytes: &[u8], now: Instant) {
        let side = &mut self.sides[usize::from(to_server)];
        let mut buffer = Vec::new();
        let data = BytesMut::from(bytes);
        match side.endpoint.handle(now, side.peer, None, None, data, &mut buffer) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(connection) = side.connections.get_mut(&handle) {
                    connection.handle_event(event);
                    side.due.insert(handle, now);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                let accepted = side.endpoint.accept(incoming, now, &mut buffer, None);
                let (handle, connection) = accepted.expect("it is accepted");
                side.connections.insert(handle, connection);
                side.due.insert(handle, now);
            }
            Some(DatagramEvent::Response(_)) | None => {}
        }
    }

    /// Does what is due. Returns what leaves, and when to look again.
    pub fn drive(&mut self, now: Instant) -> (Vec<(bool, Vec<u8>)>, Option<Instant>) {
        for side in &mut self.sides {
            let due = side.due.iter().filter(|(_, at)| **at <= now);
            let mut handles: Vec<_> = due.map(|(handle, _)| *handle).collect();
            handles.sort_by_key(|handle| handle.0);
            for handle in handles {
                self.read += side.serve(handle, now);
                match side.send(handle, now, self.awaits, &mut self.out) {
                    Some(at) => side.due.insert(handle, at),
                    None => side.due.remove(&handle),
                };
            }
        }
        let again = self.sides.iter().flat_map(|side| side.due.values()).min().copied();
        self.sent += self.out.iter().filter(|(to_server, _)| *to_server).count() as u64;
        (std::mem::take(&mut self.out), again)
    }
}

impl Side {
    /// Timers and events of a connection; returns how much was read.
    fn serve(&mut self, handle: ConnectionHandle, now: Instant) -> u64 {
        let connection = self.connections.get_mut(&handle).expect("it is here");
        if connection.poll_timeout().is_some_and(|at| at <= now) {
            connection.handle_timeout(now);
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected if self.is_client => {
                    let stream = connection.streams().open(Dir::Uni).expect("one is allowed");
                    self.streams.insert(handle, stream);
                }
                Event::Stream(StreamEvent::Opened { dir }) => {
                    let stream = connection.streams().accept(dir).expect("it is open");
                    self.streams.insert(handle, stream);
                }
                Event::ConnectionLost { reason } => panic!("{reason}"),
                _ => {}
            }
        }
        let Some(stream) = self.streams.get(&handle) else { return 0 };
        if self.is_client {
            while connection.send_stream(*stream).write(&[7; 10_000]).is_ok() {}
            return 0;
        }
        let mut read = 0;
        let mut receiving = connection.recv_stream(*stream);
        if let Ok(mut chunks) = receiving.read(true) {
            while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                read += chunk.bytes.len() as u64;
            }
            let _ = chunks.finalize();
        }
        read
    }

    /// What a connection may send now leaves; returns when to look again.
    fn send(
        &mut self,
        handle: ConnectionHandle,
        now: Instant,
        awaits: bool,
        out: &mut Vec<(bool, Vec<u8>)>,
    ) -> Option<Instant> {
        let connection = self.connections.get_mut(&handle).expect("it is here");
        loop {
            let mut buffer = Vec::new();
            let mut poll = || connection.poll_transmit(now, 10, &mut buffer);
            let (transmit, gap) = if awaits { gaps(now, poll) } else { (poll(), None) };
            let Some(Transmit { size, segment_size, .. }) = transmit else {
                return gap.into_iter().chain(connection.poll_timeout()).min();
            };
            let parts = buffer[..size].chunks(segment_size.unwrap_or(size));
            out.extend(parts.map(|part| (self.is_client, part.to_vec())));
        }
    }
}
