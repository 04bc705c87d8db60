// SPDX-License-Identifier: MIT OR GPL-2.0-only

use netnice_manager::hold::Download;
use netnice_manager::snapshot::{
    DownloadAt, Job, Kind, LeftOut, Others, Queue, Unhurried, ViewedDownload, Why,
};
use ratatui::backend::TestBackend;
use ratatui::Terminal;

use super::*;

/// A job with so many bits/s, which yields to 6.1 Mbit/s at a held path.
fn job(id: &str, name: &str, bits: f64) -> Job {
    let why = Why::YieldingToHost { bits: 6.1e6, device: None };
    Job {
        id: id.into(),
        kind: Kind::Run,
        run: None,
        pid: Some(7),
        name: name.into(),
        group: None,
        control: "nn_ebb".into(),
        connections: 1,
        rate_bits: Some(bits),
        history_bits: (0..=7).map(|n| bits * f64::from(n) / 7.0).collect(),
        bytes_sent: 12_345_678,
        bytes_unsent: 0,
        retransmits: 0,
        yielding_s: 61.0,
        others: Some(Others { bits: 6.1e6, device: "eth0".into(), on_path: true }),
        queue: Some(Queue { limit_ms: 2.27, now_ms: 1.24 }),
        why_text: why.to_string(),
        why,
    }
}

fn screen(jobs: Vec<Job>) -> Screen {
    Screen {
        view: View {
            time: 1e9,
            seconds: Some(1.0),
            jobs,
            paths: vec![],
            downloads: vec![],
            left_out: None,
        },
        order: Order::Rate,
        selected: 0,
        colours: false,
        blocks: true,
        said: None,
    }
}

/// What a terminal of that size shows, a line each.
fn drawn(screen: &Screen, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| screen.draw(frame)).unwrap();
    let buffer = terminal.backend().buffer();
    let cells = buffer.content().chunks(width.into());
    cells.map(|row| row.iter().map(|c| c.symbol()).collect::<String>().trim_end().into()).collect()
}

#[test]
fn eighty_columns_hold_all_of_a_job_and_why_it_is_slow() {
    let shown = drawn(&screen(vec![job("run 4711", "rsync -a /home backup:/home", 1.94e6)]), 80, 6);
    #[rustfmt::skip]
    let expected = [
        "1 job, 1.94 Mbit/s",
        "job                    Mbit/s      history   others   queue ms    sent   yielded",
        "rsync -a /home backu     1.94     ▁▂▃▄▅▆▇█     6.10    1.2<2.3 12.3 MB  1:01 min",
        "  run 4711: yielding to 6.1 Mbit/s of this host's other traffic",
        "",
        "q quit   arrows move   s sort (by rate)",
    ];
    assert_eq!(shown, expected);
    assert!(shown.iter().all(|line| line.chars().count() <= 80));
}

#[test]
fn what_is_attached_is_called_as_its_unit_is_and_not_as_all_paths_begin() {
    let attached = |id: &str, unit: &str| Job {
        kind: Kind::Attached,
        run: Some(4711),
        ..job(id, &format!("/sys/fs/cgroup/system.slice/{unit}"), 1e6)
    };
    let units = [attached("run 1", "nginx.service"), attached("run 2", "app@a\\x2db.service")];
    let process = Job { kind: Kind::Attached, ..job("pid 7", "/usr/bin/rsync -a /home", 1e6) };
    let shown = drawn(&screen(units.into_iter().chain([process]).collect()), 80, 10);
    let names: Vec<_> = shown[2..8].iter().step_by(2).map(|line| &line[..20]).collect();
    assert_eq!(names, ["/usr/bin/rsync -a /h", "nginx.service       ", "app@a\\x2db.service  "]);
}

#[test]
fn downloads_stand_below_the_jobs_with_what_others_have_and_why_they_are_slow() {
    let download = Download { connections: 3, ..Download::default() };
    let why = Unhurried::YieldingToHost { bits: 6.1e6 };
    let seen = ViewedDownload {
        at: DownloadAt { device: "eth0".into(), download },
        background_bits: Some(0.4e6),
        others_bits: Some(6.1e6),
        why_text: why.to_string(),
        why,
    };
    let mut screen = screen(Vec::new());
    screen.view.downloads = vec![seen];
    let shown = drawn(&screen, 80, 6);
    assert_eq!(
        shown[3..5],
        [
            "downloads at eth0: 400.00 kbit/s, others 6.10 Mbit/s, 3 connections",
            "  yielding to 6.1 Mbit/s that others download",
        ]
    );
    // a job is shown first where there is little room
    screen.show(View { jobs: vec![job("run 1", "rsync", 1e6)], ..screen.view.clone() });
    assert!(drawn(&screen, 80, 7)[2].starts_with("rsync"));
}

#[test]
fn without_colours_a_cell_has_none() {
    let mut terminal = Terminal::new(TestBackend::new(80, 6)).unwrap();
    let mut screen = screen(vec![job("run 1", "rsync", 1e6)]);
    let mut coloured = |screen: &Screen| {
        terminal.draw(|frame| screen.draw(frame)).unwrap();
        terminal.backend().buffer().content().iter().any(|cell| cell.fg != Color::Reset)
    };
    assert!(!coloured(&screen));
    screen.colours = true;
    assert!(coloured(&screen));
}

#[test]
fn a_narrow_terminal_keeps_the_rate_and_the_reason() {
    let shown = drawn(&screen(vec![job("run 1", "rsync -a /home b:", 1.94e6)]), 30, 6);
    assert_eq!(shown[1], "job                     Mbit/s");
    assert_eq!(shown[2], "rsync -a /home b:         1.94");
    assert_eq!(shown[3], "  run 1: yielding to 6.1 Mbit/");
    // nor does it fail where nothing fits
    for (width, height) in [(1, 1), (3, 2), (8, 40)] {
        assert_eq!(
            drawn(&screen(vec![job("run 1", "rsync", 1e6)]), width, height).len(),
            height as usize
        );
    }
}

