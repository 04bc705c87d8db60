// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The web request log that scenarios replay or draw sizes from.
//!
//! The log in `lab/data` gives minute 5 for every request of an hour, at random seconds: minutes full
//! of requests with 59 minutes of silence between them. Replayed as it stands, nearly all of its load
//! would come in bursts that are an artefact of the recording. So a silence of more than
//! [`LONGEST_GAP_S`] is cut out, and the recorded minutes follow each other directly.

use std::fs::File;
use std::path::Path;

use flate2::read::MultiGzDecoder;
use serde::Deserialize;

use crate::Error;

/// Longest gap between requests, in seconds, that is taken as a lull of the users rather than of the
/// recording. Within the recorded minutes of the log they are a few seconds.
pub const LONGEST_GAP_S: u64 = 60;

/// One answered request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Second in which it was logged.
    pub time_s: u64,
    /// Size of the answer in bytes; never 0.
    pub bytes: u64,
}

/// The requests of a log in time order; at least one.
#[derive(Debug, Clone)]
pub struct WebLog {
    requests: Vec<Request>,
}

#[derive(Deserialize)]
struct Row {
    time_s: u64,
    status: u16,
    bytes: u64,
}

impl WebLog {
    /// Reads a gzipped CSV file with the columns `time_s`, `status` and `bytes`, and keeps the
    /// requests (of people and robots alike) that were answered in full (status 200) with content.
    ///
    /// # Errors
    /// [`Error::Read`] if the file cannot be opened; [`Error::Log`] if a row cannot be parsed or no
    /// request is left.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(|reason| Error::Read { path: path.into(), reason })?;
        let rows: Vec<Row> = csv::Reader::from_reader(MultiGzDecoder::new(file))
            .deserialize()
            .collect::<Result<_, _>>()
            .map_err(|e| Error::Log { path: path.into(), what: e.to_string() })?;
        let requests = rows
            .into_iter()
            .filter(|row| row.status == 200)
            .map(|row| Request { time_s: row.time_s, bytes: row.bytes });
        Self::new(requests).ok_or_else(|| Error::Log {
            path: path.into(),
            what: "it has no request with status 200 and content".into(),
        })
    }

    /// A log of the given requests, sorted by time; those without content are left out, and so are
    /// silences of more than [`LONGEST_GAP_S`]. `None` if no request is left.
    pub fn new(requests: impl IntoIterator<Item = Request>) -> Option<Self> {
        let mut requests: Vec<Request> = requests.into_iter().filter(|r| r.bytes > 0).collect();
        requests.sort_by_key(|r| r.time_s);
        let (mut previous_s, mut cut_s) = (requests.first()?.time_s, 0);
        for request in &mut requests {
            let gap_s = request.time_s - previous_s;
            previous_s = request.time_s;
            if gap_s > LONGEST_GAP_S {
                cut_s += gap_s - 1;
            }
            request.time_s -= cut_s;
        }
        Some(Self { requests })
    }

    /// The requests in time order.
    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    /// First second of the log.
    pub fn first_s(&self) -> u64 {
        self.requests[0].time_s
    }

    /// Length of the log in seconds, from the start of its first second to the end of its last.
    pub fn span_s(&self) -> u64 {
        self.requests[self.requests.len() - 1].time_s - self.first_s() + 1
    }

    /// Sum of all sizes in bytes, each cut to `max_bytes`.
    pub fn total_bytes(&self, max_bytes: u64) -> u64 {
        self.requests.iter().map(|r| r.bytes.min(max_bytes)).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{write::GzEncoder, Compression};

    use super::*;

    fn gzipped(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let mut gz = GzEncoder::new(&mut file, Compression::fast());
        gz.write_all(text.as_bytes()).unwrap();
        gz.finish().unwrap();
        file
    }

    #[test]
    fn only_full_answers_with_content_are_kept_in_time_order() {
        let file = gzipped("time_s,status,bytes,bot\n9,200,5,0\n8,304,7,0\n7,200,6,1\n6,200,0,0\n");
        let log = WebLog::read(file.path()).unwrap();
        let kept: Vec<_> = log.requests().iter().map(|r| (r.time_s, r.bytes)).collect();
        assert_eq!(kept, [(7, 6), (9, 5)]);
        assert_eq!((log.first_s(), log.span_s()), (7, 3));
        assert_eq!(log.total_bytes(5), 10);
    }

    #[test]
    fn silences_of_the_recording_are_cut_out() {
        let times = [5, 65, 3605, 3606, 9000].map(|time_s| Request { time_s, bytes: 1 });
        let log = WebLog::new(times).unwrap();
        let times: Vec<_> = log.requests().iter().map(|r| r.time_s).collect();
        assert_eq!(times, [5, 65, 66, 67, 68]);
    }

    #[test]
    fn a_broken_row_is_an_error_that_names_the_line() {
        let file = gzipped("time_s,status,bytes\n1,200,many\n");
        let said = WebLog::read(file.path()).unwrap_err().to_string();
        assert!(said.contains("line: 2") && said.contains("--data"), "{said}");
    }

    #[test]
    fn a_log_without_content_is_an_error() {
        let file = gzipped("time_s,status,bytes\n1,200,0\n");
        assert!(matches!(WebLog::read(file.path()), Err(Error::Log { .. })));
    }
}
