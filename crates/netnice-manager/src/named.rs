// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! How people name a cgroup: by a path, a unit of systemd, a container.
//!
//! Units and containers are looked for in the tree of cgroups, where systemd and all engines name them.
//! Only the engine itself knows which id a container's name stands for.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{pidfd_open, Pid, PidfdFlags};

use crate::attached::{shown, Whole};
use crate::cgroup::{below, mount, wait_for, Hierarchy};
use crate::error::refuse;
use crate::tool::tool;
use crate::Result;

/// What somebody wants attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// Below the mount of cgroup v2, or from its root.
    Cgroup(PathBuf),
    /// A unit of the system's systemd.
    Unit(String),
    /// A container's name, its id, or how that begins.
    Container(String),
    /// What Kubernetes calls BestEffort: the pods that ask for no share of the machine.
    Pods,
    /// A pod of Kubernetes, as people know it, and its UID.
    Pod { name: String, uid: String },
}

/// The cgroup of a container that its runtime just makes, by a process in it.
///
/// # Errors
/// When it has none of its own, or is in a run.
pub fn of_container(hierarchy: &Hierarchy, id: &str, pid: i32) -> Result<Whole> {
    let cgroup = |pid: &str| {
        let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        text.lines().find_map(|line| line.strip_prefix("0::")).map(PathBuf::from)
    };
    let Some(own) = cgroup(&pid.to_string()) else {
        refuse!("the container {id:?} has ended, or has no cgroup of version 2");
    };
    // some runtimes make one more inside
    let names_it = |path: &&Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.ends_with(id) || name.strip_suffix(".scope").is_some_and(|name| name.ends_with(id))
    };
    let whole = own.ancestors().filter(names_it).last().unwrap_or(&own);
    let shared = cgroup("self").is_some_and(|this| this.starts_with(whole));
    if shared || whole == Path::new("/") {
        refuse!(
            "the container {id:?} has no cgroup of version 2 of its own: others would be in the background \
             with it"
        );
    }
    allowed(hierarchy, whole, format!("the container {id}"))
}

impl Named {
    /// The cgroup. To ask a container's engine may take time: before others have to wait, so before
    /// [`System::change`](crate::system::System::change).
    ///
    /// # Errors
    /// When there is none, or it may not be attached.
    pub fn find(&self, hierarchy: &Hierarchy) -> Result<Whole> {
        let (path, name) = match self {
            Named::Cgroup(path) => {
                let path = from_root(path)?;
                let name = format!("the cgroup {}", shown(&path));
                (path, name)
            }
            Named::Unit(name) => {
                let name = full(name)?;
                (unit(hierarchy, &name)?, format!("the unit {name}"))
            }
            Named::Container(name) => {
                (container(hierarchy, name)?, format!("the container {name}"))
            }
            Named::Pods => (pods(hierarchy)?, "the cgroup of the BestEffort pods".to_string()),
            Named::Pod { name, uid } => (pod(hierarchy, name, uid)?, format!("the pod {name}")),
        };
        allowed(hierarchy, &path, name)
    }
}

/// The cgroup at this path from the root, unless it may not be attached.
fn allowed(hierarchy: &Hierarchy, path: &Path, name: String) -> Result<Whole> {
    if path.ancestors().any(|p| hierarchy.is_run(p)) {
        refuse!("{name} is in a run, so it is in the background already; see netnice status");
    }
    if !fs::metadata(hierarchy.path(path)).is_ok_and(|m| m.is_dir()) {
        refuse!("there is no such cgroup: {}; list them: systemd-cgls", shown(path));
    }
    Whole::at(hierarchy.path(path), name)
}

/// The path from the root, of one as people write it.
fn from_root(path: &Path) -> Result<PathBuf> {
    let inside = path.strip_prefix(mount()).unwrap_or(path);
    let mut found = PathBuf::new();
    for part in inside.components() {
        match part {
            Component::Normal(name) => found.push(name),
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir | Component::Prefix(_) => refuse!(
                "the path of a cgroup is written without \"..\", from {}: {}",
                mount().display(),
                mount().join("system.slice/NAME.service").display()
            ),
        }
    }
    if found.as_os_str().is_empty() {
        refuse!(
            "the root is this whole host; name a cgroup below it, such as {}",
            mount().join("background.slice").display()
        );
    }
    Ok(found)
}

/// What the names of units that have a cgroup end with.
const KINDS: [&str; 6] = [".service", ".scope", ".slice", ".socket", ".mount", ".swap"];

/// The name of a unit; without a kind it is a service.
fn full(name: &str) -> Result<String> {
    if name.is_empty() || name.contains('/') || name.contains('\0') {
        refuse!("{name:?} is no name of a unit; list them: systemctl list-units");
    }
    let has_kind = KINDS.iter().any(|kind| name.ends_with(kind));
    Ok(if has_kind { name.into() } else { format!("{name}.service") })
}

