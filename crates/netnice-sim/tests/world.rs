// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Whole runs whose figures can be derived by hand.

use netnice_scenario::Scenario;
use netnice_sim::outcome::Outcome;

/// Runs a scenario's variant of that name with seed 1.
fn run(text: &str, variant: &str) -> Outcome {
    let scenario = Scenario::parse(text, "t.toml").unwrap();
    let variants = scenario.variants();
    let variant = variants.iter().find(|v| v.name == variant).unwrap();
    netnice_sim::run(&scenario, variant, 1, None, None).unwrap()
}

/// Fetches of one size, one after the other with rests between them, over 8 Mbit/s and 50 ms.
fn fetches(profile: &str, bytes: u32) -> Vec<f64> {
    let text = format!(
        "name = \"t\"\nprofile = \"{profile}\"\nwarmup_s = 0\n[bottleneck]\nrate_mbit = 8\n\
         rtt_ms = 50\nlimit_packets = 50\n[foreground]\narrivals = \"periodic\"\n\
         mean_bytes = {bytes}\nload = {}\n",
        f64::from(bytes) / 4e6 // every four seconds
    );
    run(&text, "none").fetches.iter().map(|f| f.fct_s.unwrap()).collect()
}

fn all_near(times: &[f64], expected_s: f64) -> bool {
    !times.is_empty() && times.iter().all(|t| (t - expected_s).abs() < 2e-6)
}

#[test]
fn a_fetch_of_one_packet_takes_its_transmission_or_two_round_trips() {
    // ns2: no handshake; 1024 + 40 bytes at 1 byte/us, and no way there
    assert!(all_near(&fetches("ns2", 1024), 0.001064));
    // Linux: SYN and request come over 50 ms each; the token bucket holds two packets
    let times = fetches("linux", 1448);
    assert!(all_near(&times, 0.1), "{times:?}");
}

#[test]
fn a_fetch_of_ten_packets_is_one_burst_and_the_eleventh_waits_for_an_ack() {
    // At 100 ms the server acknowledges the request with 66 bytes, and sends ten packets of 1514.
    // The bucket holds two full packets: the last leaves once it has filled by what exceeds
    // that: (66 + 10 x 1514 - 2 x 1514) us.
    let expected = 0.1 + 12.178e-3;
    let times = fetches("linux", 14_480);
    assert!(all_near(&times, expected), "{times:?}");
    // With one byte more the last packet leaves at the first ACK: 50 ms after the first burst began.
    let times = fetches("linux", 14_481);
    assert!(all_near(&times, 0.15), "{times:?}");
}

#[test]
fn slow_start_doubles_the_window_of_the_papers() {
    // Seven packets of 1064 bytes: windows of 2 and 4 leave one. The first ACK of the second window
    // comes after two round trips, each of 50 ms and the packet's own 1.064 ms; then the last
    // packet takes 1.064 ms.
    let times = fetches("ns2", 7 * 1024);
    assert!(all_near(&times, 2.0 * 0.051064 + 0.001064), "{times:?}");
}

const CHAIN: &str = "name = \"t\"\nprofile = \"ns2\"\nwarmup_s = 1\nmeasure_s = 10\ndrain_s = 1\n\
    [[link]]\nname = \"ab\"\nfrom = \"a\"\nto = \"b\"\nrate_mbit = 8\ndelay_ms = 10\n\
    limit_packets = 50\nduplex = true\n\
    [[link]]\nname = \"bc\"\nfrom = \"b\"\nto = \"c\"\nrate_mbit = 4\ndelay_ms = 20\n\
    limit_packets = 50\nduplex = true\n";

#[test]
fn a_packet_waits_and_travels_on_every_link_of_its_path() {
    let text = format!(
        "{CHAIN}[[cross]]\nname = \"u\"\nkind = \"cbr\"\nrate_mbit = 1\npacket_bytes = 1000\n\
         from = \"a\"\nto = \"c\"\n"
    );
    let outcome = run(&text, "none");
    // There: 1 ms + 10 ms + 2 ms + 20 ms; back, as if the path were empty: 30 ms.
    let packets = &outcome.cross[0];
    assert!(packets.rtt_us.iter().all(|rtt| *rtt == 63_000), "{:?}", &packets.rtt_us[..3]);
    // 125 packets/s for 10 s
    assert_eq!((packets.sent, packets.lost), (1250, 0));
}