#[test]
fn without_a_job_it_says_how_to_start_one() {
    let shown = drawn(&screen(Vec::new()), 80, 4);
    assert_eq!(shown[0], "No jobs in the background. Start one: sudo netnice run -- COMMAND");
    assert_eq!(shown[1], "");
}

#[test]
fn arrows_move_and_the_job_that_they_are_at_is_always_on_the_screen() {
    let jobs = (0..10).map(|n| job(&format!("run {n}"), &format!("job-{n}"), 1e6 - f64::from(n)));
    let mut screen = screen(jobs.collect());
    // 9 lines: head, columns, three jobs, keys
    let shows =
        |screen: &Screen, name: &str| drawn(screen, 80, 9).iter().any(|l| l.starts_with(name));
    assert!(shows(&screen, "job-0") && shows(&screen, "job-2") && !shows(&screen, "job-3"));
    let press = |screen: &mut Screen, code| screen.key(KeyEvent::new(code, KeyModifiers::NONE));
    for _ in 0..3 {
        assert_eq!(press(&mut screen, KeyCode::Down), Asked::Nothing);
    }
    assert!(shows(&screen, "job-3") && !shows(&screen, "job-0"));
    press(&mut screen, KeyCode::End);
    press(&mut screen, KeyCode::Down);
    assert!(shows(&screen, "job-9"));
    // most of them end meanwhile
    screen.show(View { jobs: screen.view.jobs[..2].to_vec(), ..screen.view.clone() });
    assert!(shows(&screen, "job-0") && shows(&screen, "job-1"));
    assert_eq!(press(&mut screen, KeyCode::Char('q')), Asked::Quit);
    let end = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(screen.key(end), Asked::Quit);
}

#[test]
fn jobs_are_sorted_and_runs_of_a_group_follow_it() {
    let group = Job { kind: Kind::Group, ..job("group nightly", "group nightly", 3e6) };
    let member = |n, bits| Job { group: Some("nightly".into()), ..job(n, n, bits) };
    let jobs =
        vec![job("a", "a", 2e6), member("c", 1e6), job("b", "b", 4e6), member("d", 2e6), group];
    let mut screen = screen(jobs);
    let names = |screen: &Screen| -> Vec<String> {
        let words = |line: &String| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
        let shown = drawn(screen, 40, 14);
        shown[2..12].iter().step_by(2).map(words).collect()
    };
    // a group's rate is that of its runs, which the head counts once: 2 + 1 + 4 + 2
    assert_eq!(names(&screen), ["b 4.00", "group nightly", "d 2.00", "c 1.00", "a 2.00"]);
    assert_eq!(drawn(&screen, 40, 14)[0], "4 jobs, 9.00 Mbit/s");
    for _ in 0..3 {
        screen.key(KeyEvent::new(KeyCode::Char('s'), KeyModifiers::NONE));
    }
    assert_eq!(names(&screen), ["a 2.00", "b 4.00", "group nightly", "c 1.00", "d 2.00"]);
}

#[test]
fn what_is_not_known_is_a_dash_and_a_failed_look_is_said() {
    let unknown = Job { rate_bits: None, others: None, queue: None, ..job("run 1", "rsync", 1e6) };
    let mut screen = screen(vec![unknown]);
    assert_eq!(drawn(&screen, 80, 6)[2].matches(" - ").count(), 3);
    screen.said = Some("cannot list the connections".into());
    assert_eq!(drawn(&screen, 80, 6)[0], "cannot list the connections");
}

#[test]
fn what_went_wrong_is_read_to_its_end_with_the_next_step_also_on_a_narrow_terminal() {
    let mut screen = screen(vec![job("run 1", "rsync", 1e6)]);
    let said =
        "the daemon does not answer at /run/netnice/netnice.sock; start it: sudo systemctl enable";
    screen.said = Some(said.into());
    for width in [80, 40] {
        let shown = drawn(&screen, width, 12);
        let lines = shown.iter().position(|line| line.starts_with("job ")).expect("the columns");
        assert_eq!(shown[..lines].join(" "), said);
    }
    assert_eq!(wrap("too-long-for-this", 8), ["too-long"]);
}

#[test]
fn what_is_left_out_is_a_line_above_the_keys_and_takes_none_where_all_is_shown() {
    let mut screen = screen(vec![job("run 1", "rsync", 1e6)]);
    assert_eq!(drawn(&screen, 80, 8)[6], "");
    screen.view.left_out = Some(LeftOut { runs: 2, connections: 5, jobs: 0 });
    let sentence = "Not shown: 2 runs and 5 connections of other users; all: sudo netnice top";
    assert_eq!(drawn(&screen, 80, 8)[6], sentence);
    screen.view.jobs.clear();
    let none = "No jobs of yours in the background. Start one: netnice run -- COMMAND";
    assert_eq!(drawn(&screen, 80, 8)[0], none);
}

#[test]
fn a_look_that_begins_anew_is_said_until_the_next_one() {
    let mut screen = screen(vec![job("run 1", "rsync", 1e6)]);
    let first = View { seconds: None, ..screen.view.clone() };
    let next = screen.view.clone();
    screen.show(first);
    assert_eq!(drawn(&screen, 80, 8)[0], ANEW);
    screen.show(next);
    assert_eq!(drawn(&screen, 80, 8)[0], "1 job, 1.00 Mbit/s");
}
