// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! PPM-n/w (TCP Nice, section 6.1): from a client's last n pages, the objects that it will likely
//! request before the end of its next w pages, with probabilities; learned as requests come.
//!
//! **What is counted.** A context is a sequence of 1 to n pages that a client requested in a row.
//! Each time one occurs, a window opens that ends after the w'th next page of that client. An
//! object (page, image, ...) requested within the window is counted once for it.
//!
//! **What is predicted.** With c occurrences of a context, e of them followed by the object, PPM's
//! escape by method A (Cleary and Witten 1984) blends the orders, longest first:
//!
//! ```text
//! P_m = (e_m + P_(m-1)) / (c_m + 1)      P_0 = 0
//! ```
//!
//! A context seen once is thus believed half, and one seen often outweighs its shorter suffix.
//!
//! **Memory** is bounded by [`Settings::memory_bytes`]. When it is full, all counts are halved;
//! what falls to zero is forgotten, with the half of the clients that was idle longest and the objects
//! that nothing refers to any more. Rare and old sequences go first, and a model that has filled its memory follows the site's changes. Clients
//! are bounded by [`Settings::clients`]: the one that was idle longest goes first.
//!
//! **Trust.** A client is an address with a `User-Agent`, no cookie; of IPv6, the first 64 bits are the
//! address, since hosts change the others as they like. It teaches at most [`Settings::lesson`] pages
//! until it expires, and what fewer than [`Settings::addresses`] have done is not suggested to others.
//! Who is followed [`apart`](Client::apart) gets suggestions and teaches nothing: no path, no count.

mod client;
mod history;
mod model;
mod told;

use std::collections::HashMap;
use std::hash::RandomState;
use std::sync::Arc;

use lru::LruCache;

use crate::log::Entry;
use crate::rules;
pub use client::Client;
use history::{context_of, contexts, History, MOST_RECENT};
pub(crate) use model::Model;
use model::{halve, Context, Edge, Node, Object};
pub use model::{Id, Served, Settings, MOST_N, MOST_W};
pub use told::{Prediction, Size};

/// Most objects that are kept for one context.
const MOST_EDGES: usize = 512;
/// Estimated bytes of a context, and of an object beside its path, with their share of hash tables.
const CONTEXT_BYTES: usize = 96;
const OBJECT_BYTES: usize = 112;
/// A vector that grew by doubling is on average three quarters full.
const EDGE_BYTES: usize = size_of::<Edge>() * 4 / 3;

/// The predictor with the clients that it follows.
#[derive(Debug)]
pub struct Predictor {
    model: Model,
    by_path: HashMap<Arc<str>, Id>,
    free: Vec<Id>,
    bytes: usize,
    clients: LruCache<u64, History>,
    key: RandomState,
}

impl Predictor {
    /// A predictor that knows nothing.
    pub fn new(settings: Settings) -> Self {
        Self::from_model(Model {
            settings,
            objects: vec![None], // number 0 stands for no page
            nodes: HashMap::default(),
            learned: 0,
            halved: 0,
        })
    }

    pub(crate) fn from_model(model: Model) -> Self {
        let mut by_path = HashMap::new();
        let mut free = Vec::new();
        for (id, object) in (0..).zip(&model.objects).skip(1) {
            match object {
                Some(object) => {
                    by_path.insert(object.path.clone(), id);
                }
                None => free.push(id),
            }
        }
        let clients = LruCache::unbounded();
        let mut new = Self { model, by_path, free, bytes: 0, clients, key: RandomState::new() };
        new.bytes = new.measure();
        new
    }

    pub(crate) fn model(&self) -> &Model {
        &self.model
    }

    /// The settings that it learns by.
    pub fn settings(&self) -> Settings {
        self.model.settings
    }

    /// Changes what a loaded model may change: all but n and w.
    pub fn set_bounds(&mut self, settings: Settings) {
        let Settings { n, w, .. } = self.model.settings;
        self.model.settings = Settings { n, w, ..settings };
    }

    /// Its size now.
    pub fn size(&self) -> Size {
        Size {
            objects: self.by_path.len(),
            contexts: self.model.nodes.len(),
            clients: self.clients.len(),
            bytes: self.bytes,
            learned: self.model.learned,
            halved: self.model.halved,
        }
    }

    /// The client with this address and `User-Agent`.
    pub fn client(&self, address: &str, agent: &[u8]) -> Client {
        Client::new(&self.key, address, agent)
    }

    /// The number of the object with this path, if it is known.
    pub fn find(&self, path: &str) -> Option<Id> {
        self.by_path.get(path).copied()
    }

