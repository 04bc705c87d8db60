// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a predictor tells: predictions, and its sizes.

use std::sync::Arc;

use serde::Serialize;

use super::model::{Id, Served};

/// A prediction.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// The object's number.
    #[serde(skip)]
    pub id: Id,
    /// The object's path.
    pub path: Arc<str>,
    /// Probability that it is requested within the window.
    pub probability: f64,
    /// Whether as many addresses made this step as [`Settings`](super::Settings) asks for.
    pub shared: bool,
    /// Whether the last page loads it by itself, as an image or a style sheet.
    pub part: bool,
    /// What the origin's answers through the proxy say.
    #[serde(skip)]
    pub served: Served,
    /// Length in bytes, as served or, if it was not, as logged.
    pub bytes: u64,
}

/// Sizes, for metrics and reports.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Size {
    /// Objects known.
    pub objects: usize,
    /// Contexts known.
    pub contexts: usize,
    /// Clients followed.
    pub clients: usize,
    /// Estimated memory of the model in bytes.
    pub bytes: usize,
    /// Requests learned, ever.
    pub learned: u64,
    /// How often all counts were halved to make room.
    pub halved: u64,
}
