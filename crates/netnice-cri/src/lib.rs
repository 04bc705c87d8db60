// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Pods of this node by their labels. Kubernetes keeps labels in its API server, and tells them to the
//! container runtime alone. The runtime tells them to whoever asks at its socket: CRI, the Container
//! Runtime Interface of Kubernetes, version 1.

#![forbid(unsafe_code)]

mod messages;

use std::fmt::{self, Display};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use http::uri::PathAndQuery;
use messages::{ListPodSandboxRequest, ListPodSandboxResponse, PodSandboxFilter, PodSandboxState};
use tonic::client::Grpc;
use tonic::transport::Endpoint;
use tonic_prost::ProstCodec;

/// How long the runtime may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest answer that is taken, bytes: runtimes send 16 MiB, and what pods are annotated with is in it,
/// 256 KiB of each.
const LONGEST: usize = 32 << 20;

/// Where the runtimes listen, unless they are told otherwise: containerd, CRI-O, containerd of k3s, cri-dockerd.
const SOCKETS: [&str; 4] = [
    "/run/containerd/containerd.sock",
    "/run/crio/crio.sock",
    "/run/k3s/containerd/containerd.sock",
    "/run/cri-dockerd.sock",
];

/// A label of pods, as kubectl writes it: `KEY=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    key: String,
    value: String,
}

impl FromStr for Label {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Label, &'static str> {
        match text.split_once('=') {
            Some((key, value)) if !key.is_empty() && !value.contains('=') => {
                Ok(Label { key: key.into(), value: value.into() })
            }
            _ => Err("a label is KEY=VALUE, such as netnice/class=idle"),
        }
    }
}

impl Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

/// A pod that runs on this node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pod {
    pub namespace: String,
    pub name: String,
    /// The kubelet names its cgroup after it.
    pub uid: String,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "no container runtime listens on this node ({}); say where: --runtime SOCKET",
        SOCKETS.join(", ")
    )]
    NoRuntime,
    #[error("cannot ask the container runtime at {}: {why}", socket.display())]
    Unasked { socket: PathBuf, why: String },
}

/// The container runtime of this node.
#[derive(Clone, Debug)]
pub struct Runtime {
    socket: PathBuf,
}

impl Runtime {
    /// The one that listens at this socket.
    pub fn at(socket: PathBuf) -> Runtime {
        Runtime { socket }
    }

    /// The one that listens where runtimes usually do.
    ///
    /// # Errors
    /// When none does.
    pub fn find() -> Result<Runtime, Error> {
        let found = SOCKETS.iter().find(|socket| Path::new(socket).exists());
        found.map(|socket| Runtime::at(socket.into())).ok_or(Error::NoRuntime)
    }

    /// The pods with a label that run, in the order of their names. Waits 5 s at most.
    ///
    /// # Errors
    /// When it cannot be asked, or does not answer.
    pub fn pods(&self, label: &Label) -> Result<Vec<Pod>, Error> {
        let failed = |why: String| Error::Unasked { socket: self.socket.clone(), why };
        let asks = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let asked = asks
            .map_err(|e| failed(e.to_string()))?
            .block_on(async { tokio::time::timeout(PATIENCE, list(&self.socket, label)).await });
        match asked {
            Ok(pods) => pods.map_err(failed),
            Err(_) => Err(failed(format!("no answer within {} s", PATIENCE.as_secs()))),
        }
    }
}

/// The innermost reason: the outer ones say "transport error".
fn reason(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.last().map_or_else(String::new, ToString::to_string)
}

async fn list(socket: &Path, label: &Label) -> Result<Vec<Pod>, String> {
    let endpoint = Endpoint::from_shared(format!("unix://{}", socket.display()));
    let channel = endpoint.map_err(|e| reason(&e))?.connect().await.map_err(|e| reason(&e))?;
    let mut runtime = Grpc::new(channel).max_decoding_message_size(LONGEST);
    runtime.ready().await.map_err(|e| reason(&e))?;
    let filter = PodSandboxFilter {
        id: String::new(),
        state: Some(PodSandboxState::READY),
        label_selector: [(label.key.clone(), label.value.clone())].into(),
    };
    let request = tonic::Request::new(ListPodSandboxRequest { filter: Some(filter) });
    let method = PathAndQuery::from_static("/runtime.v1.RuntimeService/ListPodSandbox");
    let answer = runtime.unary(request, method, ProstCodec::default()).await;
    let listed: ListPodSandboxResponse = answer.map_err(|e| e.message().to_string())?.into_inner();
    let mut pods: Vec<_> = listed.items.into_iter().filter_map(|pod| pod.metadata).collect();
    // a pod whose sandbox was made anew has two for a moment
    pods.sort_by(|a, b| (&a.namespace, &a.name, &a.uid).cmp(&(&b.namespace, &b.name, &b.uid)));
    pods.dedup_by(|a, b| a.uid == b.uid);
    let pod =
        |m: messages::PodSandboxMetadata| Pod { namespace: m.namespace, name: m.name, uid: m.uid };
    Ok(pods.into_iter().map(pod).collect())
}

#[cfg(test)]
mod tests;
