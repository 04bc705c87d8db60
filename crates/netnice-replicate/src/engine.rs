// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Decides which copy is brought up to date when, and keeps account of it.

use std::process::Command;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::cgroups::Cgroups;
use crate::copy::{account, copy, wants, Copy};
use crate::job::{fnv, Job};
use crate::keeper::Keeper;
use crate::need::{merge, Need};
use crate::observer::Observer;
use crate::rsync::{self, End, Mode, News};
use crate::schedule::{backoff, pause, Level, EPOCH, PROCESSES};
use crate::store::{now, Row, State, Summary};
use crate::watch::Seen;

/// How often the state is looked at, stored and shown.
const TICK: Duration = Duration::from_millis(250);
/// How often what changed is stored.
const STORE: Duration = Duration::from_secs(1);
/// How long transfers get to end when netnice is told to.
const GRACE: Duration = Duration::from_secs(5);

/// What the threads tell the engine.
pub enum Event {
    News(usize, News),
    Ended(usize, End),
    /// Of the source.
    Seen(Seen),
    /// A signal to end.
    Stop,
}

/// How a run ended.
pub struct Outcome {
    pub rows: Vec<Row>,
    pub summary: Summary,
    pub stopped: bool,
}

pub struct Engine<'a> {
    job: Arc<Job>,
    cgroups: Arc<Cgroups>,
    copies: Vec<Copy>,
    state: Keeper,
    observer: &'a mut dyn Observer,
    to: Sender<Event>,
    level: Level,
    summary: Summary,
    stopping: Option<Instant>,
    epoch: Epoch,
}

/// What is measured for the next decision about the level.
struct Epoch {
    began: Instant,
    /// Bytes when it began.
    bytes: u64,
    full: bool,
}

