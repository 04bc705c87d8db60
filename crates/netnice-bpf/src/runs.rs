// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Putting a cgroup's connections under an algorithm, and single sockets.

use std::os::fd::{AsFd, BorrowedFd};

use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType, Object};
use libbpf_sys::BPF_CGROUP_SETSOCKOPT;
use netnice_core::{Algorithm, Config};

use crate::attached::{attach, Attached};
use crate::controls::plain;
use crate::error::bpf;
use crate::left_out::{LeftOut, PEERS};
use crate::objects::{self, load, maps, open, LEFT_OUT_MAP, RUNS, RUN_MAP, TOTALS_MAP};
use crate::pod::{bytes, parse, put_text, text};
use crate::walk::Walk;
use crate::watch::Watch;
use crate::{control_name, sys, Error, Result, Settings, Totals};

/// The programs of one run, attached to its cgroup. They stay with the cgroup when this is
/// dropped, so that a run whose tool was killed goes on in the background.
pub struct Run {
    object: Object,
    run: sys::nn_run,
    watch: Option<Watch>,
}

impl Run {
    /// Puts all TCP connections opened or accepted in `cgroup`, from now on, under `config`.
    /// `id` marks them (the cgroup's id), `tos` is the TOS octet of their packets (0: left alone),
    /// `group` is the one that they share.
    ///
    /// # Errors
    /// When the kernel refuses a program.
    pub fn attach(
        cgroup: BorrowedFd<'_>,
        id: u64,
        config: &Config,
        tos: u8,
        group: Option<&Membership>,
    ) -> Result<Run> {
        let run = Run::load(objects::RUN, Run::of(id, config, tos, group))?;
        run.register()?;
        run.open(cgroup)?;
        run.guard(cgroup)?;
        Ok(run)
    }

    /// As [`Run::attach`], for a cgroup of any name, and but for some connections. Nothing is attached
    /// before [`Run::open`], and what is in the cgroup can choose for itself until [`Run::guard`].
    ///
    /// # Errors
    /// When the kernel refuses a program.
    pub fn select(id: u64, config: &Config, tos: u8, left_out: &LeftOut) -> Result<Run> {
        let run = Run::load(objects::SELECT, Run::of(id, config, tos, None))?;
        run.leave(left_out)?;
        Ok(run)
    }

    /// The same run in its `cgroup`, but for some connections.
    ///
    /// # Errors
    /// When the kernel refuses a program.
    pub fn leaving_out(self, cgroup: BorrowedFd<'_>, left_out: &LeftOut) -> Result<Run> {
        let before = Attached::at(cgroup)?;
        let run = Run::load(objects::SELECT, self.run)?;
        run.leave(left_out)?;
        run.open(cgroup)?;
        run.guard(cgroup)?;
        before.detach(cgroup)?;
        // the kernel frees its maps later: until then nobody is to take them for those of the run
        set(&self.object, RUN_MAP, bytes(&sys::nn_run { ended: 1, ..self.run }))?;
        set(&self.object, TOTALS_MAP, bytes(&Totals::default()))?;
        Ok(run)
    }

    fn leave(&self, left_out: &LeftOut) -> Result<()> {
        set(&self.object, LEFT_OUT_MAP, bytes(&left_out.of(self.run.settings.run)))
    }

    fn of(id: u64, config: &Config, tos: u8, group: Option<&Membership>) -> sys::nn_run {
        let mut run = sys::nn_run {
            settings: settings_for(id, config),
            tos: tos.into(),
            ..Default::default()
        };
        if let Some(group) = group {
            put_text(&mut run.settings.group, &group.name);
            run.settings.owner = group.owner;
            run.settings.bits = group.bits;
        }
        put_text(&mut run.ca, &control_name(config.algorithm(), group.is_some()));
        run
    }

    fn load(object: &'static [u8], run: sys::nn_run) -> Result<Run> {
        let object = load(open(object, "netnice_run")?, "the programs of the run")?;
        let totals = Totals { run: run.settings.run, ..Default::default() };
        set(&object, RUN_MAP, bytes(&run))?;
        set(&object, TOTALS_MAP, bytes(&totals))?;
        Ok(Run { object, run, watch: None })
    }

