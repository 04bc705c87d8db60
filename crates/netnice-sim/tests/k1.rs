// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The two numbers that matter, in the reference setting and over 60 seeds: how much longer fetches
//! take beside background flows, and how much of the spare bandwidth these take.
//!
//! A bound holds when the whole 95 % confidence interval over the seeds is on its side. The kernel
//! then has to show only that it obeys the same algorithm (tests/duels).

use std::path::Path;
use std::sync::LazyLock;

use netnice_scenario::Scenario;
use netnice_sim::result::{summarise, Summary};
use netnice_sim::sweep::{run_all, Plan};

const SEEDS: u64 = 60;

/// Background, the most harm (mean completion time over that without background), the least share of
/// what strict priority takes. TCP Nice may cost the users a twentieth with one flow; 64 flows on a
/// bandwidth-delay product of 34 packets have half a packet each.
const BOUNDS: [(&str, f64, f64); 3] =
    [("nn_nice x1", 1.05, 0.15), ("nn_nice x16", 1.12, 0.33), ("nn_nice x64", 1.40, 0.60)];

/// K1 with these settings of the scenario: one entry for each background.
fn k1(settings: &[&str], only: &[&str]) -> Vec<Summary> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lab/scenarios/k1.toml");
    let settings: Vec<String> = settings.iter().map(ToString::to_string).collect();
    let only: Vec<String> = only.iter().map(ToString::to_string).collect();
    let scenario = Scenario::read_with(&file, &settings).unwrap();
    let plan = Plan::new(scenario, &only, (1..=SEEDS).collect()).unwrap();
    summarise(&run_all(&[plan], None, &|_| ()).unwrap()[0])
}

fn of<'a>(rows: &'a [Summary], background: &str) -> &'a Summary {
    rows.iter().find(|row| row.background == background).unwrap()
}

/// Upper end of the interval of the harm, and lower end of that of the share.
fn worst(row: &Summary) -> (f64, f64) {
    println!("{}: harm {:?}, share {:?}", row.background, row.fct_ratio_mean, row.share);
    (row.fct_ratio_mean.hi.unwrap(), row.share.lo.unwrap())
}

/// K1 as it is, simulated once for all tests.
static AS_IT_IS: LazyLock<Vec<Summary>> =
    LazyLock::new(|| k1(&[], &["nn_nice x1", "nn_nice x16", "nn_nice x64", "cubic x16"]));

#[test]
fn nice_leaves_the_users_alone_and_takes_a_share_of_what_is_left() {
    for (background, most_harm, least_share) in BOUNDS {
        let (harm, share) = worst(of(&AS_IT_IS, background));
        assert!(harm <= most_harm, "{background}: harm {harm} > {most_harm}");
        assert!(share >= least_share, "{background}: share {share} < {least_share}");
    }
}

#[test]
fn cubic_in_the_background_would_harm_the_users_many_times_more() {
    // 16 CUBIC flows keep the 50 packets of the queue full: 76 ms more for each of the round trips
    // of a fetch that takes about 170 ms alone, and losses. Without that the setting shows nothing.
    let cubic = of(&AS_IT_IS, "cubic x16").fct_ratio_mean.lo.unwrap();
    assert!(cubic > 3.0, "{cubic}");
}

#[test]
fn a_nice_that_takes_no_queue_for_congestion_would_harm_more_than_the_bounds_allow() {
    // no packet is delayed beyond the whole buffer, so that the window yields to losses alone
    let names = BOUNDS.map(|(name, ..)| name);
    let rows = k1(&["background[1].set.threshold=1", "background[2].set.threshold=1"], &names[..2]);
    for (background, most_harm, _) in &BOUNDS[..2] {
        let harm = of(&rows, background).fct_ratio_mean.lo.unwrap();
        assert!(harm > *most_harm, "{background}: harm {harm}");
    }
}

#[test]
fn a_nice_whose_single_flow_gives_up_while_others_send_would_take_less_than_the_bound() {
    // the flows of a host keep no window in congestion that lasts, as in the paper
    let rows = k1(&["background[1].set.together=0"], &["nn_nice x1"]);
    let share = of(&rows, "nn_nice x1").share.hi.unwrap();
    assert!(share < BOUNDS[0].2, "{share}");
}
