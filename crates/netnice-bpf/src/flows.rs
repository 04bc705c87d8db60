// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Reading the connections that the kernel has.

use std::io::Read;
use std::mem;
use std::os::fd::AsFd;

use libbpf_rs::{Iter, Link, Object};
use netnice_core::{Algorithm, Config, State};

use crate::controls::{plain, PREFIX};
use crate::error::bpf;
use crate::objects::{self, flows_map, load, open};
use crate::pod::{parse, text};
use crate::{Error, Record, Result};

/// Every connection in the system that has one of this project's controls, or whose downloads alone are
/// in the background.
///
/// # Errors
/// When the kernel refuses the iterator.
pub fn flows() -> Result<Vec<Record>> {
    match Flows::open()? {
        Some(flows) => flows.read(),
        None => Ok(Vec::new()),
    }
}

/// Every connection in the system that a run has, whatever its control is; closed ones too, until
/// the kernel forgets them.
///
/// # Errors
/// When the kernel refuses the iterator.
pub fn flows_of_runs() -> Result<Vec<Record>> {
    Flows::open()?.map_or(Ok(Vec::new()), |flows| flows.of_runs())
}

/// The list of connections, for reading it often.
pub struct Flows {
    link: Link,
    _object: Object,
}

impl Flows {
    /// None while no control was registered yet.
    ///
    /// # Errors
    /// When the kernel refuses the iterator.
    pub fn open() -> Result<Option<Flows>> {
        let Some(map) = flows_map()? else { return Ok(None) };
        let object = load(open(objects::STATUS, "netnice_status")?, "the list of connections")?;
        let program = object.progs_mut().next().expect("status.bpf.c defines one");
        let link = program.attach_iter(map.as_fd()).map_err(bpf(Self::WHAT))?;
        Ok(Some(Flows { link, _object: object }))
    }

    /// As [`flows`].
    ///
    /// # Errors
    /// When the kernel refuses the iterator.
    pub fn read(&self) -> Result<Vec<Record>> {
        let mut all = self.all()?;
        let downloads = |r: &Record| r.flow.settings.only == crate::only::DOWN;
        all.retain(|r| r.control().starts_with(PREFIX) || downloads(r));
        Ok(all)
    }

    /// As [`flows_of_runs`].
    ///
    /// # Errors
    /// When the kernel refuses the iterator.
    pub fn of_runs(&self) -> Result<Vec<Record>> {
        let mut all = self.all()?;
        all.retain(|r| r.flow.settings.run != 0);
        Ok(all)
    }

    /// Those too that another control has taken over.
    fn all(&self) -> Result<Vec<Record>> {
        let mut data = Vec::new();
        Iter::new(&self.link)
            .map_err(bpf(Self::WHAT))?
            .read_to_end(&mut data)
            .map_err(|error| Error::Io { what: Self::WHAT.into(), error })?;
        Ok(data.chunks_exact(mem::size_of::<Record>()).filter_map(parse).collect())
    }

    const WHAT: &str = "cannot list the connections";
}

impl Record {
    /// The name of the connection's congestion control, the same in a group as on its own.
    pub fn control(&self) -> String {
        plain(&self.ca)
    }

    /// Whether its control is the one that the kernel knows by this name.
    pub fn has(&self, control: &str) -> bool {
        text(&self.ca) == control
    }

    /// The index of the [`Aggregate`] that it belongs to.
    pub fn slot(&self) -> Option<u32> {
        self.flow.slot.checked_sub(1)
    }

    /// The algorithm and its parameters, unless another build of netnice registered it.
    pub fn config(&self) -> Option<Config> {
        let algorithm = Algorithm::by_name(&self.control()).ok()?;
        Config::from_values(algorithm, &self.flow.settings.cfg)
    }

    /// The algorithm's raw state.
    pub fn state(&self) -> &State {
        &self.flow.state
    }
}
