// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Reading the connections that the kernel has.

use std::mem;

use netnice_core::{Algorithm, Config, State};

use crate::controls::{plain, PREFIX};
use crate::objects::{self, open};
use crate::pod::{parse, text};
use crate::walk::Walk;
use crate::{Record, Result};

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
    walk: Walk,
}

impl Flows {
    /// None while no control was registered yet.
    ///
    /// # Errors
    /// When the kernel refuses the iterator.
    pub fn open() -> Result<Option<Flows>> {
        let open = || open(objects::STATUS, "netnice_status");
        Ok(Walk::over_flows(open, "the list of connections")?.map(|walk| Flows { walk }))
    }

    /// The same as on kernels that refuse to walk over storage.
    ///
    /// # Errors
    /// When the kernel refuses the iterator.
    pub fn open_by_socket() -> Result<Option<Flows>> {
        let object = open(objects::STATUS, "netnice_status")?;
        Ok(Walk::of(object, "the list of connections", true)?.map(|walk| Flows { walk }))
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
        let data = self.walk.walk(Self::WHAT)?;
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
