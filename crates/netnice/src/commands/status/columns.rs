// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The columns of what the algorithms show of their connections.

use netnice_core::{Shown, Unit, Value};
use netnice_manager::snapshot::{Connection, Seen};

/// A column, with a cell for each connection.
pub struct Column {
    shown: Shown,
    head: String,
    cells: Vec<String>,
    width: usize,
}

impl Column {
    /// What the algorithm of any of these shows.
    pub fn all(connections: &[Connection]) -> Vec<Column> {
        Shown::all().into_iter().filter_map(|shown| Column::of(shown, connections)).collect()
    }

    fn of(shown: Shown, connections: &[Connection]) -> Option<Column> {
        let values: Vec<_> = connections
            .iter()
            .map(|c| (&c.shown, c.shown.iter().find_map(|(s, value)| value.filter(|_| s == shown))))
            .collect();
        if values.iter().all(|(_, value)| value.is_none()) {
            return None;
        }
        let unit = match shown.unit() {
            Unit::NN_UNIT_us => " ms",
            Unit::NN_UNIT_mbit | Unit::NN_UNIT_pps => " Mbit/s",
            Unit::NN_UNIT_packets | Unit::NN_UNIT_share => "",
        };
        let head = format!("{}{unit}", shown.name());
        let cells: Vec<_> = values
            .into_iter()
            .map(|(seen, value)| value.and_then(|v| cell(seen, v)).unwrap_or("-".into()))
            .collect();
        let width = cells.iter().chain([&head]).map(String::len).max().unwrap_or_default();
        Some(Column { shown, head, cells, width })
    }

    /// Its head, as wide as the column, after a space.
    pub fn head(&self) -> String {
        format!(" {:>1$}", self.head, self.width)
    }

    /// The cell of a connection, in the same way.
    pub fn cell(&self, connection: usize) -> String {
        format!(" {:>1$}", self.cells[connection], self.width)
    }

    /// What it is.
    pub fn legend(&self) -> String {
        format!("{}: {}", self.shown.name(), self.shown.help())
    }
}

/// None: not known.
fn cell(seen: &Seen, value: Value) -> Option<String> {
    let number = seen.number(value)?;
    Some(match value.shown.unit() {
        Unit::NN_UNIT_us => format!("{:.1}", number / 1000.0),
        Unit::NN_UNIT_packets | Unit::NN_UNIT_mbit => format!("{number:.1}"),
        Unit::NN_UNIT_share => format!("{number:.2}"),
        Unit::NN_UNIT_pps => seen.measured(value)?.to_string(),
    })
}
