//! How far the run is: a bar on a terminal, a few plain lines elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Plain lines come at each of so many parts.
const PARTS: usize = 4;

#[derive(Debug)]
pub(crate) enum Progress {
    Bar(ProgressBar),
    Lines { total: usize, parts_told: usize },
}

impl Progress {
    pub(crate) fn new(total: usize) -> Self {
        if !std::io::stderr().is_terminal() {
            return Self::Lines {
                total,
                parts_told: 0,
            };
        }
        let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
        let template = "{bar:40} {pos}/{len} booked, {msg}, {elapsed}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(100));
        Self::Bar(bar)
    }

    pub(crate) fn tell(&mut self, booked: usize, deliveries: u64, crashes: u64) {
        let state = format!("{deliveries} deliveries, {crashes} kills");
        match self {
            Self::Bar(bar) => {
                bar.set_position(booked as u64);
                bar.set_message(state);
            }
            Self::Lines { total, parts_told } => {
                let parts = (booked * PARTS / *total).min(PARTS);
                if parts > *parts_told {
                    *parts_told = parts;
                    eprintln!("{booked} of {total} booked, {state}");
                }
            }
        }
    }

    pub(crate) fn finish(&self) {
        match self {
            Self::Bar(bar) => bar.finish_and_clear(),
            Self::Lines { .. } => {}
        }
    }
}