    /// The path of an object.
    pub fn path(&self, id: Id) -> Option<Arc<str>> {
        self.object(id).map(|o| o.path.clone())
    }

    fn object(&self, id: Id) -> Option<&Object> {
        self.model.objects.get(id as usize)?.as_ref()
    }

    /// Learns a logged request; false if it was not one to learn from: what its user tells by a password
    /// is nobody else's to know.
    pub fn learn(&mut self, entry: &Entry<'_>) -> bool {
        if !entry.is_view() || entry.personal || !rules::is_local_path(entry.path) {
            return false;
        }
        let client = self.client(entry.client, entry.agent.as_bytes());
        let page = rules::looks_like_page(entry.path);
        let Some(id) = self.visit(client, entry.time_s, entry.path, page) else { return false };
        if !page {
            self.part_of(entry.referer, id);
        }
        if let Some(object) = self.model.objects[id as usize].as_mut() {
            object.logged_bytes = object.logged_bytes.max(entry.bytes);
        }
        true
    }

    /// Takes note that an object, no page, was requested with this page as `Referer`.
    pub fn part_of(&mut self, page: &str, id: Id) {
        let Some(page) = self.find(page) else { return };
        let node = self.model.nodes.get_mut(&context_of(&[page]));
        let edge = node.and_then(|n| n.edges.iter_mut().find(|e| e.to == id));
        edge.into_iter().for_each(|e| e.part = true);
    }

    /// Takes note that the origin answered, through the proxy.
    pub fn served(&mut self, path: &str, served: Served) {
        let id = self.find(path);
        if let Some(object) = id.and_then(|id| self.model.objects[id as usize].as_mut()) {
            object.served = served;
        }
    }

    /// Learns that a client requested an object at `time_s` (any clock that runs forward), and
    /// returns its number; `None` if it is unknown, and the client followed apart.
    pub fn visit(&mut self, client: Client, time_s: i64, path: &str, page: bool) -> Option<Id> {
        if self.bytes > self.model.settings.memory_bytes {
            self.forget();
        }
        let id = if client.teaches {
            self.model.learned += 1;
            Some(self.intern(path))
        } else {
            self.find(path)
        };
        let known = self.clients.pop(&client.id);
        self.expire(time_s);
        let mut history = known.filter(|h| !self.is_over(h, time_s)).unwrap_or_default();
        history.last_s = time_s;
        if let Some(id) = id {
            history.ahead.retain(|(ahead, _)| *ahead != id);
            history.got(id);
            if !(page && history.pages.back() == Some(&id)) {
                self.count(&mut history, client, id, page);
            }
        } else if page {
            history.pages.clear(); // nothing is known of what follows it
        }
        self.clients.push(client.id, history);
        id
    }

    /// Counts an object for every open window that has not counted it, and, for a page, opens the
    /// next windows.
    fn count(&mut self, history: &mut History, client: Client, id: Id, page: bool) {
        let Settings { n, w, lesson, .. } = self.model.settings;
        let teaches = client.teaches && history.count <= lesson.into();
        let newest = history.count;
        // the window of page t covers what follows it up to page t + w
        let oldest = (newest + 1).saturating_sub(w as u64);
        let from = oldest.max(1).max(history.recent.get(&id).map_or(0, |counted| counted + 1));
        for t in from..=newest {
            for context in contexts(history, t, n) {
                if teaches && history.page(t) != Some(id) {
                    self.step(context, id, client.bit);
                }
            }
        }
        if history.recent.len() < MOST_RECENT {
            history.recent.insert(id, newest);
        }
        if !page {
            return;
        }
        history.count += 1;
        history.pages.push_back(id);
        if history.pages.len() > n + w {
            history.pages.pop_front();
        }
        let open_from = (history.count + 1).saturating_sub(w as u64);
        history.recent.retain(|_, counted| *counted >= open_from);
        if teaches {
            for context in contexts(history, history.count, n) {
                let node = self.model.nodes.entry(context).or_insert_with(|| {
                    self.bytes += CONTEXT_BYTES;
                    Node::default()
                });
                node.seen = node.seen.saturating_add(1);
            }
        }
    }

