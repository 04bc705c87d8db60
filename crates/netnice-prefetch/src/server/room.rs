// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What the system's limit of open files leaves for connections.

use netnice_manners::say;
use rlimit::Resource;

use crate::config::Bounds;

/// Open files that are no connections: sockets that listen, the log, the model, and such.
const OTHERS: usize = 32;

/// Raises the limit of open files as far as it goes, and says so if the connections may need more.
pub fn allow_files(bounds: &Bounds) {
    let wanted = (bounds.connections + bounds.origin_connections + OTHERS) as u64;
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(allowed) if allowed < wanted => say!(
            "netnice-prefetch: {} connections may need {wanted} open files, and {allowed} are \
             allowed, so there will be fewer: raise the hard limit (ulimit -Hn, LimitNOFILE=), or lower \
             bounds.connections",
            bounds.connections
        ),
        Ok(_) => {}
        Err(error) => say!("netnice-prefetch: the limit of open files is unknown: {error}"),
    }
}

/// Lowers bounds to what the limit of open files allows, half of it for clients at least.
pub(super) fn fit(bounds: Bounds) -> Bounds {
    let Ok((files, _)) = Resource::NOFILE.get() else { return bounds };
    let files = usize::try_from(files).unwrap_or(usize::MAX).saturating_sub(OTHERS).max(2);
    let origin_connections = bounds.origin_connections.min(files / 2);
    let connections = bounds.connections.min(files - origin_connections);
    Bounds { connections, origin_connections, ..bounds }
}
