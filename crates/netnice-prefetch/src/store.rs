// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Saving and restoring what was learned.
//!
//! The file is a gzip stream, whose checksum tells a damaged or cut file, of [`MAGIC`], a version,
//! and the model. It is written beside its place and renamed, so that a crash leaves the old one.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use flate2::Compression;
use rustix::fs::{flock, FlockOperation};
use rustix::io::Errno;

use crate::config;
use crate::predict::{Model, Predictor};

const MAGIC: &[u8; 12] = b"netnice-ppm\n";
const VERSION: u8 = 3;
/// The same layout, but it kept a tag of the only address that made a step, 0 for several.
const VERSION_OF_TAGS: u8 = 2;

/// Why a model could not be saved or restored.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file could not be read.
    #[error("Cannot read the model {}: {reason}. Learn one first: netnice-prefetch learn --model {} LOG...", path.display(), path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
    /// The file could not be written.
    #[error("Cannot write the model {}: {reason}. Check that its directory exists and can be written.", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        reason: io::Error,
    },
    /// The file is another's: it is neither read nor replaced.
    #[error("{} is no model{}: it is left as it is. Name another file for the model.", path.display(), kind(path))]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// Another program learns into it.
    #[error("The model {} is in use by another netnice-prefetch. End that first, or name another file.", path.display())]
    Held {
        /// The file.
        path: PathBuf,
    },
    /// The file is a model, but damaged, or not of this version.
    #[error("{} is not usable as a model: {what}. Remove it and learn again: netnice-prefetch learn --model {} LOG...", path.display(), path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
}

impl From<Error> for config::Error {
    fn from(error: Error) -> Self {
        let what = error.to_string().trim_end_matches('.').to_owned();
        Self { place: "model".into(), what }
    }
}

/// What a place is that is no file.
fn kind(path: &Path) -> &'static str {
    match path.metadata() {
        Ok(meta) if meta.is_dir() => " but a directory",
        Ok(meta) if !meta.is_file() => " but a device, a pipe or a socket",
        _ => "",
    }
}

/// Everything that is saved, as bytes; to be written by [`write`] without holding the predictor.
///
/// # Errors
/// If it cannot be serialised, which no model is known to cause.
pub fn encode(predictor: &Predictor) -> Result<Vec<u8>, postcard::Error> {
    postcard::to_stdvec(predictor.model())
}

/// Whether there is a model at this place, be it damaged, or nothing: an empty file. Anything else
/// belongs to somebody, who named it by mistake.
fn check_own(path: &Path) -> Result<(), Error> {
    let foreign = || Error::Foreign { path: path.into() };
    let unread = |reason| Error::Read { path: path.into(), reason };
    // a device may look empty, and would be replaced; a pipe would be waited for
    if !path.metadata().map_err(unread)?.is_file() {
        return Err(foreign());
    }
    let file = File::open(path).map_err(unread)?;
    let empty = file.metadata().is_ok_and(|meta| meta.len() == 0);
    let mut begun = Vec::new();
    // what can be read of a damaged file is enough
    let _ = GzDecoder::new(BufReader::new(file)).take(MAGIC.len() as u64).read_to_end(&mut begun);
    (empty || begun == MAGIC).then_some(()).ok_or_else(foreign)
}

/// Keeps others from a model until it is dropped.
#[derive(Debug)]
pub struct Held {
    beside: PathBuf,
    _lock: File,
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.beside); // its folder may have gone
    }
}

/// Takes a model for this program alone. What is locked is a file beside it: the model itself is
/// replaced when it is saved.
///
/// # Errors
/// [`Error::Held`], [`Error::Foreign`] if the file is something else, [`Error::Write`].
pub fn hold(path: &Path) -> Result<Held, Error> {
    if path.exists() {
        check_own(path)?;
    }
    let fail = |reason| Error::Write { path: path.into(), reason };
    let mut beside = path.as_os_str().to_owned();
    beside.push(".lock");
    let lock = File::options().append(true).create(true).open(&beside).map_err(fail)?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        // one that was removed meanwhile keeps nobody out
        Ok(()) if lock.metadata().map_err(fail)?.nlink() > 0 => {
            Ok(Held { beside: beside.into(), _lock: lock })
        }
        Ok(()) | Err(Errno::WOULDBLOCK) => Err(Error::Held { path: path.into() }),
        Err(error) => Err(fail(error.into())),
    }
}

