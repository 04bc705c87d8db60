// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! `netnice-load sink`.

use std::net::SocketAddr;

use clap::Args;
use netnice_load::bulk;
use netnice_load::net::Stop;
use netnice_scenario::cli::Output;

use super::{announce, positive, seconds, Clock, Speak};

/// Receives the bulk flows of `send`, and checks every byte.
///
/// It prints "listening IP:PORT" when it is ready. It tells the sender of each finite flow how many
/// bytes arrived intact. A flow that the sender cut off is incomplete in the report, which is no
/// failure.
#[derive(Args)]
#[command(
    before_help = "Examples:\n  \
                   netnice-load sink --listen 127.0.0.1:9000 --warmup 3 --measure 30 --json -\n  \
                   netnice-load sink --listen 127.0.0.1:9000 --quic sink.der",
    after_help = "Exit status: 0 all went well, 1 a flow was not intact (the report has it), 2 wrong \
                  usage."
)]
pub struct Sink {
    /// Address and port to listen on; port 0 takes a free one.
    #[arg(long, value_name = "IP:PORT")]
    listen: SocketAddr,
    /// When measuring begins, in seconds after t = 0.
    #[arg(long, value_name = "SECONDS", value_parser = seconds, default_value = "0", requires = "measure")]
    warmup: f64,
    /// How long measuring lasts; the report has the bytes of that time too [default: not measured].
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    measure: Option<f64>,
    #[command(flatten)]
    clock: Clock,
    #[command(flatten)]
    speak: Speak,
    #[command(flatten)]
    output: Output,
}

impl Sink {
    pub async fn run(self, stop: Stop) -> anyhow::Result<()> {
        let sheet = self.output.open(&[])?;
        let listener = self.speak.listen(self.listen, None)?;
        let window = self
            .measure
            .map(|measure| bulk::Window { from_s: self.warmup, to_s: self.warmup + measure });
        let timeline = self.clock.timeline()?;
        announce(listener.local_addr())?;
        let report = bulk::sink(listener, window, timeline, stop).await?;
        let fault = report.fault();
        sheet.finish("sink", &report, fault)
    }
}
