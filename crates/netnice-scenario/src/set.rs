// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Setting keys of a scenario from outside, as in `--set foreground.load=0.3`.

use toml::{Table, Value};

/// No key of a scenario has more; by so many dots that many tables would be nested.
const MOST_PARTS: usize = 8;

/// Sets what `setting` says in the table of a scenario, or says what is wrong with it.
pub(crate) fn apply(table: &mut Table, setting: &str) -> Result<(), String> {
    let (key, text) = setting
        .split_once('=')
        .ok_or("it has no value; write it as foreground.load=0.3.".to_owned())?;
    let parts = key.split('.').count();
    if parts > MOST_PARTS {
        return Err(format!("it has {parts} parts; a key has at most {MOST_PARTS}."));
    }
    let value = format!("value = {text}")
        .parse::<Table>()
        .ok()
        .and_then(|mut table| table.remove("value"))
        // A word needs no quotes on the command line.
        .unwrap_or_else(|| Value::String(text.into()));
    set(table, key.trim(), &value)
}

fn set(table: &mut Table, key: &str, value: &Value) -> Result<(), String> {
    let Some((section, rest)) = key.split_once('.') else {
        table.insert(key.into(), value.clone());
        return Ok(());
    };
    let (name, index) = match section.strip_suffix(']').and_then(|s| s.split_once('[')) {
        None => (section, None),
        Some((name, number)) => {
            let index = number.parse::<usize>().ok().filter(|&index| index > 0);
            (name, Some(index.ok_or(format!("[{number}] is not a number from 1 on."))?))
        }
    };
    match (table.entry(name).or_insert_with(|| Table::new().into()), index) {
        (Value::Table(inner), None) => set(inner, rest, value),
        (Value::Array(items), index) => {
            let count = items.len();
            let chosen = match index {
                None => &mut items[..],
                Some(index) => items
                    .get_mut(index - 1..index)
                    .ok_or(format!("there are {count} [[{name}]], so no number {index}."))?,
            };
            chosen.iter_mut().try_for_each(|item| match item {
                Value::Table(inner) => set(inner, rest, value),
                _ => Err(format!("`{name}` is not made of sections with keys.")),
            })
        }
        (Value::Table(_), Some(_)) => Err(format!("`{name}` is one section; write it without [].")),
        _ => Err(format!("`{name}` is not a section with keys.")),
    }
}
