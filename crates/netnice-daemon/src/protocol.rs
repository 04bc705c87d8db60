// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What client and daemon say: requests and answers, a line of JSON each. A connection has one of each; who
//! looks may ask again.

use netnice_manager::choice::{Choice, Class, Dscp};
use netnice_manager::moves::{Attached, Detached};
use netnice_manager::peer::{Only, Peers, Selection};
use netnice_manager::report::Report;
use netnice_manager::snapshot::{GroupStatus, Status, View, Why};
use netnice_manager::Error;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The version of the protocol. Another one is refused: a client and its daemon are of one package.
pub const VERSION: u64 = 1;

/// The longest line, in bytes, with its end.
pub const LONGEST: usize = 16 * 1024;

/// The most processes of a request.
pub const MOST_PIDS: usize = 256;

/// The most connections of a status.
pub const MOST_CONNECTIONS: usize = 1000;

/// The most jobs of a look.
pub const MOST_JOBS: usize = 500;

/// The longest that a group is measured for, seconds.
pub const MOST_SECONDS: f64 = 60.0;

/// What a client asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Whether the daemon works.
    Hello {},
    /// Put the calling process into a run of its own.
    Run {
        #[serde(default)]
        choice: Wanted,
        #[serde(default)]
        meant: Meant,
        #[serde(default)]
        group: Option<InGroup>,
    },
    /// What a run of the caller did by now.
    Report { run: u64 },
    /// Put the connections of processes of the caller into the background.
    Attach {
        pids: Vec<i32>,
        #[serde(default)]
        choice: Wanted,
        #[serde(default)]
        meant: Meant,
    },
    /// Undo that.
    Detach { pids: Vec<i32> },
    /// What of the caller is in the background.
    Status {},
    /// What the jobs of the caller did since the look before on this connection, which stays open.
    Look {},
    /// What the connections of a group of the caller get, measured for so long.
    Group { group: String, seconds: f64 },
    /// Give a run of the caller another share in a group of his; its id, or a process in it.
    Share { group: String, run: u64, share: String },
}

/// How much transfers yield, in the words of the command line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wanted {
    pub class: Option<String>,
    pub algorithm: Option<String>,
    pub set: Vec<String>,
    pub dscp: Option<String>,
    pub no_hold: bool,
}

impl From<&Choice> for Wanted {
    fn from(choice: &Choice) -> Wanted {
        Wanted {
            class: choice.class.map(|class| class.name().into()),
            algorithm: choice.algorithm.clone(),
            set: choice.set.clone(),
            dscp: choice.dscp.map(|dscp| dscp.name().into()),
            no_hold: choice.no_hold,
        }
    }
}

impl Wanted {
    /// As the manager has it.
    ///
    /// # Errors
    /// When there is no such class or mark.
    pub fn choice(&self) -> netnice_manager::Result<Choice> {
        let dscp = self.dscp.as_deref().map(str::parse::<Dscp>).transpose();
        Ok(Choice {
            class: self.class.as_deref().map(str::parse::<Class>).transpose()?,
            algorithm: self.algorithm.clone(),
            set: self.set.clone(),
            dscp: dscp.map_err(|why| Error::Refused(why.into()))?,
            no_hold: self.no_hold,
        })
    }
}

/// Which connections, in the words of the command line; by default all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Meant {
    /// Prefixes of peers.
    pub to: Vec<String>,
    /// Prefixes of those that are not meant.
    pub except: Vec<String>,
    /// The `SO_MARK` of their sockets.
    pub mark: Option<u32>,
    /// `up` or `down`: that direction alone.
    pub only: Option<String>,
    /// What comes over UDP, too.
    pub udp_downloads: bool,
}

impl From<&Selection> for Meant {
    fn from(selection: &Selection) -> Meant {
        let text = |peers: &[Peers]| peers.iter().map(ToString::to_string).collect();
        let Selection { to, except, mark, only, udp_downloads } = selection;
        let (to, except) = (text(to), text(except));
        let only = only.map(|only| only.name().into());
        Meant { to, except, mark: *mark, only, udp_downloads: *udp_downloads }
    }
}

impl Meant {
    /// As the manager has it.
    ///
    /// # Errors
    /// When one is no prefix, or there is no such direction.
    pub fn selection(&self) -> netnice_manager::Result<Selection> {
        let parse = |texts: &[String]| {
            let each = |text: &String| text.parse().map_err(|why: &str| Error::Refused(why.into()));
            texts.iter().map(each).collect::<netnice_manager::Result<Vec<Peers>>>()
        };
        let only = self.only.as_deref().map(str::parse::<Only>).transpose();
        let only = only.map_err(|why| Error::Refused(why.into()))?;
        let (to, except) = (parse(&self.to)?, parse(&self.except)?);
        let Meant { mark, udp_downloads, .. } = *self;
        Ok(Selection { to, except, mark, only, udp_downloads })
    }
}

/// For what is not done, in a sentence.
pub(crate) fn refused<T>(why: impl Into<String>) -> netnice_manager::Result<T> {
    Err(Error::Refused(why.into()))
}

/// The group of a run; it is one of the caller's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InGroup {
    pub name: String,
    #[serde(default)]
    pub share: Option<String>,
    #[serde(default)]
    pub scope: Option<String>,
}

/// What the daemon says.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum Answer {
    /// It works, and is of this version of netnice.
    Hello {
        netnice: String,
    },
    /// The caller is in this run from now on.
    Run {
        run: u64,
    },
    /// The caller is in the background already, in a run of somebody else, and stays there.
    Kept {
        run: u64,
    },
    Report {
        report: Box<Report>,
        /// Processes are still in the run.
        goes_on: bool,
        /// [`Why::Starving`], if it is.
        starving: Option<Why>,
    },
    Attached(Attached),
    Detached(Detached),
    Status {
        status: Box<Status>,
        /// Runs of others.
        others: usize,
        /// Connections of the caller beyond [`MOST_CONNECTIONS`].
        left_out: usize,
    },
    View {
        view: Box<View>,
    },
    Group {
        status: Box<GroupStatus>,
    },
    /// The share is changed.
    Shared {},
    /// Nothing was done, and why.
    Refused {
        why: String,
    },
}

/// A message as a line, with its version.
pub fn line(message: &impl Serialize) -> String {
    let mut all = Map::from_iter([("v".to_string(), VERSION.into())]);
    if let Ok(Value::Object(fields)) = serde_json::to_value(message) {
        all.extend(fields);
    }
    Value::Object(all).to_string() + "\n"
}

/// The message of a line.
///
/// # Errors
/// When it is none of this version.
pub fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<T, String> {
    let Ok(Value::Object(mut fields)) = serde_json::from_slice(line) else {
        return Err(format!(
            "a message is one object of JSON on one line of at most {LONGEST} bytes"
        ));
    };
    match fields.remove("v") {
        Some(version) if version == VERSION => {}
        Some(version) => {
            let version: String = version.to_string().chars().take(20).collect();
            return Err(format!(
                "this netnice speaks version {VERSION} of the protocol, not {version}; after an update of \
                 netnice: systemctl restart netnice"
            ));
        }
        None => return Err(format!("a message has its version: {{\"v\":{VERSION}, ...}}")),
    }
    serde_json::from_value(Value::Object(fields)).map_err(|error| {
        let why: String = error.to_string().chars().take(200).collect();
        format!("this message is not understood: {why}; after an update of netnice: systemctl restart netnice")
    })
}

#[cfg(test)]
mod tests;
