// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Paths of this machine: where they lead, and what lies in what.

use std::env;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{absolute, Component, Path, PathBuf};

/// Which file or directory it is, whatever it is called: device and inode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity(u64, u64);

impl Identity {
    /// Of what `path` leads to at this moment; None: to nothing.
    pub fn of(path: &Path) -> Option<Identity> {
        fs::metadata(path).ok().map(|m| Identity::from(&m))
    }
}

impl From<&Metadata> for Identity {
    fn from(of: &Metadata) -> Identity {
        Identity(of.dev(), of.ino())
    }
}

/// `path` from the root, as the user wrote it: links are not followed, for they may lead elsewhere
/// tomorrow. A relative one is from the directory as the shell calls it (`pwd -L`).
///
/// # Errors
/// When there is no current directory any more.
pub fn written(path: &Path) -> io::Result<PathBuf> {
    let here = Identity::of(Path::new("."));
    let called = env::var_os("PWD").map(PathBuf::from);
    let called = called.filter(|p| p.is_absolute() && here.is_some() && Identity::of(p) == here);
    let whole = match called {
        Some(called) => called.join(path),
        None => absolute(path)?,
    };
    Ok(whole.components().collect()) // without dots and slashes that mean nothing
}

/// Where `path` leads: links are followed as far as it exists, and what does not is added.
///
/// # Errors
/// When there is no current directory any more.
pub fn resolved(path: &Path) -> io::Result<PathBuf> {
    let whole = absolute(path)?;
    for existing in whole.ancestors() {
        let Ok(mut found) = fs::canonicalize(existing) else { continue };
        for part in whole.strip_prefix(existing).into_iter().flat_map(Path::components) {
            match part {
                Component::ParentDir => drop(found.pop()),
                part => found.push(part),
            }
        }
        return Ok(found);
    }
    Ok(whole)
}

/// The path of `path` from the directory `root` if it is in there, by whatever names they are
/// called; empty: it is `root` itself.
pub fn within(root: &Path, path: &Path) -> Option<PathBuf> {
    let identity = fs::metadata(root).ok().filter(Metadata::is_dir).map(|m| Identity::from(&m))?;
    let path = resolved(path).ok()?;
    let above = path.ancestors().find(|a| Identity::of(a) == Some(identity))?;
    path.strip_prefix(above).map(PathBuf::from).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_is_in_a_directory_is_found_by_every_name_that_leads_there() {
        let base = tempfile::tempdir().unwrap();
        let at = |name: &str| base.path().join(name);
        fs::create_dir_all(at("w/deep")).unwrap();
        fs::create_dir(at("w-beside")).unwrap();
        symlink("w", at("link")).unwrap();
        symlink("w/deep", at("short")).unwrap();
        symlink(base.path(), at("w/up")).unwrap();
        let within = |root: &str, path: &str| within(&at(root), &at(path));
        let found = |path: &str| Some(PathBuf::from(path));
        assert_eq!(within("w", "w"), found(""));
        assert_eq!(within("w/", "link/."), found(""));
        assert_eq!(within("link", "w/new/er"), found("new/er"));
        assert_eq!(within("w", "short/new"), found("deep/new"));
        assert_eq!(within("w", "w-beside/../w/x"), found("x"));
        assert_eq!(within("w", "w-beside/new/../../w/x"), found("x"));
        for outside in ["w-beside", "w2", "w/../other", "w/up/other", "short/../../x"] {
            assert_eq!(within("w", outside), None, "{outside}");
        }
        fs::write(at("file"), "").unwrap();
        assert_eq!(within("file", "file"), None); // no directory: nothing is in it
    }

    #[test]
    fn a_path_is_written_from_the_root_without_following_links() {
        let base = tempfile::tempdir().unwrap();
        let link = base.path().join("link");
        symlink("/usr", &link).unwrap();
        assert_eq!(written(&link.join(".")).unwrap(), link);
        assert_eq!(written(&link.join("bin//")).unwrap(), link.join("bin"));
        assert!(written(Path::new("x")).unwrap().is_absolute());
    }
}
