// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What TCP knows of this network namespace's connections, whatever their control is: sock_diag(7).

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;

use netlink_packet_core::{
    NetlinkHeader, NetlinkMessage, NetlinkPayload, NLM_F_DUMP, NLM_F_REQUEST,
};
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP};
use netlink_packet_sock_diag::inet::nlas::{Nla, TcpInfo};
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, SocketId, StateFlags};
use netlink_packet_sock_diag::SockDiagMessage;
use netlink_sys::{protocols::NETLINK_SOCK_DIAG, Socket, SocketAddr as Kernel};

use crate::error::io;
use crate::Result;

/// `TCP_CA_Recovery` of linux/tcp.h, which `TCP_CA_Loss` is above.
const RECOVERY: u8 = 3;

/// A connection, as its TCP knows it. Times are sums since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Tcp {
    /// It sends again what was lost.
    pub recovers: bool,
    /// Payload that left, what was sent again too, bytes; and in how many packets, ACKs included.
    pub sent: u64,
    pub packets: u32,
    /// For so long it had something to send or to be acknowledged, microseconds.
    pub busy_us: u64,
    /// For so long of that the receiver's window let it send nothing more.
    pub receiver_us: u64,
    /// For so long of that its send buffer had room for no more.
    pub buffer_us: u64,
}

/// Local and remote address.
pub type Ends = (SocketAddr, SocketAddr);

/// All connections of this network namespace that are established or close.
///
/// # Errors
/// When the kernel does not answer.
pub fn connections() -> Result<HashMap<Ends, Tcp>> {
    let mut found = HashMap::new();
    for (family, any) in [(AF_INET, SocketId::new_v4()), (AF_INET6, SocketId::new_v6())] {
        let request = InetRequest {
            family,
            protocol: IPPROTO_TCP,
            extensions: ExtensionFlags::INFO,
            states: StateFlags::all() & !(StateFlags::LISTEN | StateFlags::TIME_WAIT),
            socket_id: any,
        };
        ask(request, &mut found).map_err(io("cannot ask the kernel for its connections"))?;
    }
    Ok(found)
}

fn ask(request: InetRequest, found: &mut HashMap<Ends, Tcp>) -> io::Result<()> {
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    let mut message = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);
    let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
    socket.bind_auto()?;
    socket.connect(&Kernel::new(0, 0))?;
    socket.send(&bytes, 0)?;
    loop {
        let (answer, _) = socket.recv_from_full()?;
        let mut rest = &answer[..];
        while !rest.is_empty() {
            let message = NetlinkMessage::<SockDiagMessage>::deserialize(rest)
                .map_err(|e| io::Error::other(e.to_string()))?;
            match message.payload {
                NetlinkPayload::InnerMessage(SockDiagMessage::InetResponse(one)) => {
                    let info = one.nlas.iter().find_map(|nla| match nla {
                        Nla::TcpInfo(info) => Some(Tcp::from(info)),
                        _ => None,
                    });
                    let id = &one.header.socket_id;
                    let end = |ip: std::net::IpAddr, port| SocketAddr::new(ip.to_canonical(), port);
                    let ends = (
                        end(id.source_address, id.source_port),
                        end(id.destination_address, id.destination_port),
                    );
                    found.extend(info.map(|info| (ends, info)));
                }
                // a kernel without IPv6 knows no such connections
                NetlinkPayload::Done(_) | NetlinkPayload::Error(_) => return Ok(()),
                _ => {}
            }
            let aligned = (message.header.length as usize).next_multiple_of(4).max(4);
            rest = &rest[aligned.min(rest.len())..];
        }
    }
}

impl From<&TcpInfo> for Tcp {
    fn from(info: &TcpInfo) -> Tcp {
        Tcp {
            recovers: info.ca_state >= RECOVERY,
            sent: info.bytes_sent,
            packets: info.segs_out,
            busy_us: info.busy_time,
            receiver_us: info.rwnd_limited,
            buffer_us: info.sndbuf_limited,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_sender_whose_receiver_reads_nothing_waits_for_the_receivers_window() {
        for any in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(any).expect("a free port");
            let remote = listener.local_addr().expect("it is bound");
            let mut sender = TcpStream::connect(remote).expect("it listens");
            let ends = (sender.local_addr().expect("connected"), remote);
            let idle = connections().expect("the kernel answers")[&ends];
            assert_eq!((idle.busy_us, idle.receiver_us), (0, 0));
            sender.set_nonblocking(true).expect("a socket");
            // until neither buffer takes more
            let full = || connections().expect("the kernel answers")[&ends].receiver_us > 0;
            let mut tries = 0;
            while !full() {
                let _ = sender.write(&[0; 1 << 20]);
                std::thread::sleep(std::time::Duration::from_millis(5));
                tries += 1;
                assert!(tries < 1000, "the receiver's window never closed");
            }
        }
    }
}