/// The cgroup of a unit: it is in slices alone, but for those that a user's or a container's own
/// systemd has.
fn unit(hierarchy: &Hierarchy, name: &str) -> Result<PathBuf> {
    if name == "-.slice" {
        return from_root(Path::new("/"));
    }
    let root = hierarchy.path(Path::new(""));
    let mut slices = vec![root.clone()];
    while let Some(slice) = slices.pop() {
        for path in below(&slice) {
            if path.file_name().is_some_and(|n| n == name) {
                return Ok(path.strip_prefix(&root).unwrap_or(&path).into());
            }
            if path.extension().is_some_and(|kind| kind == "slice") {
                slices.push(path);
            }
        }
    }
    refuse!(
        "the unit {name} does not run; see: systemctl status {name}; a unit of a user's own systemd is \
         named by its path: --cgroup PATH"
    )
}

/// The cgroup of all BestEffort pods, as the kubelet makes it with systemd or without, at the root or in
/// a cgroup of its own.
fn pods(hierarchy: &Hierarchy) -> Result<PathBuf> {
    let found = of_kubelet(hierarchy, |path, name| {
        let above = path.parent().and_then(Path::file_name).unwrap_or_default();
        name == "kubepods-besteffort.slice"
            || name.ends_with("-kubepods-besteffort.slice")
            || (name == "besteffort" && above == "kubepods")
    });
    match found {
        Some(path) => Ok(path),
        None => refuse!(
            "there is no cgroup of BestEffort pods (kubepods-besteffort.slice, kubepods/besteffort): does \
             the kubelet run on this host?"
        ),
    }
}

/// The cgroup of a pod: `-podUID.slice` with `_` for `-` where systemd makes it, else `podUID`.
fn pod(hierarchy: &Hierarchy, name: &str, uid: &str) -> Result<PathBuf> {
    let (own, slice) = (format!("pod{uid}"), format!("-pod{}.slice", uid.replace('-', "_")));
    match of_kubelet(hierarchy, |_, name| name == own || name.ends_with(&slice)) {
        Some(path) if !uid.is_empty() => Ok(path),
        _ => refuse!("the pod {name} has no cgroup: it has ended, or has only begun"),
    }
}

/// The first cgroup, from the root down to pods, of which this is true; by its path and its name.
fn of_kubelet(hierarchy: &Hierarchy, is_it: impl Fn(&Path, &str) -> bool) -> Option<PathBuf> {
    let root = hierarchy.path(Path::new(""));
    let mut dirs: Vec<_> = below(&root).map(|path| (path, 1)).collect();
    while let Some((path, depth)) = dirs.pop() {
        if is_it(&path, &path.file_name().unwrap_or_default().to_string_lossy()) {
            return Some(path.strip_prefix(&root).unwrap_or(&path).into());
        }
        if depth < PODS_DEPTH {
            dirs.extend(below(&path).map(|path| (path, depth + 1)));
        }
    }
    None
}

/// How deep a pod's cgroup may be: kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/
/// kubelet-kubepods-burstable-podUID.slice.
const PODS_DEPTH: u32 = 4;

/// The digits of a container's id, and those that people write at least.
const ID: usize = 64;
const SHORT: usize = 12;
/// Those that know which container has a name.
const ENGINES: [&str; 3] = ["docker", "podman", "nerdctl"];
/// How long one of them may take to say so.
const PATIENCE: Duration = Duration::from_secs(10);

fn container(hierarchy: &Hierarchy, name: &str) -> Result<PathBuf> {
    if name.is_empty() || name.starts_with('-') || name.contains('\0') {
        refuse!("{name:?} is no name of a container; list them: docker ps, podman ps");
    }
    let (mut known, mut silent) = (None, None);
    let mut found = of_id(hierarchy, name);
    if found.is_empty() {
        // another one may know it where one is silent
        known = ENGINES.iter().find_map(|engine| match ask(engine, name, PATIENCE) {
            Ok(id) => Some((engine, id?)),
            Err(error) => {
                silent.get_or_insert(error);
                None
            }
        });
        found = known.iter().flat_map(|(_, id)| of_id(hierarchy, id)).collect();
    }
    match (found.as_slice(), known, silent) {
        ([path], ..) => Ok(path.clone()),
        ([], Some((engine, _)), _) => {
            refuse!("the container {name} does not run; see: {engine} ps --all")
        }
        ([], None, Some(error)) => Err(error),
        ([], None, None) => refuse!(
            "there is no container {name}: docker and podman do not know it, and no cgroup has such an id; \
             list them: docker ps, podman ps, crictl ps"
        ),
        _ => refuse!("several containers have an id that begins with {name}; write more of it"),
    }
}

