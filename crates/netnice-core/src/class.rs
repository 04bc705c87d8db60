// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Classes: names for how much a transfer yields, each with its algorithm.

use std::fmt;
use std::str::FromStr;

use crate::algorithm::text;
use crate::{sys, Algorithm, Error};

/// One line of `core/classes.def`.
#[derive(Clone, Copy)]
pub struct Class(&'static sys::nn_class);

// SAFETY: a constant of table.c, with pointers to other constants
unsafe impl Send for Class {}
unsafe impl Sync for Class {}

impl Class {
    /// Every class, the most yielding first.
    pub fn all() -> impl Iterator<Item = Class> {
        // SAFETY: table.c defines an array of nn_n_classes.
        let list = unsafe {
            let first: *const sys::nn_class = (&raw const sys::nn_classes).cast();
            std::slice::from_raw_parts(first, sys::nn_n_classes as usize)
        };
        list.iter().map(Class)
    }

    /// As users write it.
    pub fn name(&self) -> &'static str {
        text(self.0.name)
    }

    /// One line for people.
    pub fn summary(&self) -> &'static str {
        text(self.0.summary)
    }

    /// The algorithm that keeps its promise.
    pub fn algorithm(&self) -> Algorithm {
        // SAFETY: table.c points to a static of each algorithm.
        Algorithm(unsafe { &*self.0.algorithm })
    }

    /// The algorithm for its connections of a group: its own, or if that has no groups, that of
    /// `NN_GROUPED` for the first class.
    pub fn algorithm_of_groups(&self) -> Algorithm {
        let own = self.algorithm();
        match *self == Class::default() && !own.grouped() {
            true => Algorithm::that_has_groups(),
            false => own,
        }
    }

    /// The DSCP of its packets; 0: left alone.
    pub fn dscp(&self) -> u8 {
        u8::try_from(self.0.dscp).expect("a DSCP has six bits")
    }
}

impl Default for Class {
    /// The most yielding one.
    fn default() -> Class {
        Class::all().next().expect("classes.def has a line")
    }
}

impl FromStr for Class {
    type Err = Error;

    fn from_str(name: &str) -> Result<Class, Error> {
        Class::all().find(|c| c.name() == name).ok_or_else(|| Error::Class {
            name: name.into(),
            names: Class::all().map(|c| c.name()).collect::<Vec<_>>().join(", "),
        })
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Debug for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for Class {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}