    /// Makes its id known to the programs of runs around it, and forgets those whose programs the kernel
    /// has freed: no socket is theirs any more. None, while there are runs of another build, whose ids it
    /// cannot read.
    fn register(&self) -> Result<()> {
        const WHAT: &str = "cannot register the run";
        let runs = map(&self.object, RUNS);
        let known: Vec<_> = runs.keys().collect(); // first: who registers meanwhile is there already
        if let Some(there) = Running::whole()? {
            let is_there = |key: &[u8]| there.iter().any(|run| run.id().to_ne_bytes() == key);
            for gone in known.iter().filter(|key| !is_there(key)) {
                let _ = runs.delete(gone); // another netnice may have done it
            }
        }
        let id = self.run.settings.run.to_ne_bytes();
        runs.update(&id, &1u32.to_ne_bytes(), MapFlags::ANY).map_err(bpf(WHAT))
    }

    /// From now on what is opened or accepted in `cgroup` is in the background.
    ///
    /// # Errors
    /// When the kernel refuses a program.
    pub fn open(&self, cgroup: BorrowedFd<'_>) -> Result<()> {
        self.put(cgroup, |kind| kind != BPF_CGROUP_SETSOCKOPT)
    }

    /// From now on what is in `cgroup` cannot choose a congestion control for itself.
    ///
    /// # Errors
    /// When the kernel refuses a program.
    pub fn guard(&self, cgroup: BorrowedFd<'_>) -> Result<()> {
        self.put(cgroup, |kind| kind == BPF_CGROUP_SETSOCKOPT)
    }

    fn put(&self, cgroup: BorrowedFd<'_>, which: fn(u32) -> bool) -> Result<()> {
        for program in self.object.progs().filter(|p| which(p.attach_type() as u32)) {
            attach(program.as_fd(), cgroup, program.attach_type() as u32).map_err(|error| {
                let what = format!("cannot attach {:?} to the cgroup of the run", program.name());
                match error.kind() {
                    libbpf_rs::ErrorKind::PermissionDenied => Error::Bpf {
                        what,
                        error,
                        hint: "\nA program of a cgroup above forbids others below it, as systemd's \
                               IPAddressAllow= and IPAddressDeny= may; list them: bpftool cgroup tree"
                            .into(),
                    },
                    _ => bpf(what)(error),
                }
            })?;
        }
        Ok(())
    }

    /// Counts from now on the processes that leave the cgroup, until this is dropped. A kernel
    /// without tracing cannot: then nothing is counted.
    pub fn watch(&mut self) {
        self.watch = Watch::new(self.run.settings.run, map(&self.object, TOTALS_MAP).as_fd()).ok();
    }

    /// From now on it is only for connections with these peers, at most [`PEERS`]; without any for
    /// all.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn limit_to(&mut self, peers: &[sys::nn_peer]) -> Result<()> {
        self.run.n_peers = peers.len() as u32;
        self.run.peers[..peers.len()].copy_from_slice(peers);
        set(&self.object, RUN_MAP, bytes(&self.run))
    }

    /// From now on only one direction of its connections is in the background, of [`crate::only`]. With
    /// [`crate::only::DOWN`] they keep their control, and their marks.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn limit_to_direction(&mut self, only: u16) -> Result<()> {
        self.run.settings.only = only;
        if only == crate::only::DOWN {
            self.run.ca = Default::default();
            self.run.tos = 0;
        }
        set(&self.object, RUN_MAP, bytes(&self.run))
    }

    /// From now on datagrams that come for its sockets yield, where a device holds.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn pull_datagrams(&mut self) -> Result<()> {
        self.run.udp_downloads = 1;
        set(&self.object, RUN_MAP, bytes(&self.run))
    }

    /// The kernel's name of the control that its connections are to have; empty: they keep theirs.
    pub fn control(&self) -> String {
        text(&self.run.ca)
    }

    /// The TOS octet of its packets; 0: left alone.
    pub fn tos(&self) -> u8 {
        self.run.tos as u8
    }

    /// The settings of its connections, for a socket that is older than the run.
    pub fn settings(&self) -> Settings {
        adopting(&self.run)
    }

    /// What the run adds up to by now.
    ///
    /// # Errors
    /// When the kernel cannot be read.
    pub fn totals(&self) -> Result<Totals> {
        totals(&map(&self.object, TOTALS_MAP))
    }
}

