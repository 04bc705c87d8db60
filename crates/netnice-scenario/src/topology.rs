// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! A scenario's network as links, and the paths of its traffic over them.

use crate::route::{fewest, nodes};
use crate::{Error, Link, Scenario};

impl Scenario {
    /// The links of the network; a simulator needs no other description of it.
    ///
    /// `[bottleneck]` becomes "bottleneck" from "a" to "b", with its queue, rate, loss and jitter
    /// and without delay, and "back" from "b" to "a", infinitely fast, with the whole two-way
    /// propagation time. A duplex link becomes two. Those of `[[hosts]]` follow the others.
    pub fn network(&self) -> Vec<Link> {
        let hosts = self.hosts.iter().enumerate().flat_map(|(group, hosts)| hosts.links(group));
        self.links().into_iter().chain(hosts).collect()
    }

    /// The links that have names of their own: all but those of `[[hosts]]`. The first ones of
    /// [`Scenario::network`].
    pub fn links(&self) -> Vec<Link> {
        if let Some(bottleneck) = &self.bottleneck {
            return bottleneck.links().into();
        }
        self.link
            .iter()
            .flat_map(|link| {
                let there = Link { duplex: false, ..link.clone() };
                let back = link.duplex.then(|| there.back());
                [Some(there), back].into_iter().flatten()
            })
            .collect()
    }

    /// The links from one node to another, as indexes of [`Scenario::network`]: those of its
    /// `[[route]]`, or else the fewest; of several such paths the one whose links are named first.
    /// `[[hosts]]` stand for the node that they are at.
    ///
    /// # Errors
    /// [`Error::Scenario`] if no path leads there.
    pub fn path(&self, from: &str, to: &str) -> Result<Vec<usize>, Error> {
        self.path_in(&self.links(), from, to)
            .map_err(|what| Error::Scenario { place: self.name.clone(), what })
    }

    /// The paths of traffic, there and back, as indexes of [`Scenario::network`]: one for each pair
    /// of hosts, or that between its two nodes; its ends as [`Scenario::ends`] takes them.
    ///
    /// # Errors
    /// As [`Scenario::path`].
    pub fn paths(
        &self,
        from: Option<&str>,
        to: Option<&str>,
    ) -> Result<Vec<[Vec<usize>; 2]>, Error> {
        let ends = self.ends(from, to);
        let (there, back) = (self.path(ends.0, ends.1)?, self.path(ends.1, ends.0)?);
        let mut paths = Vec::new();
        for [to_server, from_server] in self.last_links(ends.0) {
            for [to_client, from_client] in self.last_links(ends.1) {
                paths.push([
                    [&from_server, there.as_slice(), &to_client].concat(),
                    [&from_client, back.as_slice(), &to_server].concat(),
                ]);
            }
        }
        Ok(paths)
    }

    /// The node of that name, or the one that the hosts of that name are at.
    fn node<'a>(&'a self, name: &'a str) -> &'a str {
        self.hosts.iter().find(|hosts| hosts.name == name).map_or(name, |hosts| &hosts.at)
    }

    /// For each host of that name the link to it and the one from it; for a node a pair of none.
    fn last_links(&self, name: &str) -> Vec<[Vec<usize>; 2]> {
        let mut first = self.links().len();
        for hosts in &self.hosts {
            let next = first + 2 * hosts.count as usize;
            if hosts.name == name {
                return (first..next).step_by(2).map(|link| [vec![link], vec![link + 1]]).collect();
            }
            first = next;
        }
        vec![Default::default()]
    }

    /// Where data flows from and to, unless `from` or `to` say otherwise: as the foreground's does,
    /// and that by default from "a" to "b".
    pub fn ends<'a>(&'a self, from: Option<&'a str>, to: Option<&'a str>) -> (&'a str, &'a str) {
        let foreground = self.foreground.as_ref();
        let from = from.or_else(|| foreground.and_then(|f| f.from.as_deref()));
        let to = to.or_else(|| foreground.and_then(|f| f.to.as_deref()));
        (from.unwrap_or("a"), to.unwrap_or("b"))
    }

    /// The link that the offered load refers to, as an index of [`Scenario::network`]: the slowest
    /// one on the path of [`Scenario::ends`] by default, links of `[[hosts]]` aside. `None`: none of
    /// them has a rate.
    pub fn slowest_link(&self) -> Option<usize> {
        let network = self.links();
        let (from, to) = self.ends(None, None);
        self.path_in(&network, from, to)
            .ok()?
            .into_iter()
            .filter(|&index| network[index].rate_mbit.is_some())
            .min_by(|&x, &y| network[x].rate_mbit.partial_cmp(&network[y].rate_mbit).unwrap())
    }

    /// As [`Scenario::path`]; the error is the sentence alone.
    pub(crate) fn path_in(
        &self,
        network: &[Link],
        from: &str,
        to: &str,
    ) -> Result<Vec<usize>, String> {
        let (from, to) = (self.node(from), self.node(to));
        match self.route.iter().find(|route| route.from == from && route.to == to) {
            Some(route) => route.links(network),
            None => fewest(network, from, to).ok_or_else(|| {
                format!(
                    "no route from \"{from}\" to \"{to}\": add a [[link]] or a [[route]], or choose \
                     among the nodes {}.",
                    nodes(network).join(", ")
                )
            }),
        }
    }
}
