// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Certificate and key, as TCP and QUIC take them.

use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;

use quinn::crypto::rustls::QuicServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::ServerConfig;

use crate::config::{Error, Tls};
use crate::files;

/// The name of HTTP/3 in the handshake (RFC 9114, section 3.1).
const HTTP_3: &[u8] = b"h3";

/// What handshakes need.
#[derive(Clone)]
pub struct Secrets {
    /// Of connections over TCP.
    pub tcp: Arc<ServerConfig>,
    /// Of connections over QUIC, if HTTP/3 is served.
    pub quic: Option<quinn::ServerConfig>,
}

/// Reads certificate and key.
///
/// # Errors
/// If there are none, or they do not fit each other.
pub fn read(named: &Tls) -> Result<Secrets, Error> {
    let fail = |path: &Path, what: String| Error { place: path.display().to_string(), what };
    let no = |path: &Path, what: &str, why: &dyn Display| {
        fail(path, format!("no {what} in PEM can be read: {why}"))
    };
    let read = |path: &Path, what| files::read(path).map_err(|e| no(path, what, &e));
    let (cert, key) = ("certificate", "private key");
    let certs = CertificateDer::pem_slice_iter(&read(&named.cert, cert)?)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|e| no(&named.cert, cert, &e))?;
    let key = PrivateKeyDer::from_pem_slice(&read(&named.key, key)?)
        .map_err(|e| no(&named.key, key, &e))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tcp = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|b| b.with_no_client_auth().with_single_cert(certs, key))
        .map_err(|e| fail(&named.cert, format!("certificate and key cannot be used: {e}")))?;
    let mut quic = tcp.clone();
    tcp.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    quic.alpn_protocols = vec![HTTP_3.to_vec()];
    let quic = named.http3.then(|| {
        let quic = QuicServerConfig::try_from(quic).expect("ring has what QUIC begins with");
        quinn::ServerConfig::with_crypto(Arc::new(quic))
    });
    Ok(Secrets { tcp: Arc::new(tcp), quic })
}
