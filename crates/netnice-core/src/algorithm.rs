// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The list of algorithms and their parameters.

use std::ffi::{c_char, CStr};
use std::fmt;

use crate::{nearest, sys, Error};

/// A string of the algorithms' tables.
pub(crate) fn text(p: *const c_char) -> &'static str {
    // SAFETY: the tables hold string literals; build.rs compiles them from UTF-8 sources.
    unsafe { CStr::from_ptr(p) }.to_str().expect("core/ is UTF-8")
}

/// One line of `core/algorithms.def`.
#[derive(Clone, Copy)]
pub struct Algorithm(pub(crate) &'static sys::nn_algorithm);

// SAFETY: a constant of user.c, with pointers to other constants and to functions without state
unsafe impl Send for Algorithm {}
unsafe impl Sync for Algorithm {}

impl Algorithm {
    /// Every algorithm, in the order of the list.
    pub fn all() -> impl Iterator<Item = Algorithm> {
        // SAFETY: table.c defines an array of nn_n_algorithms pointers to statics.
        let (list, n) = unsafe { ((&raw const sys::nn_algorithms).cast(), sys::nn_n_algorithms) };
        let table: &'static [&'static sys::nn_algorithm] =
            unsafe { std::slice::from_raw_parts(list, n as usize) };
        table.iter().map(|a| Algorithm(a))
    }

    /// The algorithm of that name, with or without the kernel's prefix `nn_`.
    ///
    /// # Errors
    /// [`Error::Algorithm`] names the nearest one.
    pub fn by_name(name: &str) -> Result<Algorithm, Error> {
        let bare = name.strip_prefix("nn_").unwrap_or(name);
        Self::all().find(|a| a.name() == bare).ok_or_else(|| Error::Algorithm {
            name: name.into(),
            nearest: nearest(bare, Self::all().map(|a| a.name())).unwrap_or_default().into(),
        })
    }

    /// The one that measures a path: `NN_MEASURES` in `core/classes.def`.
    pub fn that_measures() -> Algorithm {
        // SAFETY: table.c points it to a static.
        Algorithm(unsafe { &*sys::nn_measures })
    }

    /// That of the first class for connections of a group: `NN_GROUPED` in `core/classes.def`.
    pub(crate) fn that_has_groups() -> Algorithm {
        // SAFETY: as above.
        Algorithm(unsafe { &*sys::nn_grouped })
    }

    /// The name in the list.
    pub fn name(&self) -> &'static str {
        text(self.0.name)
    }

    /// The kernel's name of it as a congestion control.
    pub fn control(&self) -> String {
        format!("nn_{}", self.name())
    }

    /// One line for people.
    pub fn summary(&self) -> &'static str {
        text(self.0.summary)
    }

    /// Whether flows of a group share what it keeps; if so, it has a parameter `share`.
    pub fn grouped(&self) -> bool {
        self.0.grouped != 0
    }

    /// Whether it divides its fair shares among the flows of a group by itself; any other that is
    /// [`Algorithm::grouped`] runs a window for each as it would be alone (`core/aggregate/any.h`).
    pub fn divides(&self) -> bool {
        self.0.grouped > 1
    }

    /// Its parameters, in the order of [`Config::values`].
    pub fn params(&self) -> impl ExactSizeIterator<Item = Param> {
        // SAFETY: user.c sizes n_params by the array.
        unsafe { std::slice::from_raw_parts(self.0.params, self.0.n_params as usize) }
            .iter()
            .map(Param)
    }
}

impl fmt::Debug for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PartialEq for Algorithm {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

/// One parameter of an algorithm.
#[derive(Clone, Copy)]
pub struct Param(&'static sys::nn_param);

impl Param {
    /// Its name, as in `--set NAME=NUMBER`.
    pub fn name(&self) -> &'static str {
        text(self.0.name)
    }
    /// The default, in [`Param::unit`].
    pub fn default(&self) -> f64 {
        self.0.def
    }
    /// The least value allowed, in [`Param::unit`].
    pub fn least(&self) -> f64 {
        self.0.least
    }
    /// The greatest value allowed, in [`Param::unit`].
    pub fn most(&self) -> f64 {
        self.0.most
    }
    /// The unit of its values.
    pub fn unit(&self) -> &'static str {
        text(self.0.unit)
    }
    /// The names of the values 0, 1, ... of a choice, from a unit such as `alpha|tau`; else none.
    pub fn choices(&self) -> impl Iterator<Item = &'static str> + use<> {
        let unit = self.unit();
        unit.split('|').filter(|_| unit.contains('|'))
    }
    /// The value that a text means: a number, or the name of a choice.
    pub(crate) fn value(&self, text: &str) -> Option<f64> {
        let named = self.choices().position(|name| name == text);
        named.map(|value| value as f64).or_else(|| text.parse().ok())
    }
    /// The paper and section that it comes from.
    pub fn source(&self) -> &'static str {
        text(self.0.source)
    }
    /// What it does.
    pub fn help(&self) -> &'static str {
        text(self.0.help)
    }
}

/// State of one flow, in words: enough for any algorithm.
pub type State = [u64; sys::NN_STATE_MAX as usize / 8];
