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
    // every object uses the one map of flows, if some object has made it before
    if let Some(flows) = flows_map()? {
        for mut map in object.maps_mut().filter(|m| m.name() == FLOWS) {
            if map.value_size() != flows.value_size() {
                return Err(Error::Version);
            }
            map.reuse_fd(flows.as_fd()).map_err(bpf("cannot share the map of flows"))?;
        }
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

/// The object that cc.bpf.c was compiled into for `algorithm`.
fn control(algorithm: Algorithm) -> &'static [u8] {
    let (_, object) = objects::CONTROLS
        .iter()
        .find(|(name, _)| *name == algorithm.name())
        .expect("build.rs compiles every algorithm");
    object
}

/// Registers an algorithm as a congestion control of the system, until [`unregister`].
/// It survives this process.
///
/// # Errors
/// When the kernel refuses; one that is registered already is no error.
pub fn register(algorithm: Algorithm) -> Result<()> {
    let name = format!("{PREFIX}{}", algorithm.name());
    if registered()?.contains(&name) {
        return Ok(());
    }
    let object = open(control(algorithm), &name)?;
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

/// How many instructions the kernel's verifier walked in each program of `algorithm`.
///
/// # Errors
/// When the control cannot be loaded.
pub fn instructions(algorithm: Algorithm) -> Result<Vec<(String, u32)>> {
    let object = load(open(control(algorithm), algorithm.name())?, algorithm.name())?;
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
    /// `id` marks them (the cgroup's id), `tos` is the TOS octet of their packets (0: left alone).
    ///
    /// # Errors
    /// When the kernel refuses a program.
    pub fn attach(cgroup: BorrowedFd<'_>, id: u64, config: &Config, tos: u8) -> Result<Run> {
        let mut run =
            sys::nn_run { settings: settings(id, config), tos: tos.into(), ..Default::default() };
        let name = format!("{PREFIX}{}", config.algorithm().name());
        for (to, from) in run.ca.iter_mut().zip(name.bytes()) {
            *to = from as _;
        }
        let mut object = open(objects::RUN, "netnice_run")?;
        object
            .maps_mut()
            .find(|m| m.name().to_string_lossy().ends_with(".rodata.run"))
            .expect("run.bpf.c defines it")
            .set_initial_value(bytes(&run))
            .map_err(bpf("cannot set up the programs of the run"))?;
        let object = load(object, "the programs of the run")?;
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
    /// The name of the connection's congestion control.
    pub fn control(&self) -> String {
        self.ca.iter().take_while(|c| **c != 0).map(|c| *c as u8 as char).collect()
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
