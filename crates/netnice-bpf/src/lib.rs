// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! netnice's algorithms inside the Linux kernel: registering them as TCP
//! congestion controls, putting a cgroup's connections under them, reading the
//! state of connections.
//!
//! Nothing is kept in bpffs. A registered control keeps itself alive, a run's
//! programs live as long as its cgroup, and both are found again by walking the
//! kernel's own lists. So it works where bpffs is not mounted and in any mount
//! namespace, and there is no pin that could outlive what it stands for.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Mutex;
use std::{fs, io::Read, mem};

use libbpf_rs::{
    query::{MapInfoIter, ProgInfoIter},
    Iter, Link, MapCore, MapFlags, MapHandle, MapType, Object, ObjectBuilder, OpenObject,
    PrintLevel, ProgramInput,
};
use netnice_core::{Algorithm, Config, State};

#[allow(non_camel_case_types, non_upper_case_globals, missing_docs)]
mod sys {
    include!(concat!(env!("OUT_DIR"), "/sys.rs"));
}

mod objects {
    /// libbpf reads 64-bit words from the object.
    #[repr(C, align(8))]
    pub struct Aligned<T: ?Sized>(pub T);

    macro_rules! aligned {
        ($path:expr) => {{
            static BYTES: &Aligned<[u8]> = &Aligned(*include_bytes!($path));
            &BYTES.0
        }};
    }
    include!(concat!(env!("OUT_DIR"), "/objects.rs"));
}

pub use sys::{nn_record as Record, nn_settings as Settings, nn_totals as Totals};

/// The prefix of the algorithms' names in the kernel.
pub const PREFIX: &str = "nn_";

const FLOWS: &str = "nn_flows";
const RUN: &str = "nn_run";
const DIRECTORY: &str = "nn_directory";
const SLOTS: &str = "nn_slots";
/// The maps that every object uses, if some object has made them before.
const SHARED: [(&str, MapType); 3] =
    [(FLOWS, MapType::SkStorage), (DIRECTORY, MapType::Array), (SLOTS, MapType::Array)];

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// What the kernel refused, and why as far as it can be told.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// libbpf or the kernel failed; `hint` names the missing feature or the next step.
    #[error("{what}: {source}{hint}")]
    Bpf { what: String, source: libbpf_rs::Error, hint: String },
    /// Reading or writing a file of the kernel's failed.
    #[error("{what}: {source}")]
    Io { what: String, source: std::io::Error },
    /// Another build of netnice is loaded, whose data look different.
    #[error("another version of netnice is loaded; let its transfers end, then: netnice disable")]
    Version,
}

/// Shorthand for this crate's results.
pub type Result<T> = std::result::Result<T, Error>;

/// What libbpf printed since the last failure.
static LOG: Mutex<String> = Mutex::new(String::new());

fn quiet() {
    fn keep(_: PrintLevel, text: String) {
        LOG.lock().expect("no panic while held").push_str(&text);
    }
    libbpf_rs::set_print(Some((PrintLevel::Warn, keep)));
}

fn bpf(what: impl Into<String>) -> impl FnOnce(libbpf_rs::Error) -> Error {
    let what = what.into();
    move |source| Error::Bpf { what, source, hint: hint() }
}

/// Why loading fails on this kernel, if it can be told; else libbpf's own words.
fn hint() -> String {
    let log = mem::take(&mut *LOG.lock().expect("no panic while held"));
    if !fs::exists("/sys/kernel/btf/vmlinux").unwrap_or(false) {
        return "\nThe kernel has no type information: it needs CONFIG_DEBUG_INFO_BTF=y \
                (the kernels of Debian 12, Ubuntu 22.04 and later have it)"
            .into();
    }
    let ops = "bpf_struct_ops_tcp_congestion_ops";
    if let Ok(btf) = libbpf_rs::btf::Btf::from_vmlinux() {
        if btf.type_by_name::<libbpf_rs::btf::types::Struct<'_>>(ops).is_none() {
            return "\nThe kernel cannot run congestion controls in BPF (struct_ops): it needs \
                    CONFIG_BPF_SYSCALL=y and CONFIG_BPF_JIT=y, version 6.1 or later"
                .into();
        }
    }
    let tail: Vec<&str> = log.lines().rev().take(12).collect();
    tail.iter().rev().fold(String::new(), |text, line| text + "\n  " + line)
}

