// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Values for the parameters of an algorithm.

use crate::{nearest, Algorithm, Error, ONE};

/// Values for the parameters of an algorithm.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub(crate) algorithm: Algorithm,
    pub(crate) values: Vec<u32>,
}

impl Config {
    /// The defaults of the algorithm.
    pub fn new(algorithm: Algorithm) -> Config {
        Config { algorithm, values: algorithm.params().map(|p| q16(p.default())).collect() }
    }

    /// Applies a setting of the form `NAME=NUMBER`, or `NAME=CHOICE` for a parameter that has
    /// choices; values are kept to 1/65536.
    ///
    /// # Errors
    /// [`Error::Setting`], [`Error::Param`], [`Error::Choice`] or [`Error::Range`].
    pub fn set(&mut self, setting: &str) -> Result<(), Error> {
        let mut params = self.algorithm.params();
        let malformed = || Error::Setting {
            text: setting.into(),
            example: self
                .algorithm
                .params()
                .next()
                .map_or("threshold=0.1".into(), |p| format!("{}={}", p.name(), p.default())),
        };
        let (name, value) = setting.split_once('=').ok_or_else(malformed)?;
        let name = name.trim();
        let (index, param) =
            params.by_ref().enumerate().find(|(_, p)| p.name() == name).ok_or_else(|| {
                Error::Param {
                    algorithm: self.algorithm.name(),
                    name: name.into(),
                    hint: nearest(name, self.algorithm.params().map(|p| p.name()))
                        .map_or("it has none.".into(), |n| format!("did you mean {n:?}?")),
                }
            })?;
        let value = param.value(value.trim()).ok_or_else(|| match param.choices().next() {
            Some(_) => Error::Choice {
                name: param.name(),
                text: value.trim().into(),
                choices: param.choices().collect::<Vec<_>>().join(", "),
            },
            None => malformed(),
        })?;
        if !(param.least()..=param.most()).contains(&value) {
            return Err(Error::Range {
                name: param.name(),
                value,
                least: param.least(),
                most: param.most(),
                unit: param.unit(),
            });
        }
        self.values[index] = q16(value);
        Ok(())
    }

    /// The first of `values` as the algorithm's, unless they are too few.
    pub fn from_values(algorithm: Algorithm, values: &[u32]) -> Option<Config> {
        let values = values.get(..algorithm.params().len())?.to_vec();
        Some(Config { algorithm, values })
    }

    /// The algorithm that these values are for.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// The parameters' names and values, these in the parameters' units.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, f64)> + '_ {
        let values = self.values.iter().map(|v| f64::from(*v) / ONE as f64);
        self.algorithm.params().map(|p| p.name()).zip(values)
    }

    /// The values in Q16, in the order of [`Algorithm::params`].
    pub fn values(&self) -> &[u32] {
        &self.values
    }
}

/// As the macro `NN_Q16` of arith.h rounds.
fn q16(value: f64) -> u32 {
    (value * ONE as f64 + 0.5) as u32
}