impl<'a> Engine<'a> {
    /// Takes over from what `state` says of earlier runs.
    pub fn new(
        job: Arc<Job>,
        cgroups: Arc<Cgroups>,
        state: Keeper,
        to: Sender<Event>,
        observer: &'a mut dyn Observer,
    ) -> Engine<'a> {
        let copies: Vec<_> = (0..job.destinations.len())
            .map(|i| copy(&job, i, state.earlier(job.destinations[i].place.as_str())))
            .collect();
        let level = Level::new(job.most);
        let summary = Summary {
            source: job.source.clone(),
            watch: job.watch,
            transfers: level.now(),
            goodput: 0.0,
            compare_every: job.compare_every,
            trouble: None,
        };
        let epoch = Epoch { began: Instant::now(), bytes: 0, full: true };
        let stopping = None;
        let mut engine =
            Engine { job, cgroups, copies, state, observer, to, level, summary, stopping, epoch };
        engine.epoch.bytes = engine.uncounted(); // those of earlier runs are no goodput of this one
        engine
    }

    /// Works until all is done, or for ever under `watch`.
    pub fn run(mut self, events: &Receiver<Event>) -> Outcome {
        let (mut ticked, mut stored) = (Instant::now(), Instant::now());
        self.save();
        while !self.over() {
            self.start_some();
            match events.recv_timeout(TICK) {
                Ok(event) => self.handle(event),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if ticked.elapsed() >= TICK {
                self.tick(ticked.elapsed());
                ticked = Instant::now();
            }
            if stored.elapsed() >= STORE {
                self.save();
                stored = Instant::now();
            }
        }
        self.summary.goodput = 0.0;
        self.save();
        self.observer.finish();
        let stopped = self.stopping.is_some();
        let rows = self.copies.into_iter().map(|c| c.row).collect();
        Outcome { rows, summary: self.summary, stopped }
    }

    fn active(&self) -> usize {
        self.copies.iter().filter(|c| c.transfer.is_some()).count()
    }

    fn over(&self) -> bool {
        if self.active() > 0 {
            return false;
        }
        let pending = |c: &Copy| c.need.is_some() && c.row.state != State::Failed;
        self.stopping.is_some() || !self.job.watch && !self.copies.iter().any(pending)
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::News(i, News::Progress(progress)) => {
                let copy = &mut self.copies[i];
                let Some(transfer) = &mut copy.transfer else { return };
                transfer.progress = progress;
                if copy.row.state != State::Copying {
                    copy.set(State::Copying);
                }
            }
            Event::News(i, News::Verifying) => self.copies[i].set(State::Verifying),
            Event::Ended(i, end) => self.ended(i, end),
            Event::Seen(Seen::Changed(need)) => self.behind(&need),
            Event::Seen(Seen::Another) => {
                self.copies.iter_mut().for_each(|c| c.retry = None); // what failed, failed for another
                self.behind(&Need::Full);
            }
            Event::Seen(Seen::Trouble(trouble)) => {
                let over = "all of the source is watched again";
                self.observer.notice(trouble.as_deref().unwrap_or(over));
                self.summary.trouble = trouble;
            }
            Event::Stop => self.stop(),
        }
    }

    /// All copies lack what `need` says.
    fn behind(&mut self, need: &Need) {
        let since = now();
        for copy in &mut self.copies {
            copy.row.behind_since.get_or_insert(since);
            copy.changed = true;
            if copy.feeder.is_none() {
                wants(copy, need.clone());
            }
        }
    }

    /// Compares everything where that was long ago, whatever the watch told: it may have missed
    /// something. The pause begins when a comparison ends, so that there always is one.
    fn compare_some(&mut self) {
        let pause = pause(self.job.compare_every(), self.summary.trouble.is_some());
        for copy in self.copies.iter_mut().filter(|c| c.is_due(pause)) {
            wants(copy, Need::Full);
        }
    }

    fn stop(&mut self) {
        let force = self.stopping.is_some();
        self.stopping.get_or_insert_with(Instant::now);
        for transfer in self.copies.iter().filter_map(|c| c.transfer.as_ref()) {
            transfer.running.stop(force);
        }
    }

    /// Starts transfers while the level allows it: those that failed least first, then those that
    /// are behind for longest.
    fn start_some(&mut self) {
        if self.stopping.is_some() {
            return;
        }
        let at = Instant::now();
        let mut ready: Vec<_> =
            (0..self.copies.len()).filter(|i| self.copies[*i].ready(at)).collect();
        let order = |i: &usize| {
            let row = &self.copies[*i].row;
            (row.attempts, (row.behind_since.unwrap_or(f64::MAX) * 1e3) as u64, *i)
        };
        ready.sort_by_key(order);
        let mut counting = self.copies.iter().filter(|c| c.counts()).count();
        let mut active = self.active();
        let mut ready = ready.into_iter().peekable();
        while counting < self.level.now() as usize && active < PROCESSES {
            let Some(i) = ready.next() else { break };
            self.start(i);
            counting += 1;
            active += 1;
        }
        self.epoch.full &= counting >= self.level.now() as usize && ready.peek().is_some();
    }

    /// What the source had before then, a transfer that begins now brings to copy `i`: a feeder hands
    /// on what it had when it was compared itself.
    fn reaches(&self, i: usize) -> Option<f64> {
        match self.copies[i].feeder {
            Some(feeder) => self.copies[feeder].row.compared_at,
            None => Some(now()),
        }
    }

    fn start(&mut self, i: usize) {
        let reaches = self.reaches(i);
        let copy = &mut self.copies[i];
        let mode = if copy.checksum { Mode::Checksum } else { Mode::Quick };
        let Some((need, running)) = copy.begin(reaches) else { return };
        let (job, to) = (Arc::clone(&self.job), self.to.clone());
        let cgroups = Arc::clone(&self.cgroups);
        let thread = thread::Builder::new().spawn(move || {
            let start = |command: &mut Command| cgroups.spawn(i, command);
            // the engine is gone only when the process ends
            let end = rsync::transfer(&job, i, &need, mode, &running, &start, |news| {
                let _ = to.send(Event::News(i, news));
            });
            let _ = to.send(Event::Ended(i, end));
        });
        if let Err(error) = thread {
            self.ended(i, End::without_thread(&error));
        }
    }

    fn ended(&mut self, i: usize, end: End) {
        let copy = &mut self.copies[i];
        let Some(transfer) = copy.transfer.take() else { return };
        copy.row.rate = 0.0;
        copy.row.ends_at = None;
        let again = copy.row.attempts < self.job.retries;
        copy.bytes += match &end {
            End::Done { sent, .. } | End::Differs { sent, .. } => *sent,
            End::Failed { .. } => transfer.progress.bytes,
        };
        copy.row.bytes = copy.bytes;
        match end {
            End::Done { vanished, .. } if !(vanished && again) => {
                self.complete(i, transfer.need, transfer.reaches);
            }
            End::Done { .. } => {
                self.failed(i, "files vanished from the source meanwhile".into(), false);
            }
            End::Differs { count, some, .. } => {
                copy.checksum = true;
                let names = some.join(", ");
                self.failed(
                    i,
                    format!("{count} copied paths differ from the source: {names}"),
                    false,
                );
            }
            End::Failed { error, lasting } => {
                if self.stopping.is_some() {
                    copy.need = Some(merge(copy.need.take(), transfer.need));
                    copy.set(State::Waiting);
                } else {
                    self.failed(i, error, lasting);
                }
            }
        }
    }

    /// The copy has what `need` says: it can feed others with it. What its feeder lacks, it lacks.
    fn complete(&mut self, i: usize, need: Need, reaches: Option<f64>) {
        let lacking = self.copies[i].feeder.and_then(|f| self.copies[f].row.behind_since);
        let copy = &mut self.copies[i];
        if need == Need::Full {
            copy.row.compared_at = reaches;
            copy.compared = Some(Instant::now());
        }
        copy.checksum = false;
        copy.row.done = 1.0;
        copy.row.attempts = 0;
        copy.row.error = None;
        copy.row.current_at = Some(now());
        if copy.need.is_none() {
            copy.row.behind_since = lacking;
        }
        let lacks = copy.need.is_some() || lacking.is_some();
        copy.set(if lacks { State::Waiting } else { State::Current });
        self.observer.complete(&copy.row);
        for fed in self.copies.iter_mut().filter(|c| c.feeder == Some(i)) {
            wants(fed, need.clone());
        }
    }

    fn failed(&mut self, i: usize, error: String, lasting: bool) {
        let copy = &mut self.copies[i];
        // whatever the receiver went through, everything is looked through again
        copy.need = Some(Need::Full);
        copy.row.attempts += 1;
        copy.row.error = Some(error);
        copy.row.behind_since.get_or_insert_with(now);
        if !self.job.watch && (lasting || copy.row.attempts > self.job.retries) {
            copy.set(State::Failed);
            self.observer.failed(&copy.row);
            self.give_up_below(i);
            return;
        }
        let pause = backoff(copy.row.attempts, fnv(&copy.row.place));
        copy.retry = Some(Instant::now() + pause);
        copy.row.retry_at = Some(now() + pause.as_secs_f64());
        copy.set(State::Retrying);
        self.observer.retrying(&copy.row, pause);
    }

    /// What a failed copy should have fed will not come.
    fn give_up_below(&mut self, i: usize) {
        let place = self.copies[i].row.place.clone();
        for fed in 0..self.copies.len() {
            let copy = &mut self.copies[fed];
            if copy.feeder == Some(i) && copy.transfer.is_none() {
                copy.row.error = Some(format!("its feeder {place} failed"));
                copy.set(State::Failed);
                self.observer.failed(&copy.row);
                self.give_up_below(fed);
            }
        }
    }

    /// Looks at rates, at the level, and at transfers that do not end when told.
    fn tick(&mut self, elapsed: Duration) {
        for copy in &mut self.copies {
            if copy.transfer.is_some() {
                account(copy, elapsed.as_secs_f64());
            }
        }
        self.measure();
        if self.job.watch {
            self.compare_some();
        }
        if self.stopping.is_some_and(|s| s.elapsed() > GRACE) {
            self.stop();
        }
        let rows: Vec<_> = self.copies.iter().map(|c| &c.row).collect();
        self.observer.tick(&rows, &self.summary);
    }

    /// Bytes of the copies whose transfers no cgroup counts: all, or those on this machine.
    fn uncounted(&self) -> u64 {
        let plain = !self.cgroups.counts();
        let destinations = self.job.destinations.iter().zip(&self.copies);
        let of = destinations.filter(|(destination, _)| plain || destination.place.is_local());
        of.map(|(_, copy)| copy.row.bytes).sum()
    }

    /// Decides about the level, where enough is measured: without figures it stays, and the epoch
    /// goes on until there are some.
    fn measure(&mut self) {
        let elapsed = self.epoch.began.elapsed();
        if elapsed < EPOCH {
            return;
        }
        let Some((acked, yielded)) = self.cgroups.measured() else { return };
        self.observer.yielded(yielded);
        let bytes = acked + self.uncounted();
        let goodput = bytes.saturating_sub(self.epoch.bytes) as f64 / elapsed.as_secs_f64();
        self.level.epoch(goodput, self.epoch.full);
        self.summary.transfers = self.level.now();
        self.summary.goodput = goodput;
        self.epoch = Epoch { began: Instant::now(), bytes, full: true };
    }

    fn save(&mut self) {
        let rows: Vec<_> = self.copies.iter().map(|c| (c.changed, &c.row)).collect();
        if self.state.store(&self.summary, &rows, self.observer) {
            self.copies.iter_mut().for_each(|c| c.changed = false);
        }
    }
}

#[cfg(test)]
mod tests;
