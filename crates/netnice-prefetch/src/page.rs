// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The proxy's page about itself: HTML and SVG, without scripts.

use std::fmt::Write;

use std::sync::Arc;

use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::Response;
use prometheus::Histogram;

use crate::metrics::Metrics;
use crate::predict::{Prediction, Size};
use crate::reply::Reply;

/// Its path.
pub const PATH: &str = "/_netnice/";

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A bar of `part` in `whole`.
fn bar(label: &str, part: f64, whole: f64) -> String {
    let width = if whole > 0.0 { 300.0 * (part / whole).min(1.0) } else { 0.0 };
    format!(
        "<p>{label}<br><svg width=\"300\" height=\"12\" role=\"img\" aria-label=\"{label}\">\
         <rect width=\"300\" height=\"12\" fill=\"#ddd\"/>\
         <rect width=\"{width:.0}\" height=\"12\" fill=\"#27a\"/></svg></p>\n"
    )
}

/// A bar with the share in its label.
fn share(label: &str, part: u64, whole: u64) -> String {
    let (part, whole) = (part as f64, whole as f64);
    let percent = if whole > 0.0 { format!(" ({:.1} %)", 100.0 * part / whole) } else { "".into() };
    bar(&format!("{label}{percent}"), part, whole)
}

/// How many, and their mean in milliseconds.
fn mean_ms(of: &Histogram) -> (u64, f64) {
    match of.get_sample_count() {
        0 => (0, 0.0),
        n => (n, 1000.0 * of.get_sample_sum() / n as f64),
    }
}

/// What the page shows.
pub struct PageView<'a> {
    /// Where prefetches go.
    pub mode: &'a str,
    /// What the proxy counts.
    pub metrics: &'a Metrics,
    /// Pages, how often each was asked for, and what most likely follows it.
    pub busiest: Vec<(Arc<str>, u32, Prediction)>,
    /// How much was learned.
    pub size: Size,
}

/// The page as an answer.
pub fn answer(view: &PageView) -> Response<Reply> {
    let html = render(view).unwrap_or_else(|e| e.to_string());
    let mut response = Response::new(Reply::own(Bytes::from(html)));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'"));
    response
}

fn render(view: &PageView) -> Result<String, std::fmt::Error> {
    let PageView { mode, metrics, busiest, size } = view;
    let count = |class: &str| metrics.bytes.with_label_values(&[class]).get();
    let (demand, ahead, used) = (count("demand"), count("prefetch"), metrics.used_bytes.get());
    let ((answers, answer_ms), (asked, page_ms)) =
        (mean_ms(&metrics.demand_s), mean_ms(&metrics.page_s));
    let (suggested, hits) = (metrics.suggested.get(), metrics.used.get());
    let fetched = metrics.answers.with_label_values(&["prefetch", "2xx"]).get();
    let views = asked + hits;
    let mut html = String::from(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>netnice-prefetch</title>\
         <h1>netnice-prefetch</h1>\n",
    );
    writeln!(html, "<p>Prefetches go: <b>{}</b>.</p>", mode)?;
    writeln!(
        html,
        "<p>{answers} demand answers, {answer_ms:.1} ms in the mean from request to last byte.</p>"
    )?;
    let personal = metrics.personal.get();
    if personal > 0 {
        writeln!(
            html,
            "<p>{personal} answers taught nothing: who asked had a cookie or a password.</p>"
        )?;
    }
    html += "<h2>Hits</h2>\n";
    html += &share(&format!("Sent ahead: {fetched} of {suggested} suggested"), fetched, suggested);
    html += &share(&format!("Used: at least {hits} of {fetched} sent ahead"), hits, fetched);
    html += &share(
        &format!("Shown from what was sent ahead: at least {hits} of {views} pages"),
        hits,
        views,
    );
    html += "<h2>Latency of pages</h2>\n";
    if asked > 0 {
        let with_ms = page_ms * asked as f64 / views as f64;
        let label = format!("Without prefetching: {page_ms:.1} ms, the mean of {asked} asked for");
        html += &bar(&label, page_ms, page_ms);
        let label = format!("With: {with_ms:.1} ms, the mean of these and {hits} of 0 ms");
        html += &bar(&label, with_ms, page_ms);
        html +=
            "<p>From request to last byte here. That the pages which were sent ahead would have \
                 taken as long as the others is assumed.</p>\n";
    }
    html += "<h2>Bytes</h2>\n";
    let all = (demand + ahead) as f64;
    html += &bar(&format!("Sent ahead: {ahead} of {} bytes", demand + ahead), ahead as f64, all);
    html += &bar(&format!("Used: at least {used} of them"), used as f64, ahead as f64);
    writeln!(
        html,
        "<p>Learned from {} requests: {} objects, {} contexts, {:.1} MB.</p>",
        size.learned,
        size.objects,
        size.contexts,
        size.bytes as f64 / 1e6
    )?;
    html += "<table><caption>Busiest pages and what most likely follows</caption>\
             <tr><th>page<th>requests<th>then<th>probability\n";
    for (page, seen, next) in busiest {
        let (page, then) = (escaped(page), escaped(&next.path));
        writeln!(html, "<tr><td>{page}<td>{seen}<td>{then}<td>{:.2}", next.probability)?;
    }
    html += "</table></html>\n";
    Ok(html)
}