    /// Counts one step from a context to an object; nothing if the context was forgotten.
    fn step(&mut self, context: Context, to: Id, bit: u32) {
        let Some(node) = self.model.nodes.get_mut(&context) else { return };
        match node.edges.binary_search_by_key(&to, |e| e.to) {
            Ok(at) => {
                let edge = &mut node.edges[at];
                edge.seen = edge.seen.saturating_add(1);
                edge.by |= bit;
            }
            Err(at) => {
                node.edges.insert(at, Edge { to, seen: 1, by: bit, part: false });
                self.bytes += EDGE_BYTES;
                if node.edges.len() > MOST_EDGES {
                    self.bytes -= EDGE_BYTES * halve(node);
                }
            }
        }
    }

    fn intern(&mut self, path: &str) -> Id {
        if let Some(id) = self.by_path.get(path) {
            return *id;
        }
        let path: Arc<str> = path.into();
        let object = Object { path: path.clone(), logged_bytes: 0, served: Served::No };
        self.bytes += OBJECT_BYTES + path.len();
        let id = match self.free.pop() {
            Some(id) => {
                self.model.objects[id as usize] = Some(object);
                id
            }
            None => {
                self.model.objects.push(Some(object));
                // the memory's bound is reached long before 2^32 objects of 112 bytes
                (self.model.objects.len() - 1) as Id
            }
        };
        self.by_path.insert(path, id);
        id
    }

    fn is_over(&self, history: &History, now_s: i64) -> bool {
        now_s.saturating_sub(history.last_s) > self.model.settings.expiry_s
    }

    /// Ends the histories of clients that are idle, and of the idlest if there is no room for one
    /// more.
    fn expire(&mut self, now_s: i64) {
        while let Some((_, idlest)) = self.clients.peek_lru() {
            if self.clients.len() < self.model.settings.clients && !self.is_over(idlest, now_s) {
                break;
            }
            self.clients.pop_lru();
        }
    }

    /// Halves all counts, and the number of clients, whose histories hold objects too, until a
    /// quarter of the memory is free.
    fn forget(&mut self) {
        while self.bytes > self.model.settings.memory_bytes / 4 * 3 {
            self.model.halved += 1;
            self.model.nodes.retain(|_, node| {
                halve(node);
                node.edges.shrink_to_fit();
                !node.edges.is_empty()
            });
            for _ in 0..self.clients.len().div_ceil(2) {
                self.clients.pop_lru();
            }
            self.drop_unused();
            self.bytes = self.measure();
        }
    }

    fn drop_unused(&mut self) {
        let mut used = vec![false; self.model.objects.len()];
        for (context, node) in &self.model.nodes {
            context.iter().for_each(|id| used[*id as usize] = true);
            node.edges.iter().for_each(|e| used[e.to as usize] = true);
        }
        for (_, history) in &self.clients {
            let held = history.pages.iter().chain(history.recent.keys()).chain(&history.waiting);
            held.chain(&history.has).for_each(|id| used[*id as usize] = true);
            history.ahead.iter().for_each(|(id, _)| used[*id as usize] = true);
        }
        for (id, used) in (0..).zip(used) {
            if let Some(object) = self.model.objects[id as usize].take_if(|_| !used) {
                self.by_path.remove(&object.path);
                self.free.push(id);
            }
        }
    }

    fn measure(&self) -> usize {
        let edges: usize = self.model.nodes.values().map(|n| n.edges.len()).sum();
        let paths: usize = self.by_path.keys().map(|p| p.len()).sum();
        edges * EDGE_BYTES
            + self.model.nodes.len() * CONTEXT_BYTES
            + self.by_path.len() * OBJECT_BYTES
            + paths
    }

    /// What likely follows a sequence of pages, oldest first, of which the last n count; likeliest
    /// first, equal ones by path.
    pub fn predict(&self, pages: &[Id]) -> Vec<Prediction> {
        self.predict_some(pages, |_| true, 0.0)
    }

    /// What follows with at least this probability, of the wanted.
    fn predict_some(
        &self,
        pages: &[Id],
        wanted: impl Fn(Id) -> bool,
        least: f64,
    ) -> Vec<Prediction> {
        let orders = self.orders(pages);
        let (Some(shortest), Some(last)) = (orders.first(), pages.last()) else {
            return Vec::new();
        };
        let mut found: Vec<Prediction> = shortest
            .edges
            .iter()
            .filter(|edge| edge.to != *last && wanted(edge.to))
            .filter_map(|edge| self.blend(edge, &orders, least))
            .collect();
        found.sort_by(|a, b| {
            b.probability.total_cmp(&a.probability).then_with(|| a.path.cmp(&b.path))
        });
        found
    }

    /// What is known of the last pages, shortest context first.
    fn orders(&self, pages: &[Id]) -> Vec<&Node> {
        let n = self.model.settings.n.min(pages.len());
        (1..=n)
            .map_while(|m| self.model.nodes.get(&context_of(&pages[pages.len() - m..])))
            .collect() // a longer one than the first unknown cannot be known either
    }

