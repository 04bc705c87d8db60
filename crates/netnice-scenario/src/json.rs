// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! JSON as the table that TOML would be: a key without a value is not there, and none is given twice.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Unexpected, Visitor};
use toml::{Table, Value};

/// A value; null is none.
pub(crate) struct Json(pub(crate) Option<Value>);

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Any).map(Self)
    }
}

struct Any;

impl<'de> Visitor<'de> for Any {
    type Value = Option<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that TOML has, too")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Some(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Some(value.into()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Self::Value, E> {
        let known = i64::try_from(value);
        let known = known.map_err(|_| E::invalid_value(Unexpected::Unsigned(value), &self))?;
        Ok(Some(known.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Some(value.into()))
    }

    fn visit_str<E>(self, value: &str) -> Result<Self::Value, E> {
        Ok(Some(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut array = Vec::new();
        while let Some(Json(item)) = items.next_element()? {
            array.push(item.ok_or(A::Error::invalid_type(Unexpected::Unit, &self))?);
        }
        Ok(Some(array.into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut keys: A) -> Result<Self::Value, A::Error> {
        let mut table = BTreeMap::new();
        while let Some((key, Json(value))) = keys.next_entry::<String, _>()? {
            if table.insert(key.clone(), value).is_some() {
                return Err(A::Error::custom(format!("the key `{key}` is given twice")));
            }
        }
        let given = table.into_iter().filter_map(|(key, value)| Some((key, value?)));
        Ok(Some(given.collect::<Table>().into()))
    }
}
