// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice-load echo`.

use std::net::SocketAddr;

use clap::Args;
use netnice_load::net::Stop;
use netnice_load::ping;
use netnice_scenario::cli::Output;

use super::announce;

/// Sends each UDP datagram back to where it came from: the other end of `probe`.
///
/// It prints "listening IP:PORT" when it is ready.
#[derive(Args)]
#[command(before_help = "Example: netnice-load echo --listen 127.0.0.1:7000")]
pub struct Echo {
    /// Address and port to receive on; port 0 takes a free one.
    #[arg(long, value_name = "IP:PORT")]
    listen: SocketAddr,
    #[command(flatten)]
    output: Output,
}

impl Echo {
    pub async fn run(self, stop: Stop) -> anyhow::Result<()> {
        let sheet = self.output.open(&[])?;
        let socket = ping::bind(self.listen).await?;
        announce(socket.local_addr())?;
        let report = ping::echo(socket, stop).await?;
        sheet.finish("echo", &report, None)
    }
}
