// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Compiles core/ for user space, one template per line of algorithms.def, and
//! reads its types out of the headers.

use std::{env, fs, path::PathBuf};

fn main() {
    let core = PathBuf::from("../../core");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    println!("cargo::rerun-if-changed={}", core.display());

    let list = fs::read_to_string(core.join("algorithms.def")).expect("core/algorithms.def");
    let names = list.lines().filter_map(|l| l.strip_prefix("NN_ALGORITHM(")?.strip_suffix(')'));
    let mut archive = cc::Build::new();
    for name in names {
        // all with the same source: an object of its own for each
        let objects = flags(&mut cc::Build::new())
            .define("NN_ALG", name)
            .file(core.join("user.c"))
            .out_dir(out.join(name))
            .compile_intermediates();
        archive.objects(objects);
    }
    flags(&mut archive).file(core.join("table.c")).compile("netnice_core");

    bindgen::Builder::default()
        .header(core.join("user.h").to_string_lossy())
        .header(core.join("trace.h").to_string_lossy())
        .header(core.join("measure/avail.h").to_string_lossy())
        .header(core.join("host/path.h").to_string_lossy())
        .header(core.join("host/line.h").to_string_lossy())
        .header(core.join("host/down_datagram.h").to_string_lossy())
        .allowlist_item("(nn|NN)_.*")
        .default_enum_style(bindgen::EnumVariation::Rust { non_exhaustive: false })
        .derive_default(true)
        .derive_eq(true)
        .no_partialeq("nn_(algorithm|class)")
        .use_core()
        .generate()
        .expect(
            "bindgen could not read core/user.h; is libclang installed (apt install libclang-dev)?",
        )
        .write_to_file(out.join("sys.rs"))
        .expect("OUT_DIR is writable");
}

fn flags(build: &mut cc::Build) -> &mut cc::Build {
    build
        .std("c11")
        .warnings(true)
        .extra_warnings(true)
        .flag("-Wno-unused-parameter")
        .flag("-Wconversion")
        .opt_level(2)
}
