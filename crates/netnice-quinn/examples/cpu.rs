// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! CPU time of QUIC over loopback under a controller of ours, over that under quinn's own CUBIC: both
//! ends, in pairs one after the other. `cpu PAIRS MEGABYTES [KILOBYTES]`; prints `name value unit`.
//!
//! Over loopback the queue is that of the CPU. Whoever yields to it has a smaller window, so it makes more round
//! trips for the same bytes, and each costs its own. With so many kilobytes out at most, both make the same.

#![forbid(unsafe_code)]

use std::sync::Arc;

use anyhow::{Context, Result};
use netnice_quinn::{Algorithm, Background, Class, Config};
use quinn::congestion::{ControllerFactory, CubicConfig};
use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig};

type Factory = Arc<dyn ControllerFactory + Send + Sync>;

/// CPU time in seconds of this thread, which is all there is, until now.
fn cpu_s() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/schedstat")?;
    Ok(stat.split_whitespace().next().context("no time")?.parse::<f64>()? / 1e9)
}

/// Sends so many bytes, of which at most so many are out; returns the CPU time that it took.
async fn transfer(factory: Factory, bytes: usize, most_out: Option<u64>) -> Result<f64> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
    let certificate = made.cert.der().clone();
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der())
        .map_err(anyhow::Error::msg)?;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.clone())?;
    let server = Endpoint::server(
        ServerConfig::with_single_cert(vec![certificate], key)?,
        "127.0.0.1:0".parse()?,
    )?;
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(factory);
    if let Some(most_out) = most_out {
        transport.send_window(most_out);
    }
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    config.transport_config(Arc::new(transport));
    let client = Endpoint::client("127.0.0.1:0".parse()?)?;
    let connecting = client.connect_with(config, server.local_addr()?, "localhost")?;
    let (here, there) = tokio::try_join!(connecting, server.accept().await.context("closed")?)?;
    let before = cpu_s()?;
    let sending = async {
        let mut stream = here.open_uni().await?;
        let part = vec![7; 1 << 16];
        for _ in 0..bytes / part.len() {
            stream.write_all(&part).await?;
        }
        stream.finish()?;
        stream.stopped().await?;
        anyhow::Ok(())
    };
    let receiving = async {
        let mut stream = there.accept_uni().await?;
        while stream.read_chunk(usize::MAX, true).await?.is_some() {}
        anyhow::Ok(())
    };
    tokio::try_join!(sending, receiving)?;
    Ok(cpu_s()? - before)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let pairs = arguments.next().map_or(Ok(5), |a| a.parse())?;
    let bytes = arguments.next().map_or(Ok(500), |a| a.parse::<usize>())? << 20;
    let most_out = arguments.next().map(|a| a.parse::<u64>()).transpose()?.map(|kb| kb << 10);
    let how = if most_out.is_some() { "_alike" } else { "" };
    let foreground = Background::of_class(Class::default());
    foreground.switch().to_foreground();
    let ordinary = Algorithm::all().next().context("the list has one")?;
    let ours: [(&str, Factory); 3] = [
        ("foreground", Arc::new(foreground)),
        ("ordinary", Arc::new(Background::new(Config::new(ordinary)))),
        ("background", Arc::new(Background::of_class(Class::default()))),
    ];
    for (name, factory) in ours {
        let mut ratios = Vec::new();
        for _ in 0..pairs {
            let own = transfer(Arc::new(CubicConfig::default()), bytes, most_out).await?;
            ratios.push(transfer(factory.clone(), bytes, most_out).await? / own);
        }
        ratios.sort_by(f64::total_cmp);
        let (least, most) = (ratios[0], ratios[ratios.len() - 1]);
        println!("quinn_cpu_{name}{how} {:.3} ratio", ratios[ratios.len() / 2]);
        eprintln!("{name}: {pairs} pairs, from {least:.3} to {most:.3}");
    }
    Ok(())
}