fn open(object: &'static [u8], name: &str) -> Result<OpenObject> {
    quiet();
    let mut object = ObjectBuilder::default()
        .name(name)
        .and_then(|b| b.open_memory(object))
        .map_err(bpf(format!("cannot read the BPF object {name}")))?;
    for mut map in object.maps_mut() {
        let shared = SHARED.iter().find(|(name, _)| map.name() == *name);
        let Some(made) = shared.and_then(|(name, ty)| maps(name, *ty).next()) else { continue };
        if map.value_size() != made.value_size() {
            return Err(Error::Version);
        }
        map.reuse_fd(made.as_fd()).map_err(bpf("cannot share the maps of connections"))?;
    }
    Ok(object)
}

fn load(object: OpenObject, what: &str) -> Result<Object> {
    object.load().map_err(bpf(format!("the kernel did not accept {what}")))
}

fn maps(name: &str, ty: MapType) -> impl Iterator<Item = MapHandle> + '_ {
    MapInfoIter::default()
        .filter(move |m| m.name.to_str() == Some(name) && m.ty == ty)
        // one that went away in between is not there
        .filter_map(|m| MapHandle::from_map_id(m.id).ok())
}

fn flows_map() -> Result<Option<MapHandle>> {
    Ok(maps(FLOWS, MapType::SkStorage).next())
}

/// The names (with [`PREFIX`]) of this project's controls that the kernel offers now.
///
/// # Errors
/// When /proc is not readable.
pub fn registered() -> Result<Vec<String>> {
    let names = fs::read_to_string(AVAILABLE)
        .map_err(|source| Error::Io { what: format!("cannot read {AVAILABLE}"), source })?;
    Ok(names.split_whitespace().filter(|n| n.starts_with(PREFIX)).map(Into::into).collect())
}

/// What the names end with of the controls for connections in groups (NN_CONTROL in cc.bpf.c).
const GROUPED: &str = "_g";

/// The kernel's name of the control that runs `algorithm`: of connections on their own, or of those
/// in groups.
pub fn control_name(algorithm: Algorithm, grouped: bool) -> String {
    format!("{PREFIX}{}{}", algorithm.name(), if grouped { GROUPED } else { "" })
}

/// The control's name as users know it: groups or not is one control to them.
fn plain(control: &[std::ffi::c_char]) -> String {
    let name = text(control);
    name.strip_suffix(GROUPED).map_or(name.clone(), Into::into)
}

/// The object that cc.bpf.c was compiled into for `algorithm`; `grouped` as in [`control_name`].
fn control(algorithm: Algorithm, grouped: bool) -> &'static [u8] {
    let (_, object) = if grouped { objects::GROUPED } else { objects::CONTROLS }
        .iter()
        .find(|(name, _)| *name == algorithm.name())
        .expect("build.rs compiles every algorithm, and for groups what has them");
    object
}

/// Registers an algorithm as a congestion control of the system, until [`unregister`]; `grouped`
/// as in [`control_name`]. It survives this process.
///
/// # Errors
/// When the kernel refuses; one that is registered already is no error.
pub fn register(algorithm: Algorithm, grouped: bool) -> Result<()> {
    let name = control_name(algorithm, grouped);
    if registered()?.contains(&name) {
        return Ok(());
    }
    let object = open(control(algorithm, grouped), &name)?;
    let mut object = load(object, &format!("the congestion control {name}"))?;
    let mut map = object
        .maps_mut()
        .find(|m| m.map_type() == MapType::StructOps)
        .expect("cc.bpf.c defines one");
    let mut link = map
        .attach_struct_ops()
        .map_err(bpf(format!("the kernel did not register the congestion control {name}")))?;
    link.disconnect(); // the registration stays when this process ends
    Ok(())
}

/// Takes a control (name with [`PREFIX`]) off the kernel's list. Connections that use it keep it
/// until they close.
///
/// # Errors
/// When the kernel refuses; one that is not registered is no error.
pub fn unregister(name: &str) -> Result<()> {
    for map in maps(name, MapType::StructOps) {
        // one that is only kept by its last connections answers EINPROGRESS, or is gone already
        let _ = map.delete(&0u32.to_ne_bytes());
    }
    match registered()?.iter().any(|n| n == name) {
        false => Ok(()),
        true => Err(Error::Io {
            what: format!("the kernel did not unregister {name}"),
            source: std::io::Error::last_os_error(),
        }),
    }
}

