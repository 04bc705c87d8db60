// SPDX-License-Identifier: MIT OR GPL-2.0-only

use super::*;
use std::os::unix::fs::symlink;
use std::sync::mpsc::{channel, Receiver};

fn paths(names: &[&str]) -> Need {
    Need::Paths(names.iter().map(OsString::from).collect())
}

#[test]
fn what_is_left_out_changes_nothing_and_what_only_begins_like_it_does() {
    let changed = |path: &str| super::changed(path.into(), Some(Path::new("lib/state")));
    assert_eq!(changed("lib/state"), None);
    assert_eq!(changed("lib/state/www.sqlite-wal"), None);
    assert_eq!(changed("lib/state2"), Some(paths(&["lib/state2"])));
    assert_eq!(changed("lib"), Some(paths(&["lib"])));
    assert_eq!(changed(""), Some(Need::Full));
}

#[test]
fn options_that_copy_what_links_lead_to_are_known() {
    for option in ["-L", "-aL", "--copy-links", "--copy-unsafe-links", "-k", "--copy-dirlinks"] {
        assert!(follows(option), "{option}");
    }
    for option in ["-l", "--links", "--exclude=-L", "--copy-devices", "--bwlimit=10k", "-K"] {
        assert!(!follows(option), "{option}");
    }
}

/// A source in a directory of its own, under watch.
struct Setting {
    base: tempfile::TempDir,
    seen: Receiver<Seen>,
    _watch: Watch,
}

impl Setting {
    /// `source` is from the directory that `make` fills.
    fn new(source: &str, make: impl Fn(&Path)) -> Setting {
        let base = tempfile::tempdir().unwrap();
        make(base.path());
        let source = format!("{}/{source}", base.path().display());
        let (to, seen) = channel();
        let what = Watched {
            named: named(&source).is_some(),
            source: source.into(),
            follow: false,
            left_out: None,
            compare_every: Duration::from_secs(3600),
        };
        let watch = Watch::start(what, move |seen| drop(to.send(seen))).unwrap();
        Setting { base, seen, _watch: watch }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.base.path().join(name)
    }

    /// Waits until it is told; a look is taken each second, and a batch ends within five.
    fn wait(&self, what: &Seen) {
        let mut all = Vec::new();
        let ends = Instant::now() + Duration::from_secs(60);
        while !all.contains(what) {
            let left = ends.saturating_duration_since(Instant::now());
            match self.seen.recv_timeout(left) {
                Ok(seen) => all.push(seen),
                Err(_) => panic!("not {what:?}, only {all:?}"),
            }
        }
    }

    /// Writes a file, and waits until it is told of that.
    fn write(&self, name: &str, told: &str) {
        fs::write(self.at(name), "new").unwrap();
        self.wait(&Seen::Changed(paths(&[told])));
    }
}

#[test]
fn a_directory_that_replaces_the_source_is_watched_in_its_place() {
    let setting = Setting::new("w/", |base| fs::create_dir(base.join("w")).unwrap());
    setting.write("w/first", "first");
    fs::rename(setting.at("w"), setting.at("w.old")).unwrap();
    fs::create_dir(setting.at("w")).unwrap();
    setting.wait(&Seen::Another);
    setting.write("w/second", "second");
    // at once, and perhaps with the inode of the one before
    fs::remove_dir_all(setting.at("w")).unwrap();
    fs::create_dir(setting.at("w")).unwrap();
    setting.wait(&Seen::Another);
    fs::create_dir(setting.at("w/deep")).unwrap();
    setting.wait(&Seen::Changed(paths(&["deep"])));
    setting.write("w/deep/third", "deep/third");
}

#[test]
fn a_link_that_is_switched_leads_the_watch_to_its_new_target() {
    let setting = Setting::new("current/", |base| {
        fs::create_dir(base.join("one")).unwrap();
        fs::create_dir(base.join("two")).unwrap();
        symlink("one", base.join("current")).unwrap();
    });
    setting.write("one/file", "file");
    symlink("two", setting.at("next")).unwrap();
    fs::rename(setting.at("next"), setting.at("current")).unwrap(); // mv -T
    setting.wait(&Seen::Another);
    setting.write("two/other", "other");
}

