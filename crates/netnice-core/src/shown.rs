// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What a person wants to see of a flow.

use crate::{Config, Info, State};

/// What a person wants to see of a flow, from its raw state.
pub fn info(config: &Config, state: &State) -> Info {
    let mut info = Info::default();
    let call = config.algorithm.0.info.expect("user.c fills every entry");
    // SAFETY: `state` holds NN_STATE_MAX aligned bytes and flow.h asserts that this suffices;
    // info() reads plain integers, any bit pattern of which is valid.
    unsafe { call(state.as_ptr().cast(), config.values.as_ptr(), &mut info) };
    info
}
