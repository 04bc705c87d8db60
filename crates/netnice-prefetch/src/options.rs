// SPDX-License-Identifier: MIT OR GPL-2.0-only
//! Options that several subcommands have.

use std::path::PathBuf;

use clap::Args;
use netnice_prefetch::config;
use netnice_prefetch::predict::Settings;

/// What the predictor is told on the command line.
#[derive(Args)]
pub struct Learning {
    /// Predict from this many of a client's last pages at most, 1 to 4.
    #[arg(short, value_name = "PAGES", default_value_t = Settings::default().n)]
    n: usize,
    /// Predict what the client requests within this many pages, 1 to 64.
    #[arg(short, value_name = "PAGES", default_value_t = Settings::default().w)]
    w: usize,
    /// Most memory for the model, in MB; what is rare or old is forgotten first.
    #[arg(long, value_name = "MB", default_value_t = (Settings::default().memory_bytes >> 20) as u32,
          value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    memory: u32,
}

impl Learning {
    /// As the predictor takes it, or what is out of range.
    pub fn settings(&self) -> Result<Settings, config::Error> {
        let settings = Settings {
            n: self.n,
            w: self.w,
            memory_bytes: (self.memory as usize) << 20,
            ..Settings::default()
        };
        settings.check().map(|()| settings).map_err(config::Error::option)
    }
}

/// Where the model is kept.
#[derive(Args)]
pub struct Kept {
    /// The file of the model.
    #[arg(long, value_name = "FILE", default_value = "netnice-prefetch.model")]
    pub model: PathBuf,
}