#[test]
fn a_fetch_crosses_the_links_of_the_hosts_that_it_is_between() {
    let text = format!(
        "{CHAIN}[[hosts]]\nname = \"servers\"\nat = \"a\"\ncount = 2\nrate_mbit = [1, 2]\n\
         delay_ms = [1, 9]\n[[hosts]]\nname = \"clients\"\nat = \"c\"\ncount = 3\n\
         rate_mbit = [5, 9]\ndelay_ms = [10, 90]\n[foreground]\narrivals = \"periodic\"\n\
         mean_bytes = 1024\nload = 0.01\nfrom = \"servers\"\nto = \"clients\"\n"
    );
    let scenario = Scenario::parse(&text, "t.toml").unwrap();
    let network = scenario.network();
    // One packet of 1064 bytes, which is 8.512 / Mbit/s ms on each of four links.
    let expected: Vec<f64> = scenario
        .paths(None, None)
        .unwrap()
        .into_iter()
        .map(|[there, _]| {
            let links = there.into_iter().map(|link| &network[link]);
            links.map(|l| l.delay_ms * 1e-3 + 8.512e-3 / l.rate_mbit.unwrap()).sum()
        })
        .collect();
    assert_eq!(expected.len(), 6);
    let mut seen = [0; 6];
    for fetch in &run(&text, "none").fetches {
        let near = |s: &f64| (fetch.fct_s.unwrap() - s).abs() < 2e-6;
        seen[expected.iter().position(near).expect("a pair of hosts")] += 1;
    }
    // 4 Mbit/s x 0.01 / 8192 bits are 4.9 fetches/s for 11 s; an even draw has about 9 of each
    assert_eq!(seen.iter().sum::<i32>(), 54);
    assert!(seen.iter().all(|&n| n >= 2), "{seen:?}");
}

#[test]
fn flows_of_the_background_are_from_hosts_that_are_drawn() {
    let text = format!(
        "{CHAIN}[[hosts]]\nname = \"servers\"\nat = \"a\"\ncount = 2\nrate_mbit = [0.1, 0.1]\n\
         delay_ms = [1, 9]\n[[background]]\nname = \"x\"\ncontrol = \"reno\"\nflows = 12\n\
         window_packets = 1\nfrom = \"servers\"\nto = \"c\"\n"
    );
    // Their own links carry 0.1 Mbit/s each: both are full, and no other limit is near.
    let flows = run(&text, "x").background;
    let mbit: f64 = flows.iter().map(|bulk| bulk.window_bytes as f64 * 8e-7).sum();
    assert!((mbit - 0.2 * 1024.0 / 1064.0).abs() < 0.005, "{mbit}");
}

/// Fetches of 20 packets, one after the other so many seconds later, over connections that are kept.
fn kept_fetches(seconds: f64) -> Vec<f64> {
    let text = format!(
        "name = \"t\"\nwarmup_s = 0\n[bottleneck]\nrate_mbit = 8\nrtt_ms = 50\n\
         limit_packets = 50\n[foreground]\narrivals = \"periodic\"\nkeep_alive = true\n\
         mean_bytes = 28960\nload = {}\n",
        28_960.0 / 1e6 / seconds
    );
    run(&text, "none").fetches.iter().map(|f| f.fct_s.unwrap()).collect()
}

#[test]
fn a_connection_that_is_kept_saves_a_fetch_the_handshake_and_soon_the_slow_start() {
    // The request comes after 50 ms, and a window of ten leaves; after 50 ms more its ACKs bring the
    // other ten. The bucket holds two of them, the rest is 1.514 ms each.
    let times = kept_fetches(4.0);
    assert!((times[0] - times[1] - 0.05).abs() < 2e-6, "the handshake: {times:?}");
    // After four seconds of rest its window is the initial one again.
    assert!(all_near(&times[1..], 0.1 + 8.0 * 1.514e-3), "{times:?}");
    // A rest that is shorter than a timeout, an RTT and 200 ms, leaves it as it was: all leave at once.
    let times = kept_fetches(0.3);
    assert!(all_near(&times[2..], 0.05 + 18.0 * 1.514e-3), "{times:?}");
}

