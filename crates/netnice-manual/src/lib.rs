// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Man pages and completions of a program, from the definition that its --help is made of.

#![forbid(unsafe_code)]

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_complete::aot::{generate_to, Shell};
use clap_mangen::roff::{roman, Roff};
use clap_mangen::Man;

/// Where shells look for completions, below a prefix as /usr.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "share/bash-completion/completions"),
    (Shell::Zsh, "share/zsh/site-functions"),
    (Shell::Fish, "share/fish/vendor_completions.d"),
];
const PAGES: &str = "share/man/man1";

/// Where to write them.
#[derive(Args)]
pub struct ManualArgs {
    /// The directory below which they are written, each to its place below /usr
    #[arg(value_name = "DIR")]
    prefix: PathBuf,
}

/// Writes the man pages of a program and of its subcommands, and its completions.
///
/// # Errors
/// When there is no directory to write to, or the system refuses.
pub fn write(program: Command, args: &ManualArgs) -> io::Result<()> {
    let named = |error: io::Error| {
        let dir = args.prefix.display();
        io::Error::new(error.kind(), format!("cannot write below {dir}: {error}"))
    };
    write_all(program, args).map_err(named)
}

fn write_all(program: Command, args: &ManualArgs) -> io::Result<()> {
    let mut program = program.disable_help_subcommand(true);
    program.build();
    let name = program.get_name().to_string();
    for (shell, dir) in COMPLETIONS {
        let dir = args.prefix.join(dir);
        fs::create_dir_all(&dir)?;
        let file = generate_to(shell, &mut program.clone(), &name, &dir)?;
        if shell == Shell::Bash {
            fs::rename(file, dir.join(&name))?; // it is loaded by the name of the program
        }
    }
    let pages = args.prefix.join(PAGES);
    fs::create_dir_all(&pages)?;
    page(program, &pages)
}

/// Writes the page of a command, and those of what is below it.
fn page(command: Command, dir: &Path) -> io::Result<()> {
    for below in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        page(below.clone(), dir)?;
    }
    let mut more = Vec::new();
    for text in [command.get_before_help(), command.get_after_help()].into_iter().flatten() {
        section(&text.to_string()).to_writer(&mut more)?;
    }
    let has_commands = command.get_subcommands().any(|c| !c.is_hide_set());
    let man = Man::new(command);
    let mut file = File::create(dir.join(man.get_filename()))?;
    man.render_title(&mut file)?;
    man.render_name_section(&mut file)?;
    man.render_synopsis_section(&mut file)?;
    man.render_description_section(&mut file)?;
    man.render_options_section(&mut file)?;
    if has_commands {
        man.render_subcommands_section(&mut file)?;
    }
    file.write_all(&more)
}

/// A section of what stands before or after the help: its heading ends at the first colon.
fn section(text: &str) -> Roff {
    let (heading, body) = text.split_once(':').unwrap_or(("Notes", text));
    let mut section = Roff::default();
    section.control("SH", [heading.to_uppercase().as_str()]);
    section.control("nf", []); // a line of an example stays one
    for line in body.trim_start_matches('\n').lines() {
        section.text([roman(line)]);
    }
    section.control("fi", []);
    section
}