fn map<'a>(object: &'a Object, name: &str) -> libbpf_rs::Map<'a> {
    object.maps().find(|m| m.name() == name).expect("run.bpf.c defines it")
}

fn set(object: &Object, name: &str, value: &[u8]) -> Result<()> {
    let set = map(object, name).update(&0u32.to_ne_bytes(), value, MapFlags::ANY);
    set.map_err(bpf("cannot set up the programs of the run"))
}

fn totals(map: &impl MapCore) -> Result<Totals> {
    let value = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY);
    let value = value.map_err(bpf("cannot read the totals of a run"))?;
    Ok(value.and_then(|v| parse(&v)).unwrap_or_default())
}

/// The group of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Membership {
    /// Its name, at most [`GROUP_NAME`] bytes.
    pub name: String,
    /// The user whose group it is.
    pub owner: u32,
    /// Which connections share: those whose remote addresses have so many bits in common, of the 32
    /// of IPv4 or the 128 of IPv6; 0: all.
    pub bits: u32,
}

/// The longest name of a group, in bytes.
pub const GROUP_NAME: usize = sys::NN_GROUP_NAME as usize - 1;

/// What the names of the cgroups of runs begin with.
pub const RUN_PREFIX: &str = match sys::NN_RUN_PREFIX.to_str() {
    Ok(prefix) => prefix,
    Err(_) => unreachable!(),
};

/// A run that is there now, as its programs know it.
pub struct Running {
    run: sys::nn_run,
    map: MapHandle,
}

const READ: &str = "cannot read the settings of a run";

impl Running {
    /// All of them, those that are just going away too; but for those of another build.
    ///
    /// # Errors
    /// When a map of the kernel cannot be read.
    pub fn all() -> Result<Vec<Running>> {
        Running::each().filter_map(Result::transpose).collect()
    }

    /// All of them. None: unknown, since another build started one.
    fn whole() -> Result<Option<Vec<Running>>> {
        let each: Vec<_> = Running::each().collect::<Result<_>>()?;
        Ok(each.into_iter().collect())
    }

    /// The controls (names with prefix) that some run uses, of whichever netnice in whichever
    /// container: this one may see neither its cgroup nor its files. None: unknown, since another
    /// build started one.
    ///
    /// # Errors
    /// When a map of the kernel cannot be read.
    pub fn controls() -> Result<Option<Vec<String>>> {
        let names = |all: Vec<Running>| {
            all.iter().filter(|run| !run.ended()).map(Running::control).collect()
        };
        Ok(Running::whole()?.map(names))
    }

