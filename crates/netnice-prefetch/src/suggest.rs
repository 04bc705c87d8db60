// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Which predictions become suggestions, and their form: `Link: </b>; rel=prefetch` (RFC 8288).

use std::fmt;

use clap::Args;
use http::HeaderValue;
use serde::{Deserialize, Serialize};

use crate::predict::{Prediction, Served};
use crate::{range, rules};

/// Bounds of what is suggested.
#[derive(Debug, Clone, Copy, PartialEq, Args, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Least probability of what is suggested.
    #[arg(long, value_name = "0..1", default_value_t = Limits::default().threshold)]
    pub threshold: f64,
    /// Size of the largest object that is suggested.
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().max_object_bytes)]
    pub max_object_bytes: u64,
    /// Most objects that are suggested after one page.
    #[arg(long, value_name = "N", default_value_t = Limits::default().max_objects)]
    pub max_objects: usize,
    /// Most bytes that are suggested after one page.
    #[arg(long, value_name = "BYTES", default_value_t = Limits::default().max_bytes)]
    pub max_bytes: u64,
    /// Most suggestions in one reply; the replies to prefetches suggest the others.
    #[arg(long, value_name = "N", default_value_t = Limits::default().per_reply)]
    pub per_reply: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            threshold: 0.05,
            max_object_bytes: 1 << 20,
            max_objects: 50,
            max_bytes: 10 << 20,
            per_reply: 5,
        }
    }
}

impl Limits {
    /// Says which bound is out of its range.
    ///
    /// # Errors
    /// A sentence that names the bound and its range.
    pub fn check(&self) -> Result<(), String> {
        range::check([("threshold", self.threshold, 0.0..=1.0)])?;
        range::check([
            ("max_object_bytes", self.max_object_bytes, 0..=1 << 40),
            ("max_bytes", self.max_bytes, 0..=1 << 40),
            ("max_objects", self.max_objects as u64, 0..=10_000),
            ("per_reply", self.per_reply as u64, 1..=100),
        ])
    }
}

/// What becomes of a prediction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is suggested.
    Suggested,
    /// It is less likely than the threshold.
    Unlikely,
    /// The page loads it by itself: sent ahead, it would come in the background.
    PartOfPage,
    /// The operator has named the beginning of its path.
    Never,
    /// Its path has a query or is a program's.
    Dynamic,
    /// The origin has not answered it through the proxy, so nothing is known of its answer.
    NotServed,
    /// The origin's last answer was an error, private, or not cacheable.
    NotReusable,
    /// It is larger than an object may be.
    TooLarge,
    /// Fewer addresses have made this step than [`Settings`](crate::predict::Settings) asks for.
    FewAddresses,
    /// Likelier ones filled the list, by number or by bytes.
    ListFull,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Suggested => "suggested",
            Self::Unlikely => "no: below the threshold",
            Self::PartOfPage => "no: the page loads it itself",
            Self::Never => "no: named in `never`",
            Self::Dynamic => "no: dynamic",
            Self::NotServed => "no: not served through the proxy yet",
            Self::NotReusable => "no: the answer cannot be reused",
            Self::TooLarge => "no: too large",
            Self::FewAddresses => "no: too few addresses did so",
            Self::ListFull => "no: the list is full",
        })
    }
}

/// What becomes of each of some predictions, likeliest first, of which none that begins with one of
/// `never` is suggested.
pub fn judge(predictions: &[Prediction], limits: &Limits, never: &[String]) -> Vec<Verdict> {
    let (mut objects, mut bytes) = (0, 0);
    predictions
        .iter()
        .map(|p| {
            let verdict = match p.served {
                _ if p.probability < limits.threshold => Verdict::Unlikely,
                _ if rules::is_never(never, &p.path) => Verdict::Never,
                _ if p.part => Verdict::PartOfPage,
                _ if rules::is_dynamic(&p.path) => Verdict::Dynamic,
                _ if !p.shared => Verdict::FewAddresses,
                Served::No => Verdict::NotServed,
                Served::Refused => Verdict::NotReusable,
                Served::Reusable(b) if b > limits.max_object_bytes => Verdict::TooLarge,
                Served::Reusable(b)
                    if objects >= limits.max_objects || bytes + b > limits.max_bytes =>
                {
                    Verdict::ListFull
                }
                Served::Reusable(_) => Verdict::Suggested,
            };
            if verdict == Verdict::Suggested {
                objects += 1;
                bytes += p.bytes;
            }
            verdict
        })
        .collect()
}

