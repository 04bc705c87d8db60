// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What is learned and saved: objects, contexts, and what followed them.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::range;

/// Longest context, in pages.
pub const MOST_N: usize = 4;
/// Longest window, in pages.
pub const MOST_W: usize = 64;

const YEAR_S: i64 = 366 * 24 * 3600;

/// How the predictor learns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// Longest context, in pages: 1 to [`MOST_N`].
    pub n: usize,
    /// Window, in pages: 1 to [`MOST_W`].
    pub w: usize,
    /// Bound of the model's memory, in bytes.
    pub memory_bytes: usize,
    /// Most clients that are followed at once.
    pub clients: usize,
    /// Seconds without a request after which a client's history ends.
    pub expiry_s: i64,
    /// Most pages that one client teaches before it expires: robots and attackers do not outvote
    /// people.
    pub lesson: u32,
    /// Distinct addresses, 1 to 16, that must have made a step before it is suggested to others. One
    /// person has five at times: a phone's and one at home, each of IPv4 and of IPv6, and one at work.
    pub addresses: u8,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            n: 2,
            w: 5,
            memory_bytes: 64 << 20,
            clients: 50_000,
            expiry_s: 1800,
            lesson: 200,
            addresses: 6,
        }
    }
}

impl Settings {
    /// Says which setting is out of its range.
    ///
    /// # Errors
    /// A sentence that names the setting and its range.
    pub fn check(&self) -> Result<(), String> {
        range::check([
            ("n", self.n, 1..=MOST_N),
            ("w", self.w, 1..=MOST_W),
            ("memory_bytes", self.memory_bytes, 1 << 16..=1 << 40),
            ("clients", self.clients, 1..=10_000_000),
            ("addresses", self.addresses.into(), 1..=16),
        ])?;
        range::check([("expiry_s", self.expiry_s, 1..=YEAR_S)])
    }
}

/// For numbers that the predictor gave itself; what clients choose is hashed by the standard's.
pub(super) type Quick = foldhash::fast::RandomState;

/// Number of an object within one predictor.
pub type Id = u32;
pub(super) type Context = [Id; MOST_N]; // oldest page first, 0 before it: numbers start at 1

/// What is known of an object from the origin's answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Served {
    /// Known from logs only: the origin has not answered it through the proxy.
    No,
    /// The last answer may be reused by any client; its length in bytes.
    Reusable(u64),
    /// The last answer was an error, private, or not cacheable.
    Refused,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Object {
    pub(super) path: Arc<str>,
    /// Bytes of the largest logged answer.
    pub(super) logged_bytes: u64,
    pub(super) served: Served,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Edge {
    pub(super) to: Id,
    pub(super) seen: u32,
    /// A bit for each address that made this step, chosen by its hash: at least as many addresses as
    /// bits, and none can be told from them.
    pub(super) by: u32,
    /// Whether the object was requested with the context's only page as `Referer`.
    pub(super) part: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Node {
    pub(super) seen: u32,
    pub(super) edges: Vec<Edge>, // by `to`
}

impl Node {
    /// How often the object followed.
    pub(super) fn followed(&self, object: Id) -> u32 {
        let edge = self.edges.binary_search_by_key(&object, |e| e.to);
        // a window whose start was forgotten may still count: no more than all followed
        edge.map_or(0, |at| self.edges[at].seen.min(self.seen))
    }
}

/// What is saved: everything but clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Model {
    pub(crate) settings: Settings,
    pub(super) objects: Vec<Option<Object>>,
    pub(super) nodes: HashMap<Context, Node, Quick>,
    /// Requests learned, ever.
    pub(super) learned: u64,
    /// How often counts were halved.
    pub(super) halved: u64,
}

impl Model {
    /// Takes what was saved before there were bits: a tag of the only address, or 0 for several.
    pub(crate) fn read_tags(&mut self) {
        for edge in self.nodes.values_mut().flat_map(|node| &mut node.edges) {
            edge.by = if edge.by == 0 { 0b11 } else { 0b1 };
        }
    }

    /// Whether every number stands for an object, as in any model that was saved.
    pub(crate) fn is_sound(&self) -> bool {
        let known = |id: Id| self.objects.get(id as usize).is_some_and(Option::is_some);
        self.settings.check().is_ok()
            && matches!(self.objects.first(), Some(None))
            && self.nodes.iter().all(|(context, node)| {
                context.iter().all(|id| *id == 0 || known(*id))
                    && node.edges.iter().all(|e| known(e.to))
                    && node.edges.is_sorted_by_key(|e| e.to)
            })
    }
}

/// Halves the counts of a context, rounding its own up and its objects' down, so that none becomes
/// likelier than certain; forgets what falls to zero and returns how much did.
pub(super) fn halve(node: &mut Node) -> usize {
    let before = node.edges.len();
    node.seen = node.seen.div_ceil(2);
    node.edges.iter_mut().for_each(|e| e.seen /= 2);
    node.edges.retain(|e| e.seen > 0);
    before - node.edges.len()
}
