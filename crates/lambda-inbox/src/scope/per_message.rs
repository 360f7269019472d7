//! A transaction for each message: up to *k* workers take lanes from a queue until it is empty or the
//! time is up.

use super::Run;
use super::link::NoConnection;
use super::per_batch::try_as_one;
use super::worker::Worker;
use crate::batch::Batch;
use crate::body::Decode;
use crate::handler::Handler;
use crate::inbox::Scope;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use std::marker::PhantomData;

pub(crate) struct PerMessage<D, H> {
    handler: H,
    decode: PhantomData<fn() -> D>,
}

impl<D, H> PerMessage<D, H> {
    pub(crate) fn new(handler: H) -> Self {
        Self {
            handler,
            decode: PhantomData,
        }
    }
}

impl<D: Decode, H: Handler<D::Body>> PerMessage<D, H> {
    async fn run_lanes(&self, batch: &Batch<'_>) -> Result<(), NoConnection> {
        if batch.settings.scope == Scope::PerBatch {
            try_as_one::<D, H>(&self.handler, batch).await?;
        }
        let links = batch.links(usize::MAX).await;
        // Not `join_all`, which polls every worker whenever one of them can go on.
        let mut workers: FuturesUnordered<_> = links
            .into_iter()
            .enumerate()
            .map(|(index, link)| Worker::<D, H>::new(batch, &self.handler, link).run(index == 0))
            .collect();
        let mut lost = Ok(());
        while let Some(ended) = workers.next().await {
            lost = lost.and(ended);
        }
        lost
    }
}

impl<D: Decode, H: Handler<D::Body>> Run for PerMessage<D, H> {
    fn run<'a>(&'a self, batch: &'a Batch<'a>) -> BoxFuture<'a, Result<(), NoConnection>> {
        self.run_lanes(batch).boxed()
    }

    fn keeps_order(&self) -> bool {
        true
    }
}
