// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What changed below the source, in batches.
//!
//! inotify alone is never trusted for ever: it knows inodes, not paths, its queue may overflow, and
//! the number of directories is limited. So a look at the path each second tells whether it still
//! leads to what is watched, and the watch is renewed as often as everything is compared.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind::NotFound};
use std::mem;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use crate::error::{io as failed, wrong};
use crate::job::Job;
use crate::need::{merge, Need};
use crate::paths::{resolved, Identity};
use crate::place::named;
use crate::rsync::has_short;
use crate::schedule::pause;
use crate::{Error, Result};

mod tree;

use tree::{is_limit, Event, Tree};

/// A batch ends when nothing changed for this long,
const QUIET: Duration = Duration::from_millis(500);
/// or when it began this long ago.
const LONGEST: Duration = Duration::from_secs(5);
/// How often it is looked where the source's path leads to.
const LOOK: Duration = Duration::from_secs(1);
/// After an overflow of the queue the watch is renewed, but not more often than this.
const REST: Duration = Duration::from_secs(10);

/// What became known of the source.
#[derive(Debug, PartialEq)]
pub enum Seen {
    Changed(Need),
    /// Its path leads to something else than before, or to something again.
    Another,
    /// Why not all of it is watched; None: all of it is, again.
    Trouble(Option<String>),
}

/// What of a job tells what to watch.
pub struct Watched {
    /// As the user wrote it.
    pub source: PathBuf,
    /// Whether it has a name in its copies; else these have what is in it.
    pub named: bool,
    /// Whether links are followed, because their targets are copied.
    pub follow: bool,
    /// From the source; what is not watched.
    pub left_out: Option<PathBuf>,
    pub compare_every: Duration,
}

impl Watched {
    /// What of a job it takes.
    pub fn of(job: &Job) -> Watched {
        Watched {
            source: PathBuf::from(&job.source),
            named: named(&job.source).is_some(),
            follow: job.rsync.iter().any(|option| follows(option)),
            left_out: job.left_out.as_ref().map(PathBuf::from),
            compare_every: job.compare_every(),
        }
    }

    /// Whether the source is a link that is copied as such.
    fn is_link(&self) -> bool {
        let link = || fs::symlink_metadata(&self.source).is_ok_and(|m| m.is_symlink());
        self.named && !self.follow && link()
    }

    /// What the path of the source leads to now; None: nothing.
    fn identity(&self) -> Option<Identity> {
        match self.is_link() {
            true => fs::symlink_metadata(&self.source).ok().map(|m| Identity::from(&m)),
            false => Identity::of(&self.source),
        }
    }
}

/// Whether an option lets rsync copy what links lead to.
fn follows(option: &str) -> bool {
    option.starts_with("--copy-") && option.contains("links") || has_short(option, "Lk")
}

/// Keeps the source under watch until it is dropped.
pub struct Watch(#[allow(dead_code, reason = "the thread ends when it is gone")] Arc<()>);

impl Watch {
    /// Calls `tell` with each batch of changes below the source.
    ///
    /// # Errors
    /// When it cannot be found, or the kernel's limits do not allow it.
    pub fn start(what: Watched, tell: impl FnMut(Seen) + Send + 'static) -> Result<Watch> {
        let mut root = Root::open(&what)?;
        root.tree.watch().map_err(|e| unwatched(&what.source, e))?;
        let alive = Arc::new(());
        let watching = Watching {
            alive: Arc::downgrade(&alive),
            root: Some(root),
            what,
            tell,
            trouble: None,
            gone: false,
            lost: false,
            renewed: Instant::now(),
        };
        let thread = thread::Builder::new().spawn(move || watching.go_on());
        thread.map_err(failed("cannot start a thread"))?;
        Ok(Watch(alive))
    }
}

/// What is watched at present.
struct Root {
    identity: Identity,
    tree: Tree,
}

impl Root {
    /// What the path of the source leads to now, not watched yet.
    fn open(what: &Watched) -> Result<Root> {
        let source = &what.source;
        let missing =
            || failed::<io::Error>(format!("cannot find the source {}", source.display()));
        let identity = what.identity().ok_or(NotFound.into()).map_err(missing())?;
        let is_link = what.is_link();
        let path = match (is_link, source.file_name()) {
            (true, Some(name)) => resolved(&source.with_file_name("")).map(|p| p.join(name)),
            _ => fs::canonicalize(source),
        };
        let path = path.map_err(missing())?;
        // a file may be replaced by another of its name: its directory tells
        let (directory, only) = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) if is_link || !path.is_dir() => {
                (parent.into(), Some(name.into()))
            }
            _ => (path, None),
        };
        // unless they are copied, what links lead to is not of the source: rsync, told of a path
        // through a link, would make a directory of that in the copy
        let tree = Tree::new(directory, only, what.follow).map_err(|e| unwatched(source, e))?;
        Ok(Root { identity, tree })
    }
}

fn unwatched(source: &Path, error: io::Error) -> Error {
    let source = source.display();
    match error.raw_os_error() {
        _ if is_limit(&error) => wrong!(
            "{source} has more directories than may be watched; allow more: \
             sysctl fs.inotify.max_user_watches=1048576"
        ),
        Some(error) if error == Errno::MFILE.raw_os_error() => wrong!(
            "{source} cannot be watched beside so much else; allow more: \
             sysctl fs.inotify.max_user_instances=1024"
        ),
        _ => failed(format!("cannot watch {source}"))(error),
    }
}

