// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! What every algorithm of the list must keep to.

use proptest::prelude::*;

use super::*;

const EVENTS: [Event; 5] =
    [Event::NN_LOSS, Event::NN_ECN, Event::NN_TIMEOUT, Event::NN_UNDO, Event::NN_IDLE];

fn all() -> impl Strategy<Value = Algorithm> {
    proptest::sample::select(Algorithm::all().collect::<Vec<_>>())
}

/// The window that a parameter called `window` allows, which bounds it from above.
fn greatest(config: &Config) -> u64 {
    let index = config.algorithm().params().position(|p| p.name() == "window");
    index.map_or(CWND_MAX, |i| config.values()[i].into())
}

/// A flow that has seen some rounds and events; nothing is in the middle of a round.
fn used() -> impl Strategy<Value = Host> {
    let round = (1u32..40, BASE..3 * BASE, proptest::option::of(0usize..5));
    (all(), proptest::collection::vec(round, 0..30)).prop_map(|(a, rounds)| {
        let mut h = Host::new(&Config::new(a), 10);
        h.round(3, BASE);
        for (n, rtt, event) in rounds {
            h.now.now_us += u64::from(rtt);
            h.round(n, rtt);
            if let Some(event) = event {
                h.event(EVENTS[event]);
            }
        }
        h
    })
}

#[test]
fn has_a_name_that_the_kernel_accepts_and_a_summary_of_one_line() {
    let names: Vec<&str> = Algorithm::all().map(|a| a.name()).collect();
    for (i, name) in names.iter().enumerate() {
        // TCP_CA_NAME_MAX is 16, with the prefix nn_ and the final zero
        assert!((1..=12).contains(&name.len()), "{name}");
        assert!(
            name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'),
            "{name}"
        );
        assert!(!names[..i].contains(name), "{name} is there twice");
    }
    for a in Algorithm::all() {
        assert!(a.summary().len() > 10 && !a.summary().contains('\n'), "{a:?}");
    }
}

#[test]
fn explains_each_parameter_and_has_its_default_within_its_range() {
    for (a, p) in Algorithm::all().flat_map(|a| a.params().map(move |p| (a, p))) {
        let what = format!("{a:?} {}", p.name());
        assert!(p.least() < p.most(), "{what}");
        assert!((p.least()..=p.most()).contains(&p.default()), "{what}");
        assert!(p.least() >= 0.0 && p.most() < 65536.0, "{what}: does not fit into Q16");
        assert!(!p.unit().is_empty() && !p.source().is_empty(), "{what}");
        assert!(p.help().len() > 10, "{what}");
    }
}

#[test]
fn takes_each_parameter_at_both_ends_of_its_range_and_nothing_beyond() {
    for a in Algorithm::all() {
        for (i, p) in a.params().enumerate() {
            let mut config = Config::new(a);
            let mut set =
                |x: f64| config.set(&format!("{}={x}", p.name())).map(|()| config.values()[i]);
            assert_eq!(set(p.least()), Ok((p.least() * 65536.0 + 0.5) as u32));
            assert_eq!(set(p.most()), Ok((p.most() * 65536.0 + 0.5) as u32));
            for beyond in [p.least() - 0.01, p.most() + 0.01, -1e300, 1e300, f64::NAN] {
                let error = set(beyond).expect_err("out of range").to_string();
                let range =
                    format!("{} is from {} to {} {}", p.name(), p.least(), p.most(), p.unit());
                assert!(error.contains("out of range") && error.contains(&range), "{error}");
            }
        }
    }
}

#[test]
fn changes_one_value_for_one_setting() {
    for a in Algorithm::all() {
        for (i, p) in a.params().enumerate() {
            let mut config = Config::new(a);
            let before = config.values().to_vec();
            let other = if p.default() < p.most() { p.most() } else { p.least() };
            config.set(&format!(" {} = {other} ", p.name())).expect("within the range");
            for (j, (was, is)) in before.iter().zip(config.values()).enumerate() {
                assert_eq!(was == is, i != j, "{a:?} {}", p.name());
            }
        }
    }
}

#[test]
fn is_found_by_its_name_with_and_without_the_prefix_of_the_kernel() {
    for a in Algorithm::all() {
        assert_eq!(Algorithm::by_name(a.name()), Ok(a));
        assert_eq!(Algorithm::by_name(&format!("nn_{}", a.name())), Ok(a));
    }
}

#[test]
fn keeps_nothing_from_one_flow_to_the_next() {
    for a in Algorithm::all() {
        let mut first = Host::new(&Config::new(a), 10);
        let fresh = first.clone();
        first.round(5, BASE);
        first.event(Event::NN_LOSS);
        let second = Host::new(&Config::new(a), 10);
        assert_eq!(second.flow.state(), fresh.flow.state(), "{a:?}");
        assert_eq!(second.flow.ctl(), fresh.flow.ctl(), "{a:?}");
    }
}