/// The header that suggests paths, each behind `base` (nothing, or scheme, host and port), or `None`
/// for an empty list. Paths that could end the `<...>` are left out; none is ever learned.
pub fn link<'a>(paths: impl IntoIterator<Item = &'a str>, base: &str) -> Option<HeaderValue> {
    let mut links = String::new();
    for path in paths.into_iter().filter(|path| rules::is_local_path(path)) {
        let separator = if links.is_empty() { "" } else { ", " };
        links.extend([separator, "<", base, path, ">; rel=prefetch"]);
    }
    (!links.is_empty()).then(|| HeaderValue::try_from(links).ok()).flatten()
}

/// The paths that a `Link` header suggests for prefetching; other links and foreign ones are left
/// out.
pub fn paths(link: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = link;
    while let Some((target, after)) =
        rest.split_once('<').and_then(|(_, rest)| rest.split_once('>'))
    {
        let end = after.find('<').unwrap_or(after.len());
        let is_prefetch = after[..end]
            .split([';', ','])
            .filter_map(|p| p.trim().strip_prefix("rel="))
            .any(|rel| rel.trim_matches('"').split(' ').any(|r| r == "prefetch"));
        if is_prefetch && rules::is_local_path(target) {
            found.push(target);
        }
        rest = &after[end..];
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn prediction(path: &str, probability: f64, served: Served) -> Prediction {
        let bytes = match served {
            Served::Reusable(bytes) => bytes,
            _ => 0,
        };
        Prediction {
            id: 1,
            path: path.into(),
            probability,
            shared: true,
            part: false,
            served,
            bytes,
        }
    }

    #[test]
    fn only_what_the_origin_served_as_reusable_and_small_is_suggested() {
        let limits =
            Limits { threshold: 0.25, max_object_bytes: 100, max_bytes: 150, ..Limits::default() };
        let alone = Prediction { shared: false, ..prediction("/h", 0.9, Served::Reusable(1)) };
        let part = Prediction { part: true, ..prediction("/j", 0.9, Served::Reusable(1)) };
        let predictions = [
            prediction("/a", 0.9, Served::Reusable(100)),
            prediction("/b", 0.9, Served::Reusable(101)),
            prediction("/c", 0.9, Served::No),
            prediction("/d", 0.9, Served::Refused),
            prediction("/e?f", 0.9, Served::Reusable(1)),
            prediction("/f", 0.9, Served::Reusable(51)), // 100 + 51 > 150
            prediction("/g", 0.9, Served::Reusable(50)),
            alone,
            prediction("/i", 0.24, Served::Reusable(1)),
            part,
            prediction("/share/k", 0.9, Served::Reusable(1)),
        ];
        let never = ["/share/".to_owned()];
        use Verdict::*;
        assert_eq!(
            judge(&predictions, &limits, &never),
            [
                Suggested,
                TooLarge,
                NotServed,
                NotReusable,
                Dynamic,
                ListFull,
                Suggested,
                FewAddresses,
                Unlikely,
                PartOfPage,
                Never
            ]
        );
        let one = Limits { max_objects: 1, ..limits };
        let two = [predictions[0].clone(), predictions[6].clone()];
        assert_eq!(judge(&two, &one, &never), [Suggested, ListFull]);
    }

    #[test]
    fn what_is_suggested_is_understood() {
        let header = link(["/a", "/b,c;d", "/evil>; rel=x", "//evil.example/"], "").unwrap();
        assert_eq!(header, "</a>; rel=prefetch, </b,c;d>; rel=prefetch");
        assert_eq!(paths(header.to_str().unwrap()), ["/a", "/b,c;d"]);
        assert_eq!(link([], ""), None);
    }

    #[test]
    fn other_links_are_no_suggestions() {
        let header = r#"</s.css>; rel=preload; as=style, <https://x.example/>; rel=prefetch, </n>; rel="next prefetch""#;
        assert_eq!(paths(header), ["/n"]);
    }

    proptest! {
        #[test]
        fn no_header_makes_the_reader_panic_or_name_a_foreign_path(header in ".{0,200}") {
            for path in paths(&header) {
                prop_assert!(rules::is_local_path(path));
            }
        }

        #[test]
        fn any_local_paths_pass_through_the_header(
            list in proptest::collection::vec("/[!-~&&[^\"<>\\\\^`{|}#/]][!-~&&[^\"<>\\\\^`{|}#]]{0,20}", 1..9)
        ) {
            let header = link(list.iter().map(String::as_str), "").unwrap();
            prop_assert_eq!(paths(header.to_str().unwrap()), list);
        }
    }
}