/// How many instructions the kernel's verifier walked in each program of `algorithm`; `grouped` as
/// in [`control_name`].
///
/// # Errors
/// When the control cannot be loaded.
pub fn instructions(algorithm: Algorithm, grouped: bool) -> Result<Vec<(String, u32)>> {
    let name = control_name(algorithm, grouped);
    let object = load(open(control(algorithm, grouped), &name)?, &name)?;
    let ids: Vec<u32> =
        object.progs().filter_map(|p| libbpf_rs::Program::id_from_fd(p.as_fd()).ok()).collect();
    Ok(ProgInfoIter::default()
        .filter(|i| ids.contains(&i.id))
        .map(|i| (i.name.to_string_lossy().into_owned(), i.verified_insns))
        .collect())
}

/// The programs of one run, attached to its cgroup. They stay with the cgroup when this is
/// dropped, so that a run whose tool was killed goes on in the background.
pub struct Run {
    object: Object,
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
        let mut run =
            sys::nn_run { settings: settings(id, config), tos: tos.into(), ..Default::default() };
        if let Some(group) = group {
            put_text(&mut run.settings.group, &group.name);
            run.settings.owner = group.owner;
            run.settings.bits = group.bits;
        }
        put_text(&mut run.ca, &control_name(config.algorithm(), group.is_some()));
        let object = load(open(objects::RUN, "netnice_run")?, "the programs of the run")?;
        object
            .maps()
            .find(|m| m.name() == RUN)
            .expect("run.bpf.c defines it")
            .update(&0u32.to_ne_bytes(), bytes(&run), MapFlags::ANY)
            .map_err(bpf("cannot set up the programs of the run"))?;
        for program in object.progs() {
            // SAFETY: both descriptors are open. Not a bpf_link, which would end with this process.
            let error = unsafe {
                libbpf_sys::bpf_prog_attach(
                    program.as_fd().as_raw_fd(),
                    cgroup.as_raw_fd(),
                    program.attach_type() as u32,
                    libbpf_sys::BPF_F_ALLOW_MULTI,
                )
            };
            if error < 0 {
                let what = format!("cannot attach {:?} to the cgroup of the run", program.name());
                return Err(bpf(what)(libbpf_rs::Error::from_raw_os_error(-error)));
            }
        }
        Ok(Run { object })
    }

    /// What the run's connections add up to by now: the closed ones and those still open.
    ///
    /// # Errors
    /// When the flows cannot be read.
    pub fn totals(&self, id: u64) -> Result<Totals> {
        let map = self
            .object
            .maps()
            .find(|m| m.name().to_string_lossy().ends_with(".data.totals"))
            .expect("run.bpf.c defines it");
        let value = map
            .lookup(&0u32.to_ne_bytes(), MapFlags::ANY)
            .map_err(bpf("cannot read the totals of the run"))?
            .unwrap_or_default();
        let mut totals = parse::<Totals>(&value).unwrap_or_default();
        for open in flows()?.iter().filter(|r| r.flow.settings.run == id && r.flow.closed == 0) {
            totals.bytes_acked += open.bytes_acked;
            totals.retransmits += u64::from(open.retransmits);
            totals.yielding_us += open.flow.yielding_us;
        }
        Ok(totals)
    }
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

/// A run that is there now, as its programs know it.
pub struct Running {
    run: sys::nn_run,
    map: MapHandle,
}

impl Running {
    /// All of them, those that are just going away too.
    ///
    /// # Errors
    /// When a map of the kernel cannot be read.
    pub fn all() -> Result<Vec<Running>> {
        let mut found = Vec::new();
        for map in maps(RUN, MapType::Array) {
            let value = map
                .lookup(&0u32.to_ne_bytes(), MapFlags::ANY)
                .map_err(bpf("cannot read the settings of a run"))?;
            if let Some(run) = value.and_then(|v| parse(&v)) {
                found.push(Running { run, map });
            }
        }
        Ok(found)
    }

