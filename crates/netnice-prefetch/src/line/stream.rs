// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The two directions of a TCP socket that somebody else switches meanwhile.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{ready, Context, Poll};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

/// The socket's two directions, while a [`Line`](super::Line) keeps it for switching.
#[derive(Debug)]
pub struct Stream(pub Arc<TcpStream>);

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.0.poll_read_ready(cx))?;
            let room = buf.remaining();
            let mut got = 0;
            let result = self.0.try_io(Interest::READABLE, || {
                got = self.0.try_read_buf(buf)?;
                // nothing is left: waiting for more at once spares a call that would say so
                match 0 < got && got < room {
                    true => Err(io::ErrorKind::WouldBlock.into()),
                    false => Ok(()),
                }
            });
            match result {
                Err(e) if got == 0 && e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) if got == 0 => return Poll::Ready(Err(e)),
                _ => return Poll::Ready(Ok(())),
            }
        }
    }
}

impl Stream {
    fn poll_send(
        &self,
        cx: &mut Context<'_>,
        mut send: impl FnMut(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.0.poll_write_ready(cx))?;
            match send(&self.0) {
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result),
            }
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(cx, |socket| socket.try_write(buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(cx, |socket| socket.try_write_vectored(bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = || SockRef::from(&*self.0).shutdown(std::net::Shutdown::Write);
        Poll::Ready(self.0.try_io(Interest::WRITABLE, shut).or_else(|e| match e.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected => Ok(()),
            _ => Err(e),
        }))
    }
}