#[test]
fn a_source_that_went_away_is_missed_aloud_and_found_when_it_is_back() {
    let setting = Setting::new("w/", |base| fs::create_dir(base.join("w")).unwrap());
    fs::rename(setting.at("w"), setting.at("away")).unwrap();
    let shown = setting.at("w/").display().to_string();
    let missing = format!("cannot find the source {shown}; waiting for it");
    setting.wait(&Seen::Trouble(Some(missing)));
    fs::rename(setting.at("away"), setting.at("w")).unwrap();
    setting.wait(&Seen::Another);
    setting.write("w/file", "file");
}

#[test]
fn a_file_that_replaces_the_source_is_noticed_again_and_again() {
    let setting = Setting::new("file", |base| fs::write(base.join("file"), "0").unwrap());
    for _ in 0..2 {
        fs::write(setting.at("next"), "1").unwrap();
        fs::rename(setting.at("next"), setting.at("file")).unwrap();
        setting.wait(&Seen::Another);
    }
    fs::write(setting.at("file"), "2").unwrap();
    setting.wait(&Seen::Changed(Need::Full));
}

#[test]
fn a_link_that_is_copied_as_a_link_is_watched_itself_and_not_its_target() {
    let setting = Setting::new("link", |base| {
        fs::create_dir(base.join("one")).unwrap();
        symlink("one", base.join("link")).unwrap();
    });
    fs::write(setting.at("one/file"), "new").unwrap();
    symlink("two", setting.at("next")).unwrap();
    fs::rename(setting.at("next"), setting.at("link")).unwrap();
    // the first that is told, so the file was not
    let first = setting.seen.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(matches!(first, Seen::Another | Seen::Changed(Need::Full)), "{first:?}");
}

#[test]
fn what_a_link_in_the_source_leads_to_is_not_of_the_source() {
    let setting = Setting::new("w/", |base| {
        fs::create_dir_all(base.join("w/real")).unwrap();
        symlink("real", base.join("w/link")).unwrap();
        fs::create_dir(base.join("outside")).unwrap();
        symlink("../outside", base.join("w/out")).unwrap();
    });
    fs::write(setting.at("outside/file"), "new").unwrap();
    setting.write("w/real/file", "real/file"); // by this path alone, and nothing of `outside`
}

#[test]
fn files_directories_and_what_is_moved_among_them_are_told_by_their_present_paths() {
    let setting = Setting::new("w/", |base| fs::create_dir_all(base.join("w/a/b/c")).unwrap());
    setting.write("w/a/b/c/file", "a/b/c/file");
    fs::rename(setting.at("w/a/b"), setting.at("w/moved")).unwrap();
    setting.wait(&Seen::Changed(paths(&["a/b", "moved"])));
    setting.write("w/moved/c/later", "moved/c/later");
    fs::rename(setting.at("w/moved/c"), setting.at("outside")).unwrap();
    setting.wait(&Seen::Changed(paths(&["moved/c"])));
    fs::write(setting.at("outside/file"), "not of the source any more").unwrap();
    fs::create_dir_all(setting.at("x/y")).unwrap();
    fs::rename(setting.at("x"), setting.at("w/x")).unwrap();
    setting.wait(&Seen::Changed(paths(&["x"]))); // with all that is in it
    setting.write("w/x/y/file", "x/y/file");
}

#[test]
fn directories_that_changed_places_are_both_watched_where_they_are() {
    let setting = Setting::new("w/", |base| {
        for name in ["w/a/deep", "w/b/deep", "w/c", "next"] {
            fs::create_dir_all(base.join(name)).unwrap();
        }
        fs::write(base.join("w/file"), "").unwrap();
    });
    let exchange = |one: &str, other: &str| {
        let (one, other) = (setting.at(one), setting.at(other));
        let flags = rustix::fs::RenameFlags::EXCHANGE;
        rustix::fs::renameat_with(rustix::fs::CWD, one, rustix::fs::CWD, other, flags).unwrap();
    };
    for _ in 0..2 {
        exchange("w/a", "w/b");
        setting.wait(&Seen::Changed(paths(&["a", "b"])));
        for name in ["a/file", "b/file", "a/deep/file", "b/deep/file"] {
            setting.write(&format!("w/{name}"), name);
        }
    }
    exchange("w/a", "w/b/deep");
    setting.wait(&Seen::Changed(paths(&["a", "b/deep"])));
    setting.write("w/b/deep/new", "b/deep/new");
    exchange("w/c", "w/file");
    setting.wait(&Seen::Changed(paths(&["c", "file"])));
    exchange("w/b", "next"); // with one from outside
    setting.wait(&Seen::Changed(paths(&["b"])));
    for name in ["a/new", "file/new", "b/new"] {
        setting.write(&format!("w/{name}"), name);
    }
}

