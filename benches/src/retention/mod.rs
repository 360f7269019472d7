//! What many kept keys cost, and what it costs to forget them: claims per second and the log that a claim
//! writes at growing sizes of both tables, and claims beside a prune.

mod claims;
mod figures;
mod filled;
mod prune;

pub(crate) use figures::Figures;

use std::time::Duration;

use lambda_inbox_store::Layout;

use crate::error::BenchError;
use filled::Filled;

/// On the command line.
pub(crate) const NAME: &str = "retention";

const SMALL: [u64; 2] = [0, 1_000_000];
const LARGE: [u64; 3] = [0, 1_000_000, 10_000_000];

/// Measures at up to a million rows; with `large`, at ten million too, which takes minutes to fill.
pub(crate) async fn measure(large: bool, window: Duration) -> Result<Figures, BenchError> {
    let sizes: &[u64] = if large { &LARGE } else { &SMALL };
    let mut server = Filled::open().await?;
    let mut figures = Figures::default();
    for layout in [Layout::Keyed, Layout::TimeOrdered] {
        for rows in sizes {
            eprintln!("{}, {rows} rows ...", figures::name(layout));
            server.fill(layout, *rows).await?;
            let claims = claims::measure(&mut server, layout, window).await?;
            figures.claims.push((layout, *rows, claims));
        }
    }
    eprintln!("pruning a million rows ...");
    figures.by_delete = Some(prune::by_delete(&mut server).await?);
    figures.by_partition = Some(prune::by_partition(&mut server).await?);
    Ok(figures)
}
