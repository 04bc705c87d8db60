// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! netnice's algorithms inside the Linux kernel: registering them as TCP
//! congestion controls, putting a cgroup's connections under them, reading the
//! state of connections.
//!
//! Nothing is kept in bpffs. A registered control keeps itself alive, a run's
//! programs live as long as its cgroup, and both are found again by walking the
//! kernel's own lists. So it works where bpffs is not mounted and in any mount
//! namespace, and there is no pin that could outlive what it stands for.

mod attached;
mod controls;
mod devices;
pub mod down;
mod error;
mod flows;
mod groups;
pub mod hold;
mod left_out;
mod objects;
mod pod;
mod replay;
mod runs;
mod sockets;
mod walk;
mod watch;

pub use attached::Attached;
pub use controls::{
    another, control_name, instructions, is_foreign, register, registered, unregister, PREFIX,
};
pub use devices::Devices;
pub use error::{lacks_types, Error, Result};
pub use flows::{flows, flows_of_runs, Flows};
pub use groups::Aggregate;
pub use left_out::{LeftOut, PEERS};
pub use replay::{replay, replay_group, Step, Trace};
pub use runs::{Kept, Membership, Run, Running, GROUP_NAME, RUN_PREFIX};
pub use sockets::{forget, prepare, refuse, served, settings, Before};

#[allow(non_camel_case_types, non_upper_case_globals, missing_docs)]
mod sys {
    include!(concat!(env!("OUT_DIR"), "/sys.rs"));
}

pub use sys::{nn_peer as Peer, nn_record as Record, nn_settings as Settings, nn_totals as Totals};

/// Which direction of a connection is in the background: the value of [`Settings`]`::only`.
pub mod only {
    use super::sys;
    pub const BOTH: u16 = sys::nn_only_NN_ONLY_BOTH as u16;
    pub const UP: u16 = sys::nn_only_NN_ONLY_UP as u16;
    pub const DOWN: u16 = sys::nn_only_NN_ONLY_DOWN as u16;
}

/// Why a connection of a run is under another control than the run's: an index into
/// [`Totals`]`::plain`, and the value of [`Record`]`::plain`.
pub mod plain {
    pub use super::sys::{
        nn_plain_NN_PLAIN_CHANGED as CHANGED, nn_plain_NN_PLAIN_LOCKED as LOCKED,
        nn_plain_NN_PLAIN_MISSING as MISSING, nn_plain_NN_PLAIN_REFUSED as REFUSED,
    };
}
