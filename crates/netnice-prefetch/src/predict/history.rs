// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What is remembered of one client, and the contexts that its pages are.

use std::collections::{HashMap, HashSet, VecDeque};

use super::model::{Context, Id, Quick, MOST_N};

/// Most objects that one client is remembered to have requested within its windows, to have got, and
/// to have been sent ahead.
pub(super) const MOST_RECENT: usize = 512;

#[derive(Debug, Default)]
pub(super) struct History {
    pub(super) last_s: i64,
    /// The last pages, at most n + w of them.
    pub(super) pages: VecDeque<Id>,
    /// Number of pages so far; the last of `pages` has this number.
    pub(super) count: u64,
    /// Objects requested within the open windows, and the last window that has counted each.
    pub(super) recent: HashMap<Id, u64, Quick>,
    /// Objects that it has got, on demand or ahead: the first ones, if they are very many.
    pub(super) has: HashSet<Id, Quick>,
    /// Suggestions that no reply has carried yet.
    pub(super) waiting: VecDeque<Id>,
    /// What was sent ahead and not asked for yet, with its bytes.
    pub(super) ahead: VecDeque<(Id, u64)>,
}

impl History {
    pub(super) fn got(&mut self, id: Id) {
        if self.has.len() < MOST_RECENT {
            self.has.insert(id);
        }
    }

    /// The page with number `t`, counted from 1, if it is still remembered.
    pub(super) fn page(&self, t: u64) -> Option<Id> {
        let back = usize::try_from(self.count.checked_sub(t)?).ok()?;
        self.pages.get(self.pages.len().checked_sub(back + 1)?).copied()
    }
}

/// The contexts of order 1 to n that end with page `t`.
pub(super) fn contexts(
    history: &History,
    t: u64,
    n: usize,
) -> impl Iterator<Item = Context> + use<> {
    let mut context = Context::default();
    let mut found = [context; MOST_N];
    let mut orders = 0;
    for m in 1..=n {
        let Some(page) = (t + 1).checked_sub(m as u64).and_then(|t| history.page(t)) else { break };
        context[MOST_N - m] = page;
        found[m - 1] = context;
        orders = m;
    }
    found.into_iter().take(orders)
}

pub(super) fn context_of(pages: &[Id]) -> Context {
    let mut context = Context::default();
    context[MOST_N - pages.len()..].copy_from_slice(pages);
    context
}
