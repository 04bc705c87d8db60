// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Compiles bpf/ with clang, the templates once per algorithm, and reads the
//! types shared with user space out of the headers.

use std::io::Write as _;
use std::{env, fmt::Write, fs, path::Path, path::PathBuf, process::Command, sync::Mutex, thread};

/// A source, its object, and flags for it alone.
type Job = (PathBuf, PathBuf, Vec<String>);

fn main() {
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR"));
    let bpf = Path::new("../../bpf");
    println!("cargo::rerun-if-changed=../../bpf");
    println!("cargo::rerun-if-changed=../../core");

    let mut table = String::new();
    let mut jobs: Vec<Job> = Vec::new();
    for (template, constant, flag) in [
        ("cc", "CONTROLS", None),
        ("cc", "GROUPED", Some("-DNN_IN_GROUPS")),
        ("replay", "REPLAYS", None),
    ] {
        writeln!(table, "pub static {constant}: &[(&str, &[u8])] = &[").expect("a String");
        let all = netnice_core::Algorithm::all().filter(|a| flag.is_none() || a.grouped());
        for name in all.map(|a| a.name()) {
            let object = out.join(format!("{constant}_{name}.bpf.o"));
            let flags: Vec<_> =
                [format!("-DNN_ALG={name}")].into_iter().chain(flag.map(Into::into)).collect();
            writeln!(table, "({name:?}, include_bytes!({object:?})),").expect("a String");
            jobs.push((bpf.join(format!("{template}.bpf.c")), object, flags));
        }
        writeln!(table, "];").expect("a String");
    }
    for (source, constant) in [
        ("run", "RUN"),
        ("select", "SELECT"),
        ("left", "LEFT"),
        ("status", "STATUS"),
        ("share", "SHARE"),
        ("hold", "HOLD"),
    ] {
        let object = out.join(format!("{source}.bpf.o"));
        writeln!(table, "pub static {constant}: &[u8] = include_bytes!({object:?});")
            .expect("a String");
        jobs.push((bpf.join(format!("{source}.bpf.c")), object, Vec::new()));
    }
    {
        // what yields to other hosts is the algorithm of the first class
        let name = netnice_core::Class::default().algorithm().name();
        let object = out.join("down.bpf.o");
        writeln!(table, "pub static DOWN: &[u8] = include_bytes!({object:?});").expect("a String");
        jobs.push((bpf.join("down.bpf.c"), object, vec![format!("-DNN_ALG={name}")]));
    }
    let hash = hash(&[bpf, Path::new("../../core")]);
    writeln!(table, "/// Of what the programs are made of.\npub const BUILD: u64 = {hash:#x};")
        .expect("a String");
    if linted() {
        for (_, object, _) in jobs {
            fs::write(object, []).expect("OUT_DIR is writable");
        }
    } else {
        compile_all(jobs);
    }
    fs::write(out.join("objects.rs"), table).expect("OUT_DIR is writable");

    bindgen::Builder::default()
        .header(bpf.join("group.h").to_string_lossy())
        .header(bpf.join("down.h").to_string_lossy())
        .header(bpf.join("select.h").to_string_lossy())
        .allowlist_type(
            "nn_(settings|peer|left_out|flow|totals|run|watched|change|record|directory|slot|plain|only|hold|hop|down_hop)",
        )
        .allowlist_var("NN_(GROUP_NAME|PEERS|RUN_PREFIX|HOPS|ONE|PATH_S|PATH_SLACK|PATH_SLACK_NS)")
        .derive_default(true)
        .generate_cstr(true)
        .use_core()
        .generate()
        .expect(
            "bindgen could not read bpf/group.h; is libclang installed (apt install libclang-dev)?",
        )
        .write_to_file(out.join("sys.rs"))
        .expect("OUT_DIR is writable");
}

/// The sum (FNV-1a) of all sources in these directories: builds that have the same one keep the same
/// data, and their parameters have the same places.
fn hash(dirs: &[&Path]) -> u64 {
    let mut files = Vec::new();
    let mut dirs: Vec<PathBuf> = dirs.iter().map(|dir| dir.to_path_buf()).collect();
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).expect("a directory of sources").flatten() {
            let path = entry.path();
            match path.extension().and_then(|e| e.to_str()) {
                _ if path.is_dir() => dirs.push(path),
                Some("h" | "c" | "def") => files.push(path),
                _ => {}
            }
        }
    }
    files.sort();
    let bytes = files.iter().flat_map(|file| fs::read(file).expect("a source that is readable"));
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// Whether this is for `cargo clippy`, which has an `OUT_DIR` of its own and runs no program: to
/// compile them once more takes longer than all lints.
fn linted() -> bool {
    println!("cargo::rerun-if-env-changed=RUSTC_WORKSPACE_WRAPPER");
    let wrapper = env::var_os("RUSTC_WORKSPACE_WRAPPER").map(PathBuf::from);
    wrapper.is_some_and(|path| path.file_stem().is_some_and(|name| name == "clippy-driver"))
}

/// Compiles as many at a time as there are cores: everything else waits for this.
fn compile_all(jobs: Vec<Job>) {
    let cores = thread::available_parallelism().map_or(1, |n| n.get());
    let jobs = Mutex::new(jobs);
    let next = || jobs.lock().ok()?.pop();
    thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some((source, object, flags)) = next() {
                    compile(&source, &object, &flags);
                }
            });
        }
    });
}

fn compile(source: &Path, object: &Path, extra: &[String]) {
    // Debian and Ubuntu keep asm/types.h in a directory per architecture
    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it");
    let bpf_arch = match arch.as_str() {
        "x86_64" => "x86",
        "aarch64" => "arm64",
        other => other,
    };
    let status = Command::new("clang")
        .args(
            "-std=gnu11 -O2 -g -Wall -Wextra -Wno-unused-parameter -Werror -target bpf -mcpu=v3"
                .split(' '),
        )
        .arg(format!("-D__TARGET_ARCH_{bpf_arch}"))
        .arg("-fdebug-compilation-dir=.") // BTF names sources, and is part of what is installed
        .args(["-idirafter", &format!("/usr/include/{arch}-linux-gnu")])
        .args(extra)
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(object)
        .status()
        .expect("clang compiles the programs for the kernel; apt install clang libbpf-dev");
    assert!(status.success(), "clang could not compile {}", source.display());
    strip(object);
    deflate(object);
}

/// Compresses an object: `objects::open` inflates it.
fn deflate(object: &Path) {
    let bytes = fs::read(object).expect("llvm-objcopy wrote it");
    let mut deflated = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    deflated.write_all(&bytes).expect("a Vec takes all");
    fs::write(object, deflated.finish().expect("a Vec takes all")).expect("OUT_DIR is writable");
}

/// Removes what only a debugger reads, two thirds of an object: the kernel and libbpf read BTF, which
/// has its numbers in place.
fn strip(object: &Path) {
    let status = Command::new("llvm-objcopy")
        .args("--strip-debug -R .rel.BTF -R .rel.BTF.ext --wildcard --strip-symbol=LBB*".split(' '))
        .arg(object)
        .status()
        .expect("llvm-objcopy strips the programs for the kernel; apt install llvm");
    assert!(status.success(), "llvm-objcopy could not strip {}", object.display());
}
