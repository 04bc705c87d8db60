// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The table as lines of text: two for each job, and for what is downloaded; the second says why.

use netnice_manager::snapshot::{Job, Kind, View, ViewedDownload};

use super::Order;
use crate::sight::not_shown;
use crate::units::{count, rate, size, span, visible};

/// Heights of a history's bars, the least first.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ASCII: [char; 8] = ['_', '.', ':', '-', '=', '+', '*', '#'];

/// A name is cut to this before another column goes, characters.
const NAME: usize = 16;

/// The columns after the name. The first to go where the terminal is narrow is the one with the greatest
/// `leaves`.
const COLUMNS: [Column; 6] = [
    Column { head: "Mbit/s", width: 9, leaves: 0, cell: |job, _| mbit(job.rate_bits, "") },
    Column { head: "history", width: 13, leaves: 5, cell: history },
    Column { head: "others", width: 9, leaves: 1, cell: |job, _| others(job) },
    Column { head: "queue ms", width: 11, leaves: 3, cell: |job, _| queue(job) },
    Column { head: "sent", width: 8, leaves: 2, cell: |job, _| size(job.bytes_sent as f64) },
    Column { head: "yielded", width: 10, leaves: 4, cell: |job, _| span(job.yielding_s) },
];

struct Column {
    head: &'static str,
    /// With a space before it.
    width: usize,
    leaves: usize,
    cell: fn(&Job, &Style) -> String,
}

/// How cells are written.
struct Style {
    bars: [char; 8],
}

/// The jobs of a moment, in an order, for a width.
pub struct Table<'a> {
    view: &'a View,
    jobs: Vec<&'a Job>,
    width: usize,
    columns: Vec<&'static Column>,
    style: Style,
}

