// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! inotify(7) for a tree of directories.
//!
//! It asks for changes alone: to be told of what is opened, too, would let each look through a
//! large tree, our own and rsync's, overflow the kernel's queue, which makes another look necessary.

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::fd::OwnedFd;
use rustix::fs::inotify::{
    add_watch, init, remove_watch, CreateFlags, ReadFlags, Reader, WatchFlags,
};
use rustix::io::Errno;

use crate::need::LISTED;

/// What happened in a tree.
#[derive(Debug)]
pub enum Event {
    /// Something at this path from the root; empty: the root itself.
    Changed(PathBuf),
    /// The root was removed, moved or unmounted; another may be there now, with the same inode.
    Gone,
    /// Something that is not known: an event, or a directory that could not be watched.
    Lost,
    /// A directory could not be watched, because the kernel allows no more.
    Limit,
}

/// Whether no more directories can be watched.
pub fn is_limit(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::NOSPC.raw_os_error())
}

/// A tree, or a name in a directory, under watch.
pub struct Tree {
    queue: OwnedFd,
    root: PathBuf,
    /// The only name in `root` that counts; then nothing below is watched.
    only: Option<OsString>,
    /// Whether links to directories are taken for these.
    follow: bool,
    /// From the root, by the kernel's number for the watch.
    paths: HashMap<i32, PathBuf>,
}

impl Tree {
    /// Not watched yet.
    ///
    /// # Errors
    /// When the kernel allows no more queues.
    pub fn new(root: PathBuf, only: Option<OsString>, follow: bool) -> io::Result<Tree> {
        let queue = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        Ok(Tree { queue, root, only, follow, paths: HashMap::new() })
    }

    /// Watches whatever of it is not watched yet.
    ///
    /// # Errors
    /// When a directory that is there cannot be watched; the rest may be unwatched too.
    pub fn watch(&mut self) -> io::Result<()> {
        self.add(PathBuf::new())
    }

    /// Watches a directory and, first it, then what is in it: nothing comes in between unnoticed.
    fn add(&mut self, top: PathBuf) -> io::Result<()> {
        let mut seen = HashSet::new();
        let mut left = vec![top];
        while let Some(path) = left.pop() {
            let whole = self.root.join(&path);
            let mut flags = WatchFlags::ATTRIB
                | WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::CLOSE_WRITE
                | WatchFlags::MODIFY
                | WatchFlags::MOVE
                | WatchFlags::ONLYDIR;
            if path.as_os_str().is_empty() {
                flags |= WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
            } else if !self.follow {
                flags |= WatchFlags::DONT_FOLLOW;
            }
            let watch = match add_watch(&self.queue, &whole, flags) {
                Ok(watch) => watch,
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue, // it went away
                Err(error) => return Err(error.into()),
            };
            if !seen.insert(watch) {
                continue; // a link led here
            }
            self.paths.insert(watch, path.clone());
            if self.only.is_some() {
                continue;
            }
            for entry in fs::read_dir(&whole).into_iter().flatten().flatten() {
                let is_directory = match entry.file_type() {
                    Ok(kind) if kind.is_symlink() && self.follow => entry.path().is_dir(),
                    Ok(kind) => kind.is_dir(),
                    Err(_) => false,
                };
                if is_directory {
                    left.push(path.join(entry.file_name()));
                }
            }
        }
        Ok(())
    }

    /// Forgets the directory that was at a path, and what is in it: their paths are others now.
    fn forget(&mut self, path: &Path) {
        let queue = &self.queue;
        self.paths.retain(|watch, below| {
            let stays = !below.starts_with(path);
            if !stays {
                let _ = remove_watch(queue, *watch); // the kernel may have done that
            }
            stays
        });
    }

    /// Waits for events, at most so long, and returns those that there are.
    ///
    /// # Errors
    /// When the queue cannot be read.
    pub fn next(&mut self, wait: Duration) -> io::Result<Vec<Event>> {
        let wait = Timespec { tv_sec: wait.as_secs() as i64, tv_nsec: wait.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&self.queue, PollFlags::IN)], Some(&wait)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut raw = Vec::new();
        let mut buffer = [MaybeUninit::uninit(); 16 << 10];
        let mut reader = Reader::new(&self.queue, &mut buffer);
        loop {
            match reader.next() {
                Ok(event) => {
                    let name =
                        event.file_name().map(|n| OsStr::from_bytes(n.to_bytes()).to_owned());
                    raw.push((event.wd(), event.events(), name));
                }
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            }
            if raw.len() >= LISTED && reader.is_buffer_empty() {
                break; // the rest is read the next time
            }
        }
        Ok(raw
            .into_iter()
            .filter_map(|(watch, flags, name)| self.event(watch, flags, name))
            .collect())
    }

    fn event(&mut self, watch: i32, flags: ReadFlags, name: Option<OsString>) -> Option<Event> {
        if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            return Some(Event::Lost);
        }
        if flags.contains(ReadFlags::IGNORED) {
            self.paths.remove(&watch);
            return None;
        }
        let directory = self.paths.get(&watch)?;
        let gone = ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF | ReadFlags::UNMOUNT;
        if flags.intersects(gone) {
            return directory.as_os_str().is_empty().then_some(Event::Gone);
        }
        if self.only.is_some() {
            return (name == self.only).then(|| Event::Changed(PathBuf::new()));
        }
        let path = name.map_or_else(|| directory.clone(), |name| directory.join(name));
        // where one came from, another may be: two can change places in one step
        let moved = flags.intersects(ReadFlags::MOVED_FROM | ReadFlags::MOVED_TO);
        if moved && flags.contains(ReadFlags::ISDIR) {
            self.forget(&path);
        }
        // a link to a directory is none to inotify
        let new = moved || flags.contains(ReadFlags::CREATE);
        if new && (flags.contains(ReadFlags::ISDIR) || self.follow) {
            match self.add(path.clone()) {
                Ok(()) => {}
                Err(error) if is_limit(&error) => return Some(Event::Limit),
                Err(_) => return Some(Event::Lost),
            }
        }
        Some(Event::Changed(path))
    }
}