/// The id that an engine knows a container by; none: it knows no such, or there is no such engine.
fn ask(engine: &str, name: &str, patience: Duration) -> Result<Option<String>> {
    let mut command = tool(engine);
    command.args(["container", "inspect", "--format", "{{.Id}}", name]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let Ok(mut asked) = command.spawn() else { return Ok(None) };
    let is_silent =
        |pidfd: OwnedFd| wait_for(pidfd.as_fd(), patience).is_ok_and(|has_ended| !has_ended);
    if pidfd_open(Pid::from_child(&asked), PidfdFlags::empty()).is_ok_and(is_silent) {
        let _ = asked.kill().and_then(|()| asked.wait()); // it has ended by itself meanwhile
        refuse!(
            "{engine} does not answer whether it has the container {name}, for {} s now: does its service \
             work? Without that, write {SHORT} digits of the container's id",
            patience.as_secs()
        );
    }
    let Ok(said) = asked.wait_with_output() else { return Ok(None) };
    let id = String::from_utf8_lossy(&said.stdout).trim().to_string();
    Ok((said.status.success() && is_hex(&id) && id.len() == ID).then_some(id))
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// The cgroups of the containers whose ids begin so.
fn of_id(hierarchy: &Hierarchy, start: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if !is_hex(start) || start.len() < SHORT {
        return found;
    }
    let root = hierarchy.path(Path::new(""));
    let mut dirs = vec![root.clone()];
    while let Some(dir) = dirs.pop() {
        for path in below(&dir) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            match id_in(&name) {
                Some(id) if id.starts_with(start) => {
                    found.push(path.strip_prefix(&root).unwrap_or(&path).into());
                }
                _ => dirs.push(path), // below a container are parts of it
            }
        }
    }
    found
}

/// The id of a container in the name of its cgroup: docker-ID.scope, libpod-ID, crio-ID.scope,
/// cri-containerd-ID.scope, ID. The monitor of a container has a cgroup of its own.
fn id_in(name: &str) -> Option<&str> {
    let id = name.strip_suffix(".scope").unwrap_or(name).rsplit(['-', ':']).next()?;
    (id.len() == ID && is_hex(id) && !name.contains("conmon")).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_taken_from_the_mount_or_from_the_root() {
        let path = |text: &str| from_root(Path::new(text)).map_err(|e| e.to_string());
        let below = mount().join("a.slice/b.service");
        for text in ["/a.slice/b.service", "a.slice/b.service", "./a.slice//b.service/"] {
            assert_eq!(path(text), Ok("a.slice/b.service".into()), "{text}");
        }
        assert_eq!(path(&below.display().to_string()), Ok("a.slice/b.service".into()));
        for text in ["", "/", ".", &mount().display().to_string()] {
            assert!(path(text).is_err_and(|e| e.contains("this whole host")), "{text}");
        }
        for text in ["..", "/a/../..", "a/.."] {
            assert!(path(text).is_err_and(|e| e.contains("without \"..\"")), "{text}");
        }
    }

    #[test]
    fn a_unit_without_a_kind_is_a_service() {
        let name = |text: &str| full(text).map_err(|e| e.to_string());
        assert_eq!(name("rsync"), Ok("rsync.service".into()));
        assert_eq!(name("a.b"), Ok("a.b.service".into()));
        assert_eq!(name("background.slice"), Ok("background.slice".into()));
        assert!(name("../x").is_err_and(|e| e.contains("no name of a unit")));
        assert!(name("").is_err());
    }

    #[test]
    fn an_engine_that_does_not_answer_is_waited_for_no_longer_than_patience_lasts() {
        let engine = |script: &str| {
            use std::os::unix::fs::PermissionsExt;
            let number = std::process::id();
            let path = std::env::temp_dir().join(format!("netnice-engine-{number}"));
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            let id = ask(path.to_str().unwrap(), "web", Duration::from_secs(1));
            fs::remove_file(&path).unwrap();
            id.map_err(|e| e.to_string())
        };
        let id = "0123456789abcdef".repeat(4);
        assert_eq!(engine(&format!("echo {id}")), Ok(Some(id)));
        assert_eq!(engine("exit 1"), Ok(None));
        let said = engine("exec sleep 1000").expect_err("it said nothing");
        assert!(
            said.contains("does not answer whether it has the container web, for 1 s"),
            "{said}"
        );
    }

    #[test]
    fn a_container_is_known_by_the_id_in_the_name_of_its_cgroup() {
        let id = "0123456789abcdef".repeat(4);
        for name in
            ["docker-ID.scope", "libpod-ID", "crio-ID.scope", "cri-containerd-ID.scope", "ID"]
        {
            assert_eq!(id_in(&name.replace("ID", &id)), Some(id.as_str()), "{name}");
        }
        for name in ["libpod-conmon-ID.scope", "crio-conmon-ID", "IDx", "docker-0123.scope"] {
            assert_eq!(id_in(&name.replace("ID", &id)), None, "{name}");
        }
    }
}
