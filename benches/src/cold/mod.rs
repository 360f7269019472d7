//! What the toolkit costs a function before it has done anything: time until it asks for an event and until
//! its first commit, bytes to upload and to load, memory. Next to the same function written by hand, built
//! and started in the same run: the milliseconds are this machine's, the ratios hardly are.

mod archive;
mod bank;
mod build;
mod figures;
mod memory;
mod metric;
mod start;

pub(crate) use build::{Built, build};
pub(crate) use figures::Figures;

use crate::error::BenchError;
use bank::Bank;
use figures::Function;
use metric::Metric;

/// On the command line.
pub(crate) const NAME: &str = "cold";

/// Of each function, and of each kind.
const STARTS: usize = 50;

/// A server without encryption and without a disk to wait for: both would be the same for all functions, and
/// hide what differs.
///
/// In each round every function starts, another one first each time: the server may still be busy with what
/// the one before has left. The first round is not counted, as the files are not in memory yet.
pub(crate) async fn measure(built: &[Built]) -> Result<Figures, BenchError> {
    let mut bank = Bank::open().await?;
    let mut functions: Vec<Function> = built.iter().map(Function::of).collect();
    eprintln!("starting each function {} times ...", 2 * (STARTS + 1));
    for round in 0..=STARTS {
        let places = (0..built.len()).cycle().skip(round).take(built.len());
        for place in places {
            let (Some(program), Some(function)) = (built.get(place), functions.get_mut(place))
            else {
                continue;
            };
            let samples = start::samples(program, &mut bank).await?;
            if round > 0 {
                function.extend(samples);
            }
        }
    }
    for (program, function) in built.iter().zip(&mut functions) {
        eprintln!("{}, {} messages ...", program.name, start::MESSAGES);
        let memory = start::memory_after_messages(program, &mut bank).await?;
        function.extend(memory.map(|bytes| (Metric::MemoryAfter10000, bytes)));
    }
    bank.expect_all().await?;
    Ok(Figures { functions })
}
