// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What changed below the source, in batches.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use notify::event::{AccessKind, AccessMode};
use notify::{recommended_watcher, ErrorKind, Event, EventKind, RecommendedWatcher};
use notify::{RecursiveMode, Watcher};

use crate::error::{io, wrong};
use crate::need::{merge, Need};
use crate::{Error, Result};

/// A batch ends when nothing changed for this long,
const QUIET: Duration = Duration::from_millis(500);
/// or when it began this long ago.
const LONGEST: Duration = Duration::from_secs(5);

/// Keeps the source under watch until it is dropped.
pub struct Watch(#[allow(dead_code, reason = "watches while it lives")] RecommendedWatcher);

impl Watch {
    /// Calls `tell` with each batch of changes below `source`.
    ///
    /// # Errors
    /// When the kernel's limits do not allow it.
    pub fn start(source: &str, tell: impl FnMut(Need) + Send + 'static) -> Result<Watch> {
        let root = fs::canonicalize(source).map_err(io(format!("cannot find {source}")))?;
        // a file may be replaced by another of its name: its directory tells
        let (directory, only) = match root.is_dir() {
            true => (root.clone(), None),
            false => (root.parent().unwrap_or(&root).to_path_buf(), Some(root)),
        };
        let (to, from) = channel();
        let mut watcher = recommended_watcher(to).map_err(|e| unwatched(source, e))?;
        let mode =
            if only.is_some() { RecursiveMode::NonRecursive } else { RecursiveMode::Recursive };
        watcher.watch(&directory, mode).map_err(|e| unwatched(source, e))?;
        thread::spawn(move || batches(&from, &directory, only.as_deref(), tell));
        Ok(Watch(watcher))
    }
}

fn unwatched(source: &str, error: notify::Error) -> Error {
    match error.kind {
        ErrorKind::MaxFilesWatch => wrong!(
            "{source} has more directories than may be watched; allow more: \
             sysctl fs.inotify.max_user_watches=1048576"
        ),
        _ => Error::Watch { what: format!("cannot watch {source}"), error },
    }
}

/// Collects events into batches, until the watcher is gone.
fn batches(
    from: &Receiver<notify::Result<Event>>,
    root: &Path,
    only: Option<&Path>,
    mut tell: impl FnMut(Need),
) {
    while let Ok(first) = from.recv() {
        let mut need = changed(first, root, only);
        let ends = Instant::now() + LONGEST;
        loop {
            let left = ends.saturating_duration_since(Instant::now()).min(QUIET);
            match from.recv_timeout(left) {
                Ok(event) => {
                    if let Some(more) = changed(event, root, only) {
                        need = Some(merge(need, more));
                    }
                }
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        if let Some(need) = need {
            tell(need);
        }
    }
}

/// What an event makes necessary; None: nothing.
fn changed(event: notify::Result<Event>, root: &Path, only: Option<&Path>) -> Option<Need> {
    // an event that was lost, by an overflow of the kernel's queue or an error
    let event = match event {
        Ok(event) if !event.need_rescan() => event,
        _ => return Some(Need::Full),
    };
    if let EventKind::Access(kind) = event.kind {
        if kind != AccessKind::Close(AccessMode::Write) {
            return None;
        }
    }
    if let Some(file) = only {
        return event.paths.iter().any(|p| p == file).then_some(Need::Full);
    }
    let relative = |p: &PathBuf| p.strip_prefix(root).map(OsString::from).ok();
    let paths: BTreeSet<_> = event.paths.iter().filter_map(relative).collect();
    match paths.iter().any(|p| p.is_empty()) {
        true => Some(Need::Full), // the source itself
        false if paths.is_empty() => None,
        false => Some(Need::Paths(paths)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use notify::event::{CreateKind, Flag};

    fn created(path: &str) -> notify::Result<Event> {
        Ok(Event::new(EventKind::Create(CreateKind::File)).add_path(path.into()))
    }

    fn paths(names: &[&str]) -> Need {
        Need::Paths(names.iter().map(OsString::from).collect())
    }

    #[test]
    fn an_overflow_makes_everything_necessary() {
        let event = Event::new(EventKind::Other).set_flag(Flag::Rescan);
        assert_eq!(changed(Ok(event), Path::new("/s"), None), Some(Need::Full));
        let lost = Err(notify::Error::generic("lost"));
        assert_eq!(changed(lost, Path::new("/s"), None), Some(Need::Full));
    }

    #[test]
    fn paths_are_relative_to_the_source_and_reading_changes_nothing() {
        let root = Path::new("/s");
        assert_eq!(changed(created("/s/a/b"), root, None), Some(paths(&["a/b"])));
        assert_eq!(changed(created("/s"), root, None), Some(Need::Full));
        assert_eq!(changed(created("/other"), root, None), None);
        let read = Event::new(EventKind::Access(AccessKind::Open(AccessMode::Any)))
            .add_path("/s/a".into());
        assert_eq!(changed(Ok(read), root, None), None);
        let file = Some(Path::new("/s/a"));
        assert_eq!(changed(created("/s/b"), root, file), None);
        assert_eq!(changed(created("/s/a"), root, file), Some(Need::Full));
    }
}