#[test]
fn recovers_from_a_timeout_on_a_clean_path() {
    for a in Algorithm::all() {
        let mut h = Host::new(&Config::new(a), 10);
        for _ in 0..20 {
            h.round(3, 3 * BASE);
            h.event(Event::NN_LOSS);
            h.event(Event::NN_TIMEOUT);
        }
        let least = h.cwnd();
        assert!(least <= packets(1), "{a:?}");
        for _ in 0..30 {
            h.round(3, BASE);
        }
        assert!(
            h.cwnd() >= packets(2).min(greatest(&Config::new(a))),
            "{a:?}: from {least} to {}",
            h.cwnd()
        );
    }
}

proptest! {
    #[test]
    fn answers_within_bounds_whatever_a_host_reports(
        a in all(),
        initial in any::<u32>(),
        steps in proptest::collection::vec(
            (0usize..20, any::<(u64, u32, u32, u32)>(), any::<(u32, u32, u32, u32)>()), 0..300),
    ) {
        let mut flow = Flow::new(&Config::new(a), &Ack::default(), initial);
        for (event, (now_us, rtt_us, srtt_us, acked), (lost, una, nxt, flags)) in steps {
            let inflight = acked;
            let ack =
                Ack { now_us, rtt_us, srtt_us, acked, lost, inflight, una, nxt, flags, mss: lost, flows: lost };
            let ctl = match EVENTS.get(event) {
                Some(event) => flow.event(*event, &ack),
                None => flow.ack(&ack),
            };
            prop_assert!((1..=CWND_MAX).contains(&ctl.cwnd_q16), "{ctl:?}");
            prop_assert!(ctl.gap_us <= GAP_MAX, "{ctl:?}");
            prop_assert!(ctl.gap_us == 0 || ctl.burst > 0, "{ctl:?}");
            prop_assert_eq!(ctl.flags & !(SLOW_START | YIELDING), 0);
        }
    }

    #[test]
    fn shrinks_on_loss_and_never_grows_before_two_packets_are_lost_or_held(
        h in used(), event in 0usize..3,
    ) {
        let before = h.cwnd().max(packets(2));
        prop_assert!(h.clone().event(EVENTS[event]) <= before);
        prop_assert!(h.clone().last_ack(5, BASE, HOLD) <= before);
        prop_assert!(h.clone().last_ack(5, BASE, APP_LIMITED) <= before);
    }

    #[test]
    fn gets_no_more_window_from_a_longer_round_trip(
        h in used(), n in 3u32..40, rtts in proptest::array::uniform2(BASE..10 * BASE),
    ) {
        // unless it shows that the buffer is larger than was known, and so the rest of it empty
        let known = h.flow.show().into_iter().find(|v| v.shown.name() == "max_rtt" && v.is_known());
        let most = known.map_or(u32::MAX, |v| v.raw.value as u32);
        let (short, long) = (rtts[0].min(rtts[1]).min(most), rtts[0].max(rtts[1]).min(most));
        // a decrease that comes earlier in the round leaves more of it to grow in: Reno's packet
        prop_assert!(h.clone().round(n, short) + ONE >= h.clone().round(n, long));
    }

    #[test]
    fn gets_no_less_window_from_more_packets_acknowledged(
        h in used(), acked in proptest::array::uniform2(0u32..1000),
    ) {
        let (few, many) = (acked[0].min(acked[1]), acked[0].max(acked[1]));
        prop_assert!(h.clone().ack(few, BASE, 0) <= h.clone().ack(many, BASE, 0));
    }

    #[test]
    fn gives_equal_states_for_equal_inputs(h in used(), n in 1u32..40, rtt in BASE..3 * BASE) {
        let (mut a, mut b) = (h.clone(), h);
        a.round(n, rtt);
        b.round(n, rtt);
        prop_assert_eq!(a.flow.state(), b.flow.state());
        prop_assert_eq!(a.flow.ctl(), b.flow.ctl());
    }

    #[test]
    fn refuses_or_takes_any_text_as_a_setting_without_panic(a in all(), text in ".*") {
        let mut config = Config::new(a);
        let before = config.clone();
        if config.set(&text).is_err() {
            prop_assert_eq!(config, before);
        }
    }

    #[test]
    fn takes_any_number_for_a_parameter_within_its_range_only(
        a in all(), number in "[-+]?[0-9]{0,20}(\\.[0-9]{0,20})?(e[-+]?[0-9]{1,4})?|nan|inf",
    ) {
        for (i, p) in a.params().enumerate() {
            let mut config = Config::new(a);
            let taken = config.set(&format!("{}={number}", p.name())).is_ok();
            let value: Option<f64> = number.parse().ok();
            let within = value.is_some_and(|v| p.least() <= v && v <= p.most());
            prop_assert_eq!(taken, within);
            if let (true, Some(v)) = (taken, value) {
                let kept = f64::from(config.values()[i]) / 65536.0;
                prop_assert!((kept - v).abs() <= 0.5 / 65536.0, "{} became {}", v, kept);
            }
        }
    }
}