/// The thread that watches.
struct Watching<T> {
    alive: Weak<()>,
    what: Watched,
    tell: T,
    /// None: the path of the source leads to nothing.
    root: Option<Root>,
    /// Told last.
    trouble: Option<String>,
    /// The root was removed or moved.
    gone: bool,
    /// Events were lost: directories may be unwatched.
    lost: bool,
    renewed: Instant,
}

impl<T: FnMut(Seen)> Watching<T> {
    fn go_on(mut self) {
        while self.alive.strong_count() > 0 {
            self.look();
            match &mut self.root {
                Some(root) => match root.tree.next(LOOK) {
                    Ok(first) => self.batch(first),
                    Err(_) => self.gone = true,
                },
                None => thread::sleep(LOOK),
            }
        }
    }

    /// Looks where the path leads to, and whether it is time to renew the watch.
    fn look(&mut self) {
        let now = self.what.identity();
        let before = self.root.as_ref().map(|r| r.identity);
        let gone = mem::take(&mut self.gone);
        if now.is_none() && before.is_some() {
            self.root = None;
            (self.tell)(Seen::Changed(Need::Full)); // fails, and says so of each destination
        }
        if now.is_none() {
            let source = self.what.source.display();
            self.set_trouble(Some(format!("cannot find the source {source}; waiting for it")));
        } else if now != before || gone {
            self.root = None; // first: two watches would count twice against the limit
            match Root::open(&self.what) {
                Ok(root) => {
                    self.root = Some(root);
                    self.renew();
                    (self.tell)(Seen::Another);
                }
                Err(error) => self.set_trouble(Some(error.to_string())),
            }
        } else if self.renewed.elapsed() >= self.rest() {
            self.renew();
        }
    }

    /// The time between two renewals.
    fn rest(&self) -> Duration {
        match self.lost {
            true => REST,
            false => pause(self.what.compare_every, self.trouble.is_some()),
        }
    }

    /// Watches again whatever is not watched.
    fn renew(&mut self) {
        let Some(root) = &mut self.root else { return };
        let missed = mem::take(&mut self.lost) || self.trouble.is_some();
        let trouble = root.tree.watch().err().map(|error| self.short(error));
        self.renewed = Instant::now();
        if missed && trouble.is_none() {
            (self.tell)(Seen::Changed(Need::Full));
        }
        self.set_trouble(trouble);
    }

    /// What is said while not all can be watched.
    fn short(&self, error: io::Error) -> String {
        let error = unwatched(&self.what.source, error);
        let every = pause(self.what.compare_every, true).as_secs();
        format!("{error}; until then everything is compared every {every} s")
    }

    fn set_trouble(&mut self, trouble: Option<String>) {
        if trouble != self.trouble {
            self.trouble.clone_from(&trouble);
            (self.tell)(Seen::Trouble(trouble));
        }
    }

    /// Collects events until the batch ends, and tells what they make necessary.
    fn batch(&mut self, first: Vec<Event>) {
        let mut need = None;
        let mut events = first;
        let ends = Instant::now() + LONGEST;
        while !events.is_empty() {
            for event in events {
                need = match (need, self.need(event)) {
                    (need, None) => need,
                    (need, Some(more)) => Some(merge(need, more)),
                };
            }
            let left = ends.saturating_duration_since(Instant::now()).min(QUIET);
            let Some(root) = self.root.as_mut().filter(|_| !left.is_zero()) else { break };
            events = root.tree.next(left).unwrap_or_default();
        }
        if let Some(need) = need {
            let need = with_other_names(&self.what.source, need);
            (self.tell)(Seen::Changed(need));
        }
    }

    /// What an event makes necessary; None: nothing.
    fn need(&mut self, event: Event) -> Option<Need> {
        match event {
            Event::Changed(path) => {
                let left_out = self.what.left_out.as_deref();
                return changed(path, left_out);
            }
            Event::Gone => self.gone = true,
            Event::Lost => self.lost = true,
            Event::Limit => {
                let trouble = self.short(Errno::NOSPC.into());
                self.set_trouble(Some(trouble));
            }
        }
        Some(Need::Full)
    }
}

/// What is necessary if one of the paths has other names: the watch tells one, and only a look
/// through everything finds the others, which are to be one file in the copy too.
fn with_other_names(source: &Path, need: Need) -> Need {
    let Need::Paths(paths) = &need else { return need };
    let linked = |path: &OsString| {
        fs::symlink_metadata(source.join(path)).is_ok_and(|m| !m.is_dir() && m.nlink() > 1)
    };
    if paths.iter().any(linked) {
        Need::Full
    } else {
        need
    }
}

/// What a change at this path of the source makes necessary; None: nothing.
fn changed(path: PathBuf, left_out: Option<&Path>) -> Option<Need> {
    if left_out.is_some_and(|l| path.starts_with(l)) {
        return None;
    }
    match path.as_os_str().is_empty() {
        true => Some(Need::Full), // the source itself
        false => Some(Need::Paths([OsString::from(path)].into())),
    }
}

#[cfg(test)]
mod tests;