    /// One after the other; None: of another build.
    fn each() -> impl Iterator<Item = Result<Option<Running>>> {
        maps(RUN_MAP, MapType::Array).filter_map(|map| {
            let value = map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).map_err(bpf(READ));
            let found = |value: Vec<u8>| parse(&value).map(|run| Running { run, map });
            value.map(|value| value.map(found)).transpose()
        })
    }

    /// Says of the run with this id that its cgroup was removed: the kernel frees its programs later.
    ///
    /// # Errors
    /// When a map of the kernel cannot be read or written.
    pub fn end(id: u64) -> Result<()> {
        for mut ended in Running::all()?.into_iter().filter(|run| run.id() == id) {
            ended.run.ended = 1;
            ended
                .map
                .update(&0u32.to_ne_bytes(), bytes(&ended.run), MapFlags::ANY)
                .map_err(bpf("cannot end a run"))?;
        }
        Ok(())
    }

    /// The id of its cgroup.
    pub fn id(&self) -> u64 {
        self.run.settings.run
    }

    /// Whether its cgroup was removed, and the kernel just frees its programs.
    pub fn ended(&self) -> bool {
        self.run.ended != 0
    }

    /// The kernel's name of the control that its connections are to have; empty: they keep theirs.
    pub fn control(&self) -> String {
        text(&self.run.ca)
    }

    /// Which direction of its connections is in the background.
    pub fn only(&self) -> u16 {
        self.run.settings.only
    }

    /// The TOS octet of its packets; 0: left alone.
    pub fn tos(&self) -> u8 {
        self.run.tos as u8
    }

    /// The settings of its connections, for a socket that is older than it.
    pub fn settings(&self) -> Settings {
        adopting(&self.run)
    }

    /// The peers of its connections; none: any.
    pub fn peers(&self) -> &[sys::nn_peer] {
        &self.run.peers[..(self.run.n_peers as usize).min(PEERS)]
    }

    /// Whether datagrams that come for its sockets are to yield.
    pub fn pulls_datagrams(&self) -> bool {
        self.run.udp_downloads != 0
    }

    /// What it adds up to by now. None: the kernel has freed its programs meanwhile.
    ///
    /// # Errors
    /// When a map of the kernel cannot be read.
    pub fn totals(&self) -> Result<Option<Totals>> {
        self.totals_map()?.map(|map| totals(&map)).transpose()
    }

    fn totals_map(&self) -> Result<Option<MapHandle>> {
        for map in maps(TOTALS_MAP, MapType::Array) {
            if totals(&map)?.run == self.id() {
                return Ok(Some(map));
            }
        }
        Ok(None)
    }

    /// Counts from now on the processes that leave it, as [`Run::watch`], and keeps its totals: they
    /// can be read also when it has ended. None: it has ended.
    ///
    /// # Errors
    /// When a map of the kernel cannot be read.
    pub fn keep(self) -> Result<Option<Kept>> {
        let Some(totals) = self.totals_map()? else { return Ok(None) };
        let watch = Watch::new(self.id(), totals.as_fd()).ok();
        Ok(Some(Kept { running: self, totals, _watch: watch }))
    }

    /// Its group.
    pub fn group(&self) -> Option<Membership> {
        let Settings { group, owner, bits, .. } = &self.run.settings;
        let name = text(group);
        (!name.is_empty()).then_some(Membership { name, owner: *owner, bits: *bits })
    }

    /// The algorithm and its parameters, unless another build of netnice started it.
    pub fn config(&self) -> Option<Config> {
        let algorithm = Algorithm::by_name(&plain(&self.run.ca)).ok()?;
        Config::from_values(algorithm, &self.run.settings.cfg)
    }

    /// Gives the connections that it has and those that it will have other values for their
    /// parameters, of the same algorithm.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn configure(&mut self, config: &Config) -> Result<()> {
        let what = "cannot change the parameters of a run";
        let before = self.run.settings.cfg;
        self.run.settings.cfg[..config.values().len()].copy_from_slice(config.values());
        self.map.update(&0u32.to_ne_bytes(), bytes(&self.run), MapFlags::ANY).map_err(bpf(what))?;
        for (param, (value, before)) in self.run.settings.cfg.iter().zip(before).enumerate() {
            if *value != before {
                change(&sys::nn_change { run: self.id(), param: param as u32, value: *value })?;
            }
        }
        Ok(())
    }
}

/// A run whose totals stay.
pub struct Kept {
    running: Running,
    totals: MapHandle,
    _watch: Option<Watch>,
}

impl Kept {
    /// What it adds up to by now, or did when it ended.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn totals(&self) -> Result<Totals> {
        totals(&self.totals)
    }

    /// The run itself.
    pub fn running(&self) -> &Running {
        &self.running
    }
}

/// Changes a parameter of connections that are there.
fn change(to: &sys::nn_change) -> Result<()> {
    const WHAT: &str = "cannot change a parameter of the connections of a run";
    let open = || {
        let mut object = open(objects::SHARE, "netnice_share")?;
        object
            .maps_mut()
            .find(|m| m.name().to_string_lossy().ends_with(".rodata.change"))
            .expect("share.bpf.c defines it")
            .set_initial_value(bytes(to))
            .map_err(bpf(WHAT))?;
        Ok(object)
    };
    match Walk::over_flows(open, "the program that changes shares")? {
        Some(walk) => walk.walk(WHAT).map(drop),
        None => Ok(()),
    }
}

fn adopting(run: &sys::nn_run) -> Settings {
    Settings { adopted: 1, ..run.settings }
}

pub(crate) fn settings_for(run: u64, config: &Config) -> Settings {
    let mut settings =
        Settings { run, n_params: config.values().len() as u32, ..Default::default() };
    settings.cfg[..config.values().len()].copy_from_slice(config.values());
    settings
}
