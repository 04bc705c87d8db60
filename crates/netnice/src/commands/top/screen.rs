// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The table on a terminal, with keys.

use std::io;
use std::process::exit;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use netnice_manager::snapshot::View;
use netnice_manners::start;
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Text};
use ratatui::{DefaultTerminal, Frame};
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::stdio::stdin;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use super::table::{wrap, Table};
use super::{knows_blocks, Order, TopArgs};
use crate::sight::{Sight, ANEW};

/// What is on the screen.
struct Screen {
    view: View,
    order: Order,
    selected: usize,
    colours: bool,
    blocks: bool,
    /// What went wrong at the last look, or is to be known of it.
    said: Option<String>,
}

/// What a key asks for.
#[derive(Debug, PartialEq)]
enum Asked {
    Nothing,
    Quit,
}

/// Shows until `q` is pressed, or the terminal goes away.
pub fn main(args: &TopArgs, sight: &mut Sight, first: View, colours: bool) -> Result<()> {
    let mut signals = Signals::new(start::heeded(&[SIGHUP, SIGINT, SIGQUIT, SIGTERM]))?;
    thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            ratatui::restore();
            exit(128 + signal); // what reads keys may wait for ever where no terminal is left
        }
    });
    let blocks = knows_blocks();
    let mut screen =
        Screen { view: first, order: args.sort, selected: 0, colours, blocks, said: None };
    let mut terminal = ratatui::try_init().context("cannot use this terminal")?;
    let done = follow(&mut terminal, &mut screen, args.interval, sight);
    ratatui::try_restore().context("cannot give the terminal back")?;
    done
}

fn follow(
    terminal: &mut DefaultTerminal,
    screen: &mut Screen,
    interval: Duration,
    sight: &mut Sight,
) -> Result<()> {
    let mut next = Instant::now() + interval;
    loop {
        terminal.draw(|frame| screen.draw(frame))?;
        while Instant::now() < next {
            match wait(next.saturating_duration_since(Instant::now()))? {
                Terminal::Gone => return Ok(()),
                Terminal::Silent => {}
                Terminal::Speaks if keys(screen)? == Asked::Quit => return Ok(()),
                Terminal::Speaks => {
                    terminal.draw(|frame| screen.draw(frame))?;
                }
            }
        }
        next = Instant::now() + interval;
        match sight.look() {
            Ok(view) => screen.show(view),
            Err(error) => screen.said = Some(format!("{error:#}")), // the next look may see again
        }
    }
}

enum Terminal {
    Gone,
    Silent,
    /// It has keys, or another size.
    Speaks,
}

/// Waits for what the terminal has to say. The library of keys does not return where it is gone.
fn wait(most: Duration) -> io::Result<Terminal> {
    let most = Timespec { tv_sec: most.as_secs() as i64, tv_nsec: most.subsec_nanos().into() };
    let mut keys = [PollFd::from_borrowed_fd(stdin(), PollFlags::IN)];
    match poll(&mut keys, Some(&most)) {
        Err(Errno::INTR) => Ok(Terminal::Speaks),
        Err(error) => Err(error.into()),
        Ok(0) => Ok(Terminal::Silent),
        Ok(_) if keys[0].revents() == PollFlags::IN => Ok(Terminal::Speaks),
        Ok(_) => Ok(Terminal::Gone),
    }
}

/// Obeys all keys that were pressed.
fn keys(screen: &mut Screen) -> io::Result<Asked> {
    while event::poll(Duration::ZERO)? {
        let Event::Key(key) = event::read()? else { continue };
        if key.kind == KeyEventKind::Press && screen.key(key) == Asked::Quit {
            return Ok(Asked::Quit);
        }
    }
    Ok(Asked::Nothing)
}

impl Screen {
    fn show(&mut self, view: View) {
        self.said = view.seconds.is_none().then(|| ANEW.into());
        self.view = view;
        self.selected = self.selected.min(self.view.jobs.len().saturating_sub(1));
    }

    fn key(&mut self, key: KeyEvent) -> Asked {
        let last = self.view.jobs.len().saturating_sub(1);
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Asked::Quit,
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => {
                return Asked::Quit
            }
            KeyCode::Char('s') => self.order = self.order.next(),
            KeyCode::Down => self.selected = (self.selected + 1).min(last),
            KeyCode::Up => self.selected = self.selected.saturating_sub(1),
            KeyCode::Home => self.selected = 0,
            KeyCode::End => self.selected = last,
            _ => {}
        }
        Asked::Nothing
    }

    fn draw(&self, frame: &mut Frame) {
        let area = frame.area();
        let width = area.width.into();
        let table = Table::new(&self.view, self.order, width, self.blocks);
        let columns = if self.view.jobs.is_empty() { String::new() } else { table.columns() };
        let first = match &self.said {
            Some(said) => wrap(said, width), // its end says what to do
            None => vec![table.head()],
        };
        let not_shown = table.not_shown();
        let high = |lines: usize| u16::try_from(lines).unwrap_or(u16::MAX);
        let [head, body, below, left_out, foot] = Layout::vertical([
            Constraint::Length(high(first.len() + 1)),
            Constraint::Min(0),
            Constraint::Max(high(2 * self.view.downloads.len())),
            Constraint::Max(high(not_shown.iter().count())),
            Constraint::Length(1),
        ])
        .areas(area);
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let columns = Line::styled(columns, bold);
        let lines = first.into_iter().map(Line::raw).chain([columns]);
        frame.render_widget(Text::from_iter(lines), head);
        let fit = usize::from(body.height) / 2;
        let above = (self.selected + 1).saturating_sub(fit.max(1));
        let lines =
            table.jobs().into_iter().enumerate().skip(above).flat_map(|(at, [row, why])| {
                let chosen =
                    if at == self.selected { Modifier::REVERSED } else { Modifier::empty() };
                let row = Line::styled(row, Style::new().add_modifier(chosen));
                [row, Line::styled(why, self.colour(Color::Yellow))]
            });
        frame.render_widget(Text::from_iter(lines), body);
        let downloads = table
            .downloads()
            .into_iter()
            .flat_map(|[row, why]| [Line::raw(row), Line::styled(why, self.colour(Color::Yellow))]);
        frame.render_widget(Text::from_iter(downloads), below);
        frame.render_widget(Line::raw(not_shown.unwrap_or_default()), left_out);
        let keys = format!("q quit   arrows move   s sort (by {})", self.order.name());
        frame.render_widget(Line::styled(keys, self.colour(Color::Cyan)), foot);
    }

    fn colour(&self, colour: Color) -> Style {
        if self.colours {
            Style::new().fg(colour)
        } else {
            Style::new()
        }
    }
}

#[cfg(test)]
mod tests;
