// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Certificates: a server makes one when it starts, and a client trusts that one alone.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::Error;
use netnice_scenario::whole::WholeFile;

/// The name in all of them: clients know addresses, and which file.
pub const NAME: &str = "localhost";

/// What HTTP/3 is called in the handshake (RFC 9114, 3.1).
const PROTOCOL: &[u8] = b"h3";

/// A server with a new certificate, which is in the file now. The key is in memory alone.
pub fn made(file: &Path) -> Result<ServerConfig, Error> {
    let made = rcgen::generate_simple_self_signed(vec![NAME.into()]).expect("a name of a host");
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
    write(file, &certificate).map_err(|reason| {
        let next = "Choose a file in a directory that exists and is writable";
        Error::certificate(file, "cannot be written", &reason, next)
    })?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&TLS13])
        .expect("ring has TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .expect("the key is that of the certificate");
    config.alpn_protocols = vec![PROTOCOL.into()];
    Ok(config)
}

fn write(file: &Path, certificate: &CertificateDer) -> io::Result<()> {
    let mut whole = WholeFile::create(file)?;
    whole.write_all(certificate)?;
    whole.finish()
}

/// A client that trusts the certificate in the file.
pub fn trusted(file: &Path) -> Result<ClientConfig, Error> {
    let next = "Give the file that the server wrote with its own --quic";
    let bytes = fs::read(file).map_err(|e| Error::certificate(file, "cannot be read", &e, next))?;
    let mut roots = RootCertStore::empty();
    roots.add(bytes.into()).map_err(|e| Error::certificate(file, "is no certificate", &e, next))?;
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&TLS13])
        .expect("ring has TLS 1.3")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![PROTOCOL.into()];
    Ok(config)
}
