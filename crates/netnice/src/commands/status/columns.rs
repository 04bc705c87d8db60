// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The columns of what the algorithms show of their connections.

use netnice_core::{Shown, Unit};
use netnice_manager::snapshot::{Connection, Number};

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
        let of = |c: &Connection| c.shown.iter().find_map(|(s, n)| n.filter(|_| s == shown));
        let values: Vec<_> = connections.iter().map(of).collect();
        if values.iter().all(Option::is_none) {
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
            .map(|number| number.and_then(|n| cell(shown, n)).unwrap_or("-".into()))
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
fn cell(shown: Shown, number: Number) -> Option<String> {
    Some(match number {
        Number::Time(0) => return None,
        Number::Time(us) => format!("{:.1}", us as f64 / 1000.0),
        Number::Packets(packets) => format!("{packets:.1}"),
        Number::Known(known) if shown.unit() == Unit::NN_UNIT_share => format!("{:.2}", known?),
        Number::Known(known) => format!("{:.1}", known?),
        Number::Measured(measured) => measured?.to_string(),
    })
}
