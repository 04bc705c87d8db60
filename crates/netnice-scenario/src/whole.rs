// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Files that are whole or not there: a full disk or an interrupt leaves an older one as it was.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// A file that is written beside its place, and takes it when it is finished.
pub struct WholeFile(Place);

enum Place {
    Beside(BufWriter<NamedTempFile>, PathBuf),
    /// A device or a pipe: there is nothing to replace.
    Direct(BufWriter<File>),
}

impl WholeFile {
    /// Begins to write the file at `path`. A symbolic link stays one, and what it points to is
    /// replaced.
    ///
    /// # Errors
    /// If the directory does not exist or cannot be written.
    pub fn create(path: &Path) -> io::Result<Self> {
        let path = match fs::canonicalize(path) {
            Ok(known) if !fs::metadata(&known)?.is_file() => {
                let file = OpenOptions::new().write(true).open(known)?;
                return Ok(Self(Place::Direct(BufWriter::new(file))));
            }
            Ok(known) => known,
            Err(_) => path.to_owned(),
        };
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let mut prefix = path.file_name().ok_or(io::ErrorKind::IsADirectory)?.to_owned();
        prefix.push(".");
        let beside = tempfile::Builder::new()
            .prefix(&prefix)
            .suffix(".part")
            .permissions(Permissions::from_mode(0o666)) // less the umask
            .tempfile_in(folder)?;
        Ok(Self(Place::Beside(BufWriter::new(beside), path)))
    }

    /// The file is complete.
    ///
    /// # Errors
    /// If what is left cannot be written; the place is as it was.
    pub fn finish(self) -> io::Result<()> {
        match self.0 {
            Place::Direct(mut file) => file.flush(),
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
            Place::Direct(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Place::Beside(file, _) => file.flush(),
            Place::Direct(file) => file.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
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
        std::os::unix::fs::symlink(&path, &link).unwrap();
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
    fn a_missing_directory_is_an_error_at_once() {
        let folder = tempfile::tempdir().unwrap();
        assert!(WholeFile::create(&folder.path().join("no/such")).is_err());
        assert!(WholeFile::create(folder.path()).is_err(), "nor is a directory a file");
    }
}