impl<'a> Table<'a> {
    /// `blocks`: the reader knows more than ASCII.
    pub fn new(view: &'a View, order: Order, width: usize, blocks: bool) -> Table<'a> {
        let mut columns: Vec<_> = COLUMNS.iter().collect();
        while columns.iter().map(|column| column.width).sum::<usize>() + NAME > width {
            let last = (0..columns.len()).max_by_key(|at| columns[*at].leaves);
            match last {
                Some(at) => drop(columns.remove(at)),
                None => break,
            }
        }
        let bars = if blocks { BLOCKS } else { ASCII };
        Table { view, jobs: in_order(&view.jobs, order), width, columns, style: Style { bars } }
    }

    /// What all are together, and what is known of the paths.
    pub fn head(&self) -> String {
        let jobs = self.jobs.iter().filter(|job| job.kind != Kind::Group).count();
        let text = match jobs {
            0 if self.view.left_out.is_some() => {
                "No jobs of yours in the background. Start one: netnice run -- COMMAND".into()
            }
            0 => "No jobs in the background. Start one: sudo netnice run -- COMMAND".into(),
            _ => {
                let own = self.jobs.iter().filter(|job| job.kind != Kind::Group);
                let bits = own.filter_map(|job| job.rate_bits).sum();
                let paths = self.view.paths.iter().filter_map(|on| {
                    let bits = on.path.rate_bits.filter(|_| on.path.away_s.is_none())?;
                    Some(format!("; path at {} {}", visible(&on.device), rate(bits as f64)))
                });
                let jobs = count(jobs as u64, "job", "jobs");
                format!("{jobs}, {}{}", rate(bits), paths.collect::<String>())
            }
        };
        cut(&text, self.width)
    }

    /// The names of the columns.
    pub fn columns(&self) -> String {
        let cells = self.columns.iter().map(|c| format!("{:>1$}", c.head, c.width));
        cut(&format!("{:1$}{2}", "job", self.name(), cells.collect::<String>()), self.width)
    }

    /// Two lines for each job.
    pub fn jobs(&self) -> Vec<[String; 2]> {
        self.jobs.iter().map(|job| self.lines(job)).collect()
    }

    /// Two lines for each path by which downloads come that yield.
    pub fn downloads(&self) -> Vec<[String; 2]> {
        let words = |bits: Option<f64>| bits.map_or("-".into(), rate);
        let lines = |seen: &ViewedDownload| {
            let first = format!(
                "downloads at {}: {}, others {}, {}",
                visible(&seen.at.device),
                words(seen.background_bits),
                words(seen.others_bits),
                match seen.at.download.connections {
                    0 if seen.background_bits > Some(0.0) => "UDP".into(),
                    n => count(n.into(), "connection", "connections"),
                },
            );
            [cut(&first, self.width), cut(&format!("  {}", seen.why_text), self.width)]
        };
        self.view.downloads.iter().map(lines).collect()
    }

    /// A line about what the view leaves out, if it does.
    pub fn not_shown(&self) -> Option<String> {
        Some(cut(&not_shown(self.view.left_out.as_ref()?)?, self.width))
    }

    fn lines(&self, job: &Job) -> [String; 2] {
        let inside = if job.group.is_some() { "  " } else { "" };
        let name = cut(&format!("{inside}{}", visible(called(job))), self.name());
        let cells = self
            .columns
            .iter()
            .map(|c| format!(" {:>1$}", (c.cell)(job, &self.style), c.width - 1));
        let first = format!("{name:0$}{1}", self.name(), cells.collect::<String>());
        let second = match job.kind {
            Kind::Group => format!("  {}", job.why_text),
            _ => format!("{inside}  {}: {}", job.id, job.why_text),
        };
        [cut(&first, self.width), cut(&visible(&second), self.width)]
    }

    /// The width of names.
    fn name(&self) -> usize {
        self.width.saturating_sub(self.columns.iter().map(|column| column.width).sum())
    }
}

/// What a job is called in its row: of a cgroup the last part of its path, by which units and containers
/// are told apart. How their paths begin is the same, and would be all that there is room for.
fn called(job: &Job) -> &str {
    match (job.kind, job.run) {
        (Kind::Attached, Some(_)) => job.name.rsplit('/').next().unwrap_or_default(),
        _ => &job.name,
    }
}

/// Jobs in this order; those of a group after its row.
fn in_order(jobs: &[Job], order: Order) -> Vec<&Job> {
    let mut all: Vec<_> = jobs.iter().collect();
    let rate = |job: &Job| job.rate_bits.unwrap_or_default();
    all.sort_by(|a, b| {
        match order {
            Order::Rate => rate(b).total_cmp(&rate(a)),
            Order::Sent => b.bytes_sent.cmp(&a.bytes_sent),
            Order::Yielded => b.yielding_s.total_cmp(&a.yielding_s),
            Order::Name => called(a).cmp(called(b)),
        }
        .then_with(|| a.id.cmp(&b.id))
    });
    let (members, heads): (Vec<_>, Vec<_>) = all.into_iter().partition(|job| job.group.is_some());
    let mut found = Vec::new();
    for head in heads {
        found.push(head);
        let of =
            |job: &&&Job| job.group.as_ref().is_some_and(|name| head.id == format!("group {name}"));
        found.extend(members.iter().filter(of));
    }
    // of a group whose row is gone
    let alone: Vec<_> =
        members.into_iter().filter(|job| !found.iter().any(|f| f.id == job.id)).collect();
    found.extend(alone);
    found
}

fn mbit(bits: Option<f64>, sign: &str) -> String {
    bits.map_or("-".into(), |bits| format!("{sign}{:.2}", bits / 1e6))
}

/// What is counted at the device and not on the path is about so much.
fn others(job: &Job) -> String {
    let sign = job.others.as_ref().map_or("", |others| if others.on_path { "" } else { "~" });
    mbit(job.others.as_ref().map(|others| others.bits), sign)
}

/// 1.2<2.3: it is 1.2 ms, and stays under 2.3.
fn queue(job: &Job) -> String {
    job.queue.map_or("-".into(), |queue| {
        let sign = if queue.now_ms < queue.limit_ms { '<' } else { '>' };
        format!("{:.1}{sign}{:.1}", queue.now_ms, queue.limit_ms)
    })
}

/// A bar for each of the last rates; the highest has the greatest.
fn history(job: &Job, style: &Style) -> String {
    let width = COLUMNS[1].width - 1;
    let last = &job.history_bits[job.history_bits.len().saturating_sub(width)..];
    let most = last.iter().copied().fold(0.0, f64::max);
    let highest = (style.bars.len() - 1) as f64;
    let bar = |bits: &f64| style.bars[(bits / most.max(1.0) * highest).round() as usize];
    last.iter().map(bar).collect()
}

/// Lines of at most so many characters, which end between words where these fit.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().expect("there is one");
        match last.chars().count() + 1 + word.chars().count() {
            _ if last.is_empty() => *last = cut(word, width),
            fits if fits <= width => *last += &format!(" {word}"),
            _ => lines.push(cut(word, width)),
        }
    }
    lines
}

/// At most so many characters.
fn cut(text: &str, width: usize) -> String {
    text.chars().take(width).collect()
}
