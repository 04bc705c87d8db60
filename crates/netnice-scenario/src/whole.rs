// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Files that are whole or not there: a full disk or an interrupt leaves an older one as it was.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::{fchown, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// Longer scenarios and traces are something else, such as /dev/zero.
const MOST_BYTES: u64 = 64 << 20;

/// A file that is written beside its place, and takes it when it is finished.
pub struct WholeFile(Place);

enum Place {
    Beside(BufWriter<NamedTempFile>, PathBuf),
    /// A device or a pipe: there is nothing to replace.
    Direct(BufWriter<File>),
}

impl WholeFile {
    /// Begins to write the file at `path`. A symbolic link stays one, and what it points to is
    /// replaced, by a file of the same mode.
    ///
    /// # Errors
    /// If the directory does not exist or cannot be written.
    pub fn create(path: &Path) -> io::Result<Self> {
        // What a link such as /dev/fd/3 points to may be open and have no name.
        let older = match fs::metadata(path) {
            Ok(older) if !older.is_file() => {
                let file = OpenOptions::new().write(true).open(path)?;
                return Ok(Self(Place::Direct(BufWriter::new(file))));
            }
            Ok(older) => Some(older),
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            Err(e) => return Err(e),
        };
        let path = match older {
            Some(_) => fs::canonicalize(path)?,
            None => end_of_links(path),
        };
        let mut prefix = path.file_name().ok_or(ErrorKind::IsADirectory)?.to_owned();
        prefix.push(".");
        let beside = tempfile::Builder::new()
            .prefix(&prefix)
            .suffix(".part")
            .permissions(Permissions::from_mode(0o666)) // less the umask
            .tempfile_in(folder(&path))?;
        if let Some(older) = older {
            // Not everybody may give a file away.
            let _ = fchown(beside.as_file(), Some(older.uid()), Some(older.gid()));
            beside.as_file().set_permissions(older.permissions())?;
        }
        Ok(Self(Place::Beside(BufWriter::new(beside), path)))
    }

    /// The file is complete.
    ///
    /// # Errors
    /// If what is left cannot be written; the place is as it was.
    pub fn finish(self) -> io::Result<()> {
        match self.0 {
            Place::Direct(mut file) => unless_seen_enough(file.flush(), ()),
            Place::Beside(file, path) => {
                file.into_inner()?.persist(path)?;
                Ok(())
            }
        }
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Place::Beside(file, _) => file.write(bytes),
            Place::Direct(file) => unless_seen_enough(file.write(bytes), bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Place::Beside(file, _) => file.flush(),
            Place::Direct(file) => unless_seen_enough(file.flush(), ()),
        }
    }
}

/// All of a text that is not absurdly long.
pub(crate) fn text_from(file: impl Read) -> io::Result<String> {
    let mut text = String::new();
    match file.take(MOST_BYTES + 1).read_to_string(&mut text)? as u64 > MOST_BYTES {
        true => Err(io::Error::new(ErrorKind::FileTooLarge, "it has more than 64 MiB")),
        false => Ok(text),
    }
}

/// A reader of a pipe that has seen enough, such as `| head`, is no fault.
pub(crate) fn unless_seen_enough<T>(written: io::Result<T>, as_if: T) -> io::Result<T> {
    match written {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(as_if),
        written => written,
    }
}

/// Where a file is made that does not exist, by links or without.
fn end_of_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    while let Ok(next) = fs::read_link(&path) {
        path = folder(&path).join(next);
    }
    path
}

fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn an_older_file_stays_until_the_new_one_is_finished() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        fs::write(&path, "old").unwrap();
        let mut file = WholeFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        file.flush().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        drop(file); // interrupted
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");

        let mut file = WholeFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        file.finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
    }

    #[test]
    fn a_link_stays_a_link_and_a_device_is_written_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let [path, link] = ["real", "link"].map(|name| folder.path().join(name));
        fs::write(&path, "old").unwrap();
        symlink(&path, &link).unwrap();
        let mut file = WholeFile::create(&link).unwrap();
        file.write_all(b"new").unwrap();
        file.finish().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");

        let mut full = WholeFile::create(Path::new("/dev/full")).unwrap();
        full.write_all(b"x").unwrap();
        assert!(full.finish().is_err(), "a full device is an error");
    }

    #[test]
    fn a_link_to_a_pipe_stays_and_its_reader_may_have_seen_enough() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        let (mut reader, writer) = io::pipe().unwrap();
        symlink(format!("/proc/self/fd/{}", writer.as_raw_fd()), &link).unwrap();
        let mut file = WholeFile::create(&link).unwrap();
        file.write_all(b"seen").unwrap();
        file.finish().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let mut seen = [0; 4];
        reader.read_exact(&mut seen).unwrap();
        assert_eq!(&seen, b"seen");

        let mut file = WholeFile::create(&link).unwrap();
        drop(reader);
        for _ in 0..3 {
            file.write_all(&[0; 10_000]).unwrap();
        }
        file.finish().unwrap();
    }

    #[test]
    fn a_link_to_nothing_stays_and_a_file_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let [path, near, far] = ["real", "near", "far"].map(|name| folder.path().join(name));
        symlink("real", &near).unwrap();
        symlink(&near, &far).unwrap();
        WholeFile::create(&far).unwrap().finish().unwrap();
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
        assert!([&near, &far].iter().all(|link| link.is_symlink()));

        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        WholeFile::create(&far).unwrap().finish().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);

        symlink(&far, folder.path().join("loop")).unwrap();
        fs::remove_file(&path).unwrap();
        symlink("loop", &path).unwrap();
        assert!(WholeFile::create(&far).is_err(), "these links lead nowhere");
    }

    #[test]
    fn a_missing_directory_is_an_error_at_once() {
        let folder = tempfile::tempdir().unwrap();
        assert!(WholeFile::create(&folder.path().join("no/such")).is_err());
        assert!(WholeFile::create(folder.path()).is_err(), "nor is a directory a file");
    }
}