    /// For each known order of the last pages, shortest first: how often the object followed, and of
    /// how many.
    pub fn counts(&self, pages: &[Id], object: Id) -> Vec<(u32, u32)> {
        self.orders(pages).iter().map(|node| (node.followed(object), node.seen)).collect()
    }

    fn blend(&self, shortest: &Edge, orders: &[&Node], least: f64) -> Option<Prediction> {
        let probability = orders.iter().fold(0.0, |shorter, node| {
            (f64::from(node.followed(shortest.to)) + shorter) / (f64::from(node.seen) + 1.0)
        });
        if probability < least {
            return None;
        }
        let object = self.object(shortest.to)?;
        let bytes = match object.served {
            Served::Reusable(bytes) => bytes,
            _ => object.logged_bytes,
        };
        Some(Prediction {
            id: shortest.to,
            path: object.path.clone(),
            probability,
            shared: shortest.by.count_ones() >= self.model.settings.addresses.into(),
            part: shortest.part,
            served: object.served,
            bytes,
        })
    }

    /// The pages requested most, most first, with the likeliest prediction after each that enough
    /// addresses have confirmed; both of the wanted paths.
    pub fn busiest(
        &self,
        most: usize,
        wanted: impl Fn(&str) -> bool,
    ) -> Vec<(Arc<str>, u32, Prediction)> {
        let single = |context: &Context| context[MOST_N - 2] == 0;
        let mut pages: Vec<(u32, Id)> = self
            .model
            .nodes
            .iter()
            .filter(|(context, _)| single(context))
            .map(|(context, node)| (node.seen, context[MOST_N - 1]))
            .collect();
        pages.sort_unstable_by_key(|page| std::cmp::Reverse(*page));
        pages
            .into_iter()
            .filter_map(|(seen, id)| Some((self.path(id).filter(|path| wanted(path))?, seen, id)))
            .take(most)
            .filter_map(|(path, seen, id)| {
                let mut next = self.predict(&[id]).into_iter();
                Some((path, seen, next.find(|p| p.shared && wanted(&p.path))?))
            })
            .collect()
    }

    /// What follows the client's last pages with at least this probability and has not been sent to
    /// it.
    pub fn predict_for(&self, client: Client, least: f64) -> Vec<Prediction> {
        let Some(history) = self.clients.peek(&client.id) else { return Vec::new() };
        let skip = history.pages.len().saturating_sub(self.model.settings.n);
        let pages: Vec<Id> = history.pages.iter().skip(skip).copied().collect();
        self.predict_some(&pages, |id| !history.has.contains(&id), least)
    }

    /// Replaces what the client's next replies will suggest.
    pub fn set_waiting(&mut self, client: Client, ids: impl IntoIterator<Item = Id>) {
        if let Some(history) = self.clients.peek_mut(&client.id) {
            history.waiting = ids.into_iter().collect();
        }
    }

    /// Takes the next `most` suggestions for a reply to this client.
    pub fn take_waiting(&mut self, client: Client, most: usize) -> Vec<Arc<str>> {
        let Some(history) = self.clients.peek_mut(&client.id) else { return Vec::new() };
        let most = most.min(history.waiting.len());
        let ids: Vec<Id> = history.waiting.drain(..most).collect();
        ids.into_iter().filter_map(|id| self.path(id)).collect()
    }

    /// Takes note that an object was sent to a client ahead of time.
    pub fn sent_ahead(&mut self, client: Client, path: &str, bytes: u64) {
        let id = self.find(path);
        let history = self.clients.peek_mut(&client.id);
        if let (Some(history), Some(id)) = (history, id) {
            history.got(id);
            history.ahead.retain(|(ahead, _)| *ahead != id);
            history.ahead.push_back((id, bytes));
            if history.ahead.len() > MOST_RECENT {
                history.ahead.pop_front();
            }
        }
    }

    /// The bytes of an object that was sent to a client ahead of time and that it has now shown to
    /// use, for example by naming it as `Referer`: a use that no request told of.
    pub fn used_ahead(&mut self, client: Client, path: &str) -> Option<u64> {
        let id = self.find(path)?;
        let history = self.clients.peek_mut(&client.id)?;
        let at = history.ahead.iter().position(|(ahead, _)| *ahead == id)?;
        history.ahead.remove(at).map(|(_, bytes)| bytes)
    }
}

#[cfg(test)]
mod tests;