#[test]
fn a_change_of_a_file_with_several_names_concerns_them_all() {
    let setting = Setting::new("w/", |base| {
        fs::create_dir_all(base.join("w/a")).unwrap();
        fs::write(base.join("w/file"), "old").unwrap();
        fs::hard_link(base.join("w/file"), base.join("w/a/linked")).unwrap();
    });
    fs::write(setting.at("w/file"), "new").unwrap();
    setting.wait(&Seen::Changed(Need::Full));
    fs::remove_file(setting.at("w/a/linked")).unwrap();
    setting.wait(&Seen::Changed(paths(&["a/linked"])));
    setting.write("w/file", "file");
}

#[test]
fn a_look_through_everything_changes_nothing() {
    let setting = Setting::new("w/", |base| {
        fs::create_dir_all(base.join("w/a/b")).unwrap();
        fs::write(base.join("w/a/b/file"), "old").unwrap();
    });
    for entry in fs::read_dir(setting.at("w/a")).unwrap() {
        fs::read_dir(entry.unwrap().path()).unwrap().count();
    }
    fs::read(setting.at("w/a/b/file")).unwrap();
    fs::write(setting.at("w/new"), "").unwrap();
    let first = setting.seen.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!(first, Seen::Changed(paths(&["new"])));
}

/// A watch that can be told of events by hand.
fn by_hand(
    compare_every: Duration,
) -> (tempfile::TempDir, Watching<impl FnMut(Seen)>, Receiver<Seen>) {
    let base = tempfile::tempdir().unwrap();
    let what = Watched {
        source: base.path().into(),
        named: false,
        follow: false,
        left_out: None,
        compare_every,
    };
    let (to, seen) = channel();
    let watching = Watching {
        alive: Weak::new(),
        root: Some(Root::open(&what).unwrap()),
        what,
        tell: move |seen| drop(to.send(seen)),
        trouble: None,
        gone: false,
        lost: false,
        renewed: Instant::now(),
    };
    (base, watching, seen)
}

#[test]
fn events_that_were_lost_make_everything_necessary_and_renew_the_watch() {
    let (_base, mut watching, seen) = by_hand(Duration::from_secs(3600));
    assert_eq!(watching.need(Event::Lost), Some(Need::Full));
    assert_eq!(watching.rest(), REST);
    watching.renew();
    assert_eq!(seen.try_iter().collect::<Vec<_>>(), [Seen::Changed(Need::Full)]);
    assert_eq!(watching.rest(), Duration::from_secs(3600));
}

#[test]
fn the_limit_of_watches_is_said_once_with_the_setting_and_compares_more_often_until_it_is_raised() {
    let (_base, mut watching, seen) = by_hand(Duration::from_secs(3600));
    for _ in 0..3 {
        assert_eq!(watching.need(Event::Limit), Some(Need::Full));
    }
    assert_eq!(watching.rest(), crate::schedule::OFTEN);
    let said: Vec<_> = seen.try_iter().collect();
    let [Seen::Trouble(Some(text))] = said.as_slice() else { panic!("{said:?}") };
    assert!(text.contains("sysctl fs.inotify.max_user_watches="), "{text}");
    assert!(text.ends_with("everything is compared every 300 s"), "{text}");
    watching.renew(); // this time the kernel allows it
    let told = [Seen::Changed(Need::Full), Seen::Trouble(None)];
    assert_eq!(seen.try_iter().collect::<Vec<_>>(), told);
    assert_eq!(watching.rest(), Duration::from_secs(3600));
}
