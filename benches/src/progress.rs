//! How far the run is: a bar on a terminal, a line for each round elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

pub(crate) enum Progress {
    Bar(ProgressBar),
    Lines,
}

impl Progress {
    pub(crate) fn new(steps: usize) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self::Lines;
        }
        let bar = ProgressBar::with_draw_target(Some(steps as u64), ProgressDrawTarget::stderr());
        let template = "{bar:24} {percent:>3} %, {elapsed}, {prefix}: {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(250));
        Self::Bar(bar)
    }

    /// A part of the run begins.
    pub(crate) fn phase(&self, name: &str) {
        match self {
            Self::Bar(bar) => bar.set_prefix(name.to_owned()),
            Self::Lines => eprintln!("{name} ..."),
        }
    }

    /// The next step begins.
    pub(crate) fn step(&mut self, name: &'static str) {
        match self {
            Self::Bar(bar) => {
                bar.inc(1);
                bar.set_message(name);
            }
            Self::Lines => {}
        }
    }

    pub(crate) fn finish(&self) {
        match self {
            Self::Bar(bar) => bar.finish_and_clear(),
            Self::Lines => {}
        }
    }
}
