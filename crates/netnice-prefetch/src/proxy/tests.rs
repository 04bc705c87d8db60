// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What becomes of the head of a request.

use super::*;

#[test]
fn cookies_in_parts_become_one_line() {
    let mut headers = HeaderMap::new();
    for (parts, joined) in [("a=1", "a=1"), ("b=2", "a=1; b=2"), ("c", "a=1; b=2; c")] {
        headers.append("cookie", parts.parse().unwrap());
        join_cookies(&mut headers);
        assert_eq!(headers.get_all("cookie").iter().collect::<Vec<_>>(), [joined]);
    }
}

#[test]
fn what_belongs_to_one_hop_is_removed_with_what_connection_names() {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("connection", "close, X-Mine"),
        ("x-mine", "1"),
        ("transfer-encoding", "chunked"),
        ("te", "trailers"),
        ("x-kept", "1"),
    ] {
        headers.insert(name, value.parse().unwrap());
    }
    strip_hop_by_hop(&mut headers);
    assert_eq!(headers.len(), 1);
    assert!(headers.contains_key("x-kept"));
}