    /// The id of its cgroup.
    pub fn id(&self) -> u64 {
        self.run.settings.run
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

/// Changes a parameter of connections that are there.
fn change(to: &sys::nn_change) -> Result<()> {
    const WHAT: &str = "cannot change a parameter of the connections of a run";
    let Some(flows) = flows_map()? else { return Ok(()) };
    let mut object = open(objects::SHARE, "netnice_share")?;
    object
        .maps_mut()
        .find(|m| m.name().to_string_lossy().ends_with(".rodata.change"))
        .expect("share.bpf.c defines it")
        .set_initial_value(bytes(to))
        .map_err(bpf(WHAT))?;
    let object = load(object, "the program that changes shares")?;
    let program = object.progs_mut().next().expect("share.bpf.c defines one");
    let link = program.attach_iter(flows.as_fd()).map_err(bpf(WHAT))?;
    let mut nothing = Vec::new();
    Iter::new(&link)
        .map_err(bpf(WHAT))?
        .read_to_end(&mut nothing)
        .map_err(|source| Error::Io { what: WHAT.into(), source })?;
    Ok(())
}

/// What the connections of a group to one place share.
pub struct Aggregate {
    entry: sys::nn_entry,
    slot: Box<sys::nn_slot>,
    /// Its number, which [`Record::slot`] gives too.
    pub index: u32,
}

impl Aggregate {
    /// All that have a connection.
    ///
    /// # Errors
    /// When a map of the kernel cannot be read.
    pub fn all() -> Result<Vec<Aggregate>> {
        let what = "cannot read the groups";
        let (Some(directory), Some(slots)) =
            (maps(DIRECTORY, MapType::Array).next(), maps(SLOTS, MapType::Array).next())
        else {
            return Ok(Vec::new());
        };
        let value = directory.lookup(&0u32.to_ne_bytes(), MapFlags::LOCK).map_err(bpf(what))?;
        let directory: sys::nn_directory = value.and_then(|v| parse(&v)).ok_or(Error::Version)?;
        let mut found = Vec::new();
        for (index, entry) in (0u32..).zip(directory.entry).filter(|(_, e)| e.flows > 0) {
            let value = slots.lookup(&index.to_ne_bytes(), MapFlags::LOCK).map_err(bpf(what))?;
            let slot = value.and_then(|v| parse(&v)).map(Box::new).ok_or(Error::Version)?;
            found.push(Aggregate { entry, slot, index });
        }
        Ok(found)
    }

    /// The group.
    pub fn group(&self) -> Membership {
        let sys::nn_group_key { name, owner, bits, .. } = &self.entry.key;
        Membership { name: text(name), owner: *owner, bits: *bits }
    }

    /// The remote address, of which the bits of [`Aggregate::group`] count (of 128), in network byte
    /// order; IPv4 as ::ffff:a.b.c.d.
    pub fn address(&self) -> [u32; 4] {
        self.entry.key.addr
    }

    /// The name of its connections' control.
    pub fn control(&self) -> String {
        plain(&self.entry.key.ca)
    }

    /// Connections that are in it.
    pub fn connections(&self) -> u32 {
        self.entry.flows
    }

    /// The sum of the windows in packets, Q16, as it was divided last: C.
    pub fn window_q16(&self) -> u64 {
        self.slot.group.window
    }

    /// The window that a member brought (its place plus 1, see `nn_info`), in packets, Q16: C_j.
    pub fn member_q16(&self, place: u32) -> Option<u64> {
        let member = self.slot.group.member.get(place.checked_sub(1)? as usize)?;
        (member.weight > 0 && member.window.cwnd > 0).then_some(member.window.cwnd)
    }
}

/// A text of the kernel's, up to its zero.
fn text(chars: &[std::ffi::c_char]) -> String {
    chars.iter().take_while(|c| **c != 0).map(|c| *c as u8 as char).collect()
}

/// Writes a text that is shorter than the place for it, which is zero.
fn put_text(to: &mut [std::ffi::c_char], text: &str) {
    assert!(text.len() < to.len(), "{text} is too long");
    for (to, from) in to.iter_mut().zip(text.bytes()) {
        *to = from as _;
    }
}

fn settings(run: u64, config: &Config) -> Settings {
    let mut settings =
        Settings { run, n_params: config.values().len() as u32, ..Default::default() };
    settings.cfg[..config.values().len()].copy_from_slice(config.values());
    settings
}

/// Gives `socket` the parameters that its next congestion control of this project starts with.
///
/// # Errors
/// When no control was registered yet, or the kernel refuses.
pub fn prepare(socket: BorrowedFd<'_>, config: &Config) -> Result<()> {
    let what = "cannot set the parameters of a connection";
    let map = flows_map()?.ok_or_else(|| Error::Io {
        what: what.into(),
        source: std::io::ErrorKind::NotFound.into(),
    })?;
    let flow = sys::nn_flow { settings: settings(0, config), ..Default::default() };
    map.update(&socket.as_raw_fd().to_ne_bytes(), bytes(&flow), MapFlags::ANY).map_err(bpf(what))
}

/// Every connection in the system that has one of this project's controls.
///
/// # Errors
/// When the kernel refuses the iterator.
pub fn flows() -> Result<Vec<Record>> {
    match Flows::open()? {
        Some(flows) => flows.read(),
        None => Ok(Vec::new()),
    }
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

    /// Every connection in the system that has one of this project's controls now.
    ///
    /// # Errors
    /// When the kernel refuses the iterator.
    pub fn read(&self) -> Result<Vec<Record>> {
        let mut data = Vec::new();
        Iter::new(&self.link)
            .map_err(bpf(Self::WHAT))?
            .read_to_end(&mut data)
            .map_err(|source| Error::Io { what: Self::WHAT.into(), source })?;
        let records = data.chunks_exact(mem::size_of::<Record>()).filter_map(parse::<Record>);
        Ok(records.filter(|r| r.control().starts_with(PREFIX)).collect())
    }

    const WHAT: &str = "cannot list the connections";
}

impl Record {
    /// The name of the connection's congestion control, the same in a group as on its own.
    pub fn control(&self) -> String {
        plain(&self.ca)
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

/// A step of a golden trace; `event` is an ACK where it is no `nn_event`.
pub use netnice_core::sys::nn_step as Step;
pub use netnice_core::sys::nn_trace as Trace;

/// Runs an algorithm over `steps` (exactly 20,000) inside the kernel.
///
/// # Errors
/// When the kernel refuses the program.
pub fn replay(config: &Config, steps: &[Step]) -> Result<Trace> {
    let value = replayed("nn_replay", ".data.trace", [config, config], steps)?;
    Ok(parse(&value).expect("the map holds one trace"))
}

/// The same for a group of flows, of which half have the second parameters. Returns the hash over
/// all of them with the first flow's state.
///
/// # Errors
/// When the kernel refuses the program.
pub fn replay_group(configs: [&Config; 2], steps: &[Step]) -> Result<Trace> {
    let value = replayed("nn_replay_group", ".data.group", configs, steps)?;
    let (hash, flows) = value.split_at(mem::size_of::<u64>());
    let first: Option<Trace> = parse(&flows[..mem::size_of::<Trace>()]);
    Ok(Trace {
        hash: parse(hash).expect("it has this size"),
        ..first.expect("the first of nn_group_trace.flow")
    })
}

/// Runs a program of replay.bpf.c; returns the value of one of its maps.
fn replayed(program: &str, result: &str, configs: [&Config; 2], steps: &[Step]) -> Result<Vec<u8>> {
    let name = configs[0].algorithm().name();
    let (_, object) = objects::REPLAYS
        .iter()
        .find(|(n, _)| *n == name)
        .expect("build.rs compiles every algorithm");
    let mut object = open(object, "netnice_replay")?;
    let mut cfg = [[0u32; netnice_core::sys::NN_PARAMS_MAX as usize]; 2];
    for (cfg, config) in cfg.iter_mut().zip(configs) {
        cfg[..config.values().len()].copy_from_slice(config.values());
    }
    object
        .maps_mut()
        .find(|m| m.name().to_string_lossy().ends_with(".data.cfg"))
        .expect("replay.bpf.c defines it")
        .set_initial_value(bytes(&cfg))
        .map_err(bpf("cannot set the parameters"))?;
    let object = load(object, "the replay of a trace")?;
    let map = |name: &str| {
        object.maps().find(|m| m.name().to_string_lossy().ends_with(name)).expect("replay.bpf.c")
    };
    let what = "cannot replay a trace";
    for (i, step) in steps.iter().enumerate() {
        map("steps")
            .update(&(i as u32).to_ne_bytes(), bytes(step), MapFlags::ANY)
            .map_err(bpf(what))?;
    }
    let program = object.progs_mut().find(|p| p.name() == program).expect("replay.bpf.c");
    let done = program.test_run(ProgramInput::default()).map_err(bpf(what))?;
    assert_eq!(done.return_value as usize, steps.len(), "the program takes every step");
    let value = map(result).lookup(&0u32.to_ne_bytes(), MapFlags::ANY).map_err(bpf(what))?;
    Ok(value.expect("an array of one value"))
}

/// Plain C structures from headers of this project, as bytes for a map.
fn bytes<T: Copy>(value: &T) -> &[u8] {
    // SAFETY: T is a C structure of integers without padding (checked by the kernel against its
    // own copy of the type), borrowed for as long as the bytes.
    unsafe { std::slice::from_raw_parts((&raw const *value).cast(), mem::size_of::<T>()) }
}

/// The inverse of [`bytes`]; None where the length does not fit.
fn parse<T: Copy>(data: &[u8]) -> Option<T> {
    // SAFETY: any bits are valid integers, and the length is checked.
    (data.len() == mem::size_of::<T>())
        .then(|| unsafe { data.as_ptr().cast::<T>().read_unaligned() })
}
