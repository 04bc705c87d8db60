// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice-load serve`.

use std::net::SocketAddr;

use clap::Args;
use netnice_load::net::Stop;
use netnice_load::web;
use netnice_scenario::cli::Output;

use super::{announce, Speak};

/// Answers what `fetch` asks for, as a web server does.
///
/// A request is 16 bytes: the length and the seed of the content. The answer is that content. Then
/// the server closes the connection. Over QUIC both are the bodies of an HTTP/3 request and of its
/// answer. It prints "listening IP:PORT" when it is ready.
#[derive(Args)]
#[command(before_help = "Example: netnice-load serve --listen 127.0.0.1:8000 --control cubic")]
pub struct Serve {
    /// Address and port to listen on; port 0 takes a free one.
    #[arg(long, value_name = "IP:PORT")]
    listen: SocketAddr,
    /// Congestion control of the answers, as in nn_nice [default: the system's; over QUIC quinn's CUBIC].
    #[arg(long, value_name = "NAME")]
    control: Option<String>,
    #[command(flatten)]
    speak: Speak,
    #[command(flatten)]
    output: Output,
}

impl Serve {
    pub async fn run(self, stop: Stop) -> anyhow::Result<()> {
        let sheet = self.output.open(&[])?;
        let listener = self.speak.listen(self.listen, self.control.as_deref())?;
        announce(listener.local_addr())?;
        let report = web::serve(listener, stop).await?;
        sheet.finish("serve", &report, None)
    }
}
