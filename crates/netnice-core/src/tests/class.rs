// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! The classes of core/classes.def.

use crate::{Algorithm, Class};

#[test]
fn every_class_is_found_by_its_name_and_has_an_algorithm_of_the_list() {
    for class in Class::all() {
        assert_eq!(class.name().parse(), Ok(class));
        assert!(Algorithm::all().any(|a| a == class.algorithm()), "{class}");
        assert!(class.dscp() < 64 && !class.summary().is_empty(), "{class}");
    }
}

#[test]
fn classes_have_names_of_their_own_and_the_first_is_the_default() {
    let names: Vec<_> = Class::all().map(|c| c.name()).collect();
    for (i, name) in names.iter().enumerate() {
        assert!(!names[..i].contains(name), "{name} is there twice");
    }
    assert_eq!(Class::default().name(), names[0]);
}

#[test]
fn another_name_is_answered_with_those_there_are() {
    let error = "idel".parse::<Class>().unwrap_err().to_string();
    assert!(Class::all().all(|c| error.contains(c.name())), "{error}");
}

#[test]
fn the_first_class_has_groups_and_what_is_set_for_one_connection_can_be_set_there() {
    let grouped = Class::default().algorithm_of_groups();
    assert!(grouped.grouped());
    let names = |a: Algorithm| a.params().map(|p| p.name()).collect::<Vec<_>>();
    let alone = names(Class::default().algorithm());
    assert_eq!(alone, names(grouped)[..alone.len()]);
}

#[test]
fn the_algorithm_that_measures_is_of_the_list() {
    assert!(Algorithm::all().any(|a| a == Algorithm::that_measures()));
}