#[test]
fn two_flows_that_cross_different_links_share_the_one_in_common() {
    let text = format!(
        "{CHAIN}[[cross]]\nname = \"long\"\nkind = \"cbr\"\nrate_mbit = 3\nfrom = \"a\"\nto = \"c\"\n\
         [[cross]]\nname = \"short\"\nkind = \"cbr\"\nrate_mbit = 2\nfrom = \"b\"\nto = \"c\"\n"
    );
    let cross = run(&text, "none").cross;
    let mbit: Vec<f64> = cross.iter().map(|p| p.window_bytes as f64 * 8e-7).collect();
    // 5 Mbit/s are offered to 4
    assert!((mbit.iter().sum::<f64>() - 4.0).abs() < 0.02, "{mbit:?}");
    assert!(mbit[0] < 3.0 && mbit[1] < 2.0, "{mbit:?}");
}

#[test]
fn a_route_change_is_felt_at_once() {
    let text = "name = \"t\"\nprofile = \"ns2\"\nwarmup_s = 0\nmeasure_s = 10\ndrain_s = 1\n\
        [bottleneck]\nrate_mbit = 8\nrtt_ms = 20\nlimit_packets = 50\n\
        [[bottleneck.change]]\nat_s = 5\nrtt_ms = 80\n\
        [foreground]\nload = 0\nprobe_interval_ms = 100\n";
    let probes: Vec<u64> =
        run(text, "none").probes.iter().map(|p| p.unwrap() / 1_000_000).collect();
    assert_eq!(probes.len(), 100);
    assert!(probes[..50].iter().all(|ms| *ms == 20) && probes[51..].iter().all(|ms| *ms == 80));
}

#[test]
fn on_off_sources_send_half_of_the_time() {
    let text = "name = \"t\"\nprofile = \"ns2\"\nwarmup_s = 10\nmeasure_s = 2000\ndrain_s = 1\n\
        [bottleneck]\nrate_mbit = 100\nrtt_ms = 20\nlimit_packets = 500\n\
        [[cross]]\nname = \"u\"\nkind = \"onoff\"\nrate_mbit = 1\nflows = 20\nshape = 2.5\n";
    let bytes = run(text, "none").cross[0].window_bytes;
    let mbit = bytes as f64 * 8e-6 / 2000.0;
    // 20 x 1 Mbit/s x 250 ms / (250 + 250) ms
    assert!((mbit - 10.0).abs() < 0.3, "{mbit}");
}

#[test]
fn a_poisson_source_sends_at_its_rate_and_its_packets_wait_as_in_an_m_d_1_queue() {
    let text = "name = \"t\"\nprofile = \"ns2\"\nwarmup_s = 10\nmeasure_s = 2000\ndrain_s = 1\n\
        [bottleneck]\nrate_mbit = 8\nrtt_ms = 20\nlimit_packets = 500\n\
        [[cross]]\nname = \"u\"\nkind = \"poisson\"\nrate_mbit = 4\npacket_bytes = 1000\n";
    let packets = &run(text, "none").cross[0];
    let mbit = packets.window_bytes as f64 * 8e-6 / 2000.0;
    assert!((mbit - 4.0).abs() < 0.04, "{mbit}");
    // Pollaczek and Khinchin: at a load of 1/2 a packet of 1 ms waits 1/2 / (2 (1 - 1/2)) ms
    let mean =
        packets.rtt_us.iter().map(|rtt| f64::from(*rtt)).sum::<f64>() / packets.rtt_us.len() as f64;
    assert!((mean - 21_500.0).abs() < 20.0, "{mean}");
}

#[test]
fn a_background_that_stops_sends_nothing_more() {
    let text = "name = \"t\"\nwarmup_s = 0\nmeasure_s = 20\ndrain_s = 1\n[bottleneck]\nrate_mbit = 8\n\
        rtt_ms = 20\nlimit_packets = 50\n[[background]]\nname = \"x\"\ncontrol = \"reno\"\nstop_s = 10\n";
    let mbit = run(text, "x").background[0].window_bytes as f64 * 8e-6 / 20.0;
    // ten seconds of twenty, at 1448 of 1514 bytes of 8 Mbit/s
    assert!((3.7..3.9).contains(&mbit), "{mbit}");
}
