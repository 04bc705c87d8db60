// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! CPU time of QUIC over loopback under a controller of ours, over that under quinn's own CUBIC: both
//! ends, in pairs one after the other. `cpu PAIRS MEGABYTES`; prints `name value unit`.

#![forbid(unsafe_code)]

use std::sync::Arc;

use anyhow::{Context, Result};
use netnice_quinn::{Algorithm, Background, Class, Config};
use quinn::congestion::{ControllerFactory, CubicConfig};
use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig};

type Factory = Arc<dyn ControllerFactory + Send + Sync>;

/// Ticks of this process' threads until now.
fn ticks() -> Result<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<_> = stat.rsplit(')').next().context("no name")?.split_whitespace().collect();
    Ok(fields[11].parse::<f64>()? + fields[12].parse::<f64>()?)
}

/// Sends so many bytes; returns the ticks that it took.
async fn transfer(factory: Factory, bytes: usize) -> Result<f64> {
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
    let mut config = ClientConfig::with_root_certificates(Arc::new(roots))?;
    config.transport_config(Arc::new(transport));
    let client = Endpoint::client("127.0.0.1:0".parse()?)?;
    let connecting = client.connect_with(config, server.local_addr()?, "localhost")?;
    let (here, there) = tokio::try_join!(connecting, server.accept().await.context("closed")?)?;
    let before = ticks()?;
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
    Ok(ticks()? - before)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).map(|a| a.parse());
    let pairs = arguments.next().transpose()?.unwrap_or(5);
    let bytes = arguments.next().transpose()?.unwrap_or(500) << 20;
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
            let own = transfer(Arc::new(CubicConfig::default()), bytes).await?;
            ratios.push(transfer(factory.clone(), bytes).await? / own);
        }
        ratios.sort_by(f64::total_cmp);
        let (least, most) = (ratios[0], ratios[ratios.len() - 1]);
        println!("quinn_cpu_{name} {:.3} ratio", ratios[ratios.len() / 2]);
        eprintln!("{name}: {pairs} pairs, from {least:.3} to {most:.3}");
    }
    Ok(())
}
