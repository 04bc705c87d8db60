// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Which links packets take from one node to another.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::Link;

/// The links that packets between two nodes take, instead of the fewest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// The node where it starts.
    pub from: String,
    /// The node where it ends.
    pub to: String,
    /// Names of links, in the order in which they are crossed; the second one of a duplex link has
    /// a prime.
    pub via: Vec<String>,
}

impl Route {
    /// Its links as indexes of the network, or what is wrong with them as a sentence.
    pub(crate) fn links(&self, network: &[Link]) -> Result<Vec<usize>, String> {
        let (mut at, mut path) = (self.from.as_str(), Vec::new());
        for name in &self.via {
            let Some(index) = network.iter().position(|link| link.name == *name) else {
                let names: Vec<&str> = network.iter().map(|link| link.name.as_str()).collect();
                return Err(format!(
                    "the [[route]] from \"{}\" to \"{}\" goes via \"{name}\", which is no link; \
                     there are {}.",
                    self.from,
                    self.to,
                    names.join(", ")
                ));
            };
            if network[index].from != at {
                break;
            }
            at = &network[index].to;
            path.push(index);
        }
        if path.len() < self.via.len() || at != self.to || path.is_empty() {
            return Err(format!(
                "the [[route]] from \"{}\" to \"{}\" breaks off at \"{at}\"; each link in `via` must \
                 start where the one before ends.",
                self.from, self.to
            ));
        }
        Ok(path)
    }
}

/// The path with the fewest links, by breadth-first search in their order.
pub(crate) fn fewest(network: &[Link], from: &str, to: &str) -> Option<Vec<usize>> {
    let mut reached: Vec<(&str, Vec<usize>)> = vec![(from, Vec::new())];
    let mut next = VecDeque::from([0]);
    while let Some(place) = next.pop_front() {
        let (node, path) = reached[place].clone();
        if node == to && !path.is_empty() {
            return Some(path);
        }
        for (index, link) in network.iter().enumerate().filter(|(_, link)| link.from == node) {
            if !reached.iter().any(|(known, _)| *known == link.to) {
                next.push_back(reached.len());
                reached.push((&link.to, [path.as_slice(), &[index]].concat()));
            }
        }
    }
    None
}

/// All nodes, in the order of their first naming.
pub(crate) fn nodes(network: &[Link]) -> Vec<&str> {
    let mut nodes = Vec::new();
    for node in network.iter().flat_map(|link| [link.from.as_str(), link.to.as_str()]) {
        if !nodes.contains(&node) {
            nodes.push(node);
        }
    }
    nodes
}