/// Writes encoded bytes to a file, replacing it in one step if it is a model.
///
/// # Errors
/// [`Error::Write`], and [`Error::Foreign`] if the file is something else.
pub fn write(encoded: &[u8], path: &Path) -> Result<(), Error> {
    if path.exists() {
        check_own(path)?;
    }
    let fail = |reason| Error::Write { path: path.into(), reason };
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(fail)?;
    let mut gz = GzEncoder::new(&mut file, Compression::fast());
    gz.write_all(MAGIC)
        .and_then(|()| gz.write_all(&[VERSION]))
        .and_then(|()| gz.write_all(encoded))
        .and_then(|()| gz.finish().map(drop))
        .and_then(|()| file.as_file().sync_all())
        .map_err(fail)?;
    file.persist(path).map_err(|e| fail(e.error))?;
    File::open(folder).and_then(|d| d.sync_all()).map_err(fail)
}

/// Saves a predictor.
///
/// # Errors
/// [`Error::Write`].
pub fn save(predictor: &Predictor, path: &Path) -> Result<(), Error> {
    let encoded = encode(predictor)
        .map_err(|e| Error::Write { path: path.into(), reason: io::Error::other(e) })?;
    write(&encoded, path)
}

/// Restores a predictor.
///
/// # Errors
/// [`Error::Read`] if there is no such file, [`Error::Foreign`] if it is none, [`Error::Content`] if it is damaged or not a model of
/// this version.
pub fn load(path: &Path) -> Result<Predictor, Error> {
    let bad = |what: &str| Error::Content { path: path.into(), what: what.into() };
    check_own(path)?;
    let file = File::open(path).map_err(|reason| Error::Read { path: path.into(), reason })?;
    let mut bytes = Vec::new();
    GzDecoder::new(BufReader::new(file))
        .read_to_end(&mut bytes)
        .map_err(|e| bad(&format!("it is cut short or damaged ({e})")))?;
    let rest = bytes.strip_prefix(MAGIC).ok_or_else(|| bad("it has another content"))?;
    let (version, model) = match rest.split_first() {
        Some((version @ &(VERSION | VERSION_OF_TAGS), model)) => (*version, model),
        _ => return Err(bad("it was saved by another version")),
    };
    let mut model: Model = postcard::from_bytes(model).map_err(|e| bad(&e.to_string()))?;
    if version == VERSION_OF_TAGS {
        model.read_tags();
    }
    if !model.is_sound() {
        return Err(bad("it contradicts itself"));
    }
    Ok(Predictor::from_model(model))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::predict::{Served, Settings};

    fn learned() -> Predictor {
        let mut p = Predictor::new(Settings::default());
        for path in ["/A", "/x.png", "/B", "/C"] {
            let client = p.client("a", b"");
            p.visit(client, 0, path, !path.ends_with("png"));
        }
        p.served("/B", Served::Reusable(9));
        p
    }

    #[test]
    fn what_is_no_file_is_neither_replaced_nor_waited_for() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        // links to a device, which looks empty, and to a pipe that nobody writes to
        let (device, pipe, link) =
            (folder.path().join("device"), folder.path().join("pipe"), folder.path().join("link"));
        symlink("/dev/null", &device).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        symlink(&pipe, &link).unwrap();
        for path in [&device, &pipe, &link] {
            let kind = path.metadata().unwrap().file_type();
            for error in [save(&learned(), path).unwrap_err(), load(path).err().unwrap()] {
                assert!(error.to_string().contains("a device, a pipe or a socket"), "{error}");
            }
            assert_eq!(path.metadata().unwrap().file_type(), kind);
        }
    }

    #[test]
    fn what_was_saved_is_restored() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        let before = learned();
        save(&before, &path).unwrap();
        save(&before, &path).unwrap(); // over the old one
        let after = load(&path).unwrap();
        assert_eq!(after.model(), before.model());
        assert_eq!(after.size().bytes, before.size().bytes);
        let b = after.find("/A").unwrap();
        assert_eq!(after.predict(&[b]), before.predict(&[b]));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
    }

    #[test]
    fn every_damage_is_an_error_and_none_a_panic() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        assert!(matches!(load(&path), Err(Error::Read { .. })));
        save(&learned(), &path).unwrap();
        let whole = fs::read(&path).unwrap();
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            // cut before its name can be read, it could be anybody's
            let said = matches!(load(&path), Err(Error::Content { .. } | Error::Foreign { .. }));
            assert!(said, "cut to {cut}");
        }
        for at in 10..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x55; // behind the header of gzip, whose time stamp is not checked
            fs::write(&path, &damaged).unwrap();
            let said = matches!(load(&path), Err(Error::Content { .. } | Error::Foreign { .. }));
            assert!(said, "byte {at}");
        }
    }

    #[test]
    fn a_file_that_is_no_model_is_neither_read_nor_replaced_nor_to_be_removed() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("access.log");
        fs::write(&log, "192.0.2.1 - - [...]\n").unwrap();
        let packed = folder.path().join("access.log.gz");
        let mut gz = GzEncoder::new(File::create(&packed).unwrap(), Compression::fast());
        gz.write_all(&[b'.'; 100]).unwrap();
        gz.finish().unwrap();
        for path in [log, packed, folder.path().to_path_buf()] {
            let before = fs::read(&path).unwrap_or_default();
            let read = load(&path).map(drop).unwrap_err().to_string();
            let written = save(&learned(), &path).unwrap_err().to_string();
            assert!(read.contains("is no model") && !read.contains("emove"), "{read}");
            assert_eq!(written, read);
            assert_eq!(fs::read(&path).unwrap_or_default(), before);
        }
        let empty = folder.path().join("empty");
        fs::write(&empty, "").unwrap();
        save(&learned(), &empty).unwrap();
        assert!(load(&empty).is_ok());
    }

    #[test]
    fn a_model_that_names_unknown_objects_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        // any bytes within a good gzip stream: no panic, whatever they decode to
        let encoded = encode(&learned()).unwrap();
        for at in 0..encoded.len() {
            for flip in [0x01, 0x80, 0xff] {
                let mut damaged = encoded.clone();
                damaged[at] ^= flip;
                write(&damaged, &path).unwrap();
                if let Ok(p) = load(&path) {
                    p.find("/A").map(|a| p.predict(&[a]));
                }
            }
        }
    }

    #[test]
    fn a_model_of_before_the_bits_is_read_with_two_addresses_at_most() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        let mut gz = GzEncoder::new(File::create(&path).unwrap(), Compression::fast());
        gz.write_all(MAGIC).unwrap();
        gz.write_all(&[VERSION_OF_TAGS]).unwrap();
        gz.write_all(&encode(&learned()).unwrap()).unwrap();
        gz.finish().unwrap();
        let mut after = load(&path).unwrap();
        let a = after.find("/A").unwrap();
        after.set_bounds(Settings { addresses: 1, ..Settings::default() });
        assert!(after.predict(&[a]).iter().all(|p| p.shared));
        after.set_bounds(Settings { addresses: 2, ..Settings::default() });
        assert!(after.predict(&[a]).iter().all(|p| !p.shared), "the tag was one address");
    }

    #[test]
    fn another_version_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        let mut gz = GzEncoder::new(File::create(&path).unwrap(), Compression::fast());
        gz.write_all(MAGIC).unwrap();
        gz.write_all(&[VERSION + 1]).unwrap();
        gz.finish().unwrap();
        let Err(said) = load(&path) else { panic!("loaded") };
        assert!(said.to_string().contains("another version"), "{said}");
    }
}
