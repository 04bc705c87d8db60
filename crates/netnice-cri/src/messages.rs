// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What of CRI's messages is used, by the numbers of their fields in its definition
//! (runtime.v1, k8s.io/cri-api). A runtime's other fields are skipped.

use std::collections::HashMap;

#[derive(Clone, PartialEq, prost::Message)]
pub struct ListPodSandboxRequest {
    #[prost(message, optional, tag = "1")]
    pub filter: Option<PodSandboxFilter>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct PodSandboxFilter {
    #[prost(string, tag = "1")]
    pub id: String,
    #[prost(message, optional, tag = "2")]
    pub state: Option<PodSandboxState>,
    #[prost(map = "string, string", tag = "3")]
    pub label_selector: HashMap<String, String>,
}

/// `PodSandboxStateValue`: 0 is ready.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct PodSandboxState {
    #[prost(int32, tag = "1")]
    pub state: i32,
}

impl PodSandboxState {
    pub const READY: PodSandboxState = PodSandboxState { state: 0 };
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ListPodSandboxResponse {
    #[prost(message, repeated, tag = "1")]
    pub items: Vec<PodSandbox>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct PodSandbox {
    #[prost(message, optional, tag = "2")]
    pub metadata: Option<PodSandboxMetadata>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct PodSandboxMetadata {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub uid: String,
    #[prost(string, tag = "3")]
    pub namespace: String,
}
