//! One connection's place in an invocation: where it comes from, and what is done when it is lost.

use crate::batch::Batch;
use crate::error::store_chain;
use lambda_inbox_store::{Claim, Class, Connection, RolledBack, Slot, StoreError, Withdrawal};
use std::time::{Duration, Instant};

/// A second try after less than this keeps both together near the five seconds of one.
const AGAIN_WITHIN: Duration = Duration::from_secs(1);

pub(crate) struct Link<'a> {
    batch: &'a Batch<'a>,
    slot: Slot,
    connection: Option<Connection>,
}

/// There is no connection, and none could be had; the text says why.
pub(crate) struct NoConnection(pub(crate) String);

impl<'a> Link<'a> {
    pub(crate) fn new(batch: &'a Batch<'a>, slot: Slot) -> Self {
        Self {
            batch,
            slot,
            connection: None,
        }
    }

    /// Makes sure that there is a connection before any record is taken. The `first` link of an
    /// invocation is the one that must have it; the others are a help where they get one.
    ///
    /// What fails at once may have been a moment's trouble and is tried again. What has kept us waiting, or
    /// waits for somebody to mend it, would do so again.
    pub(crate) async fn connect(&mut self, first: bool) -> Result<(), NoConnection> {
        let began = Instant::now();
        let connection = match self.connection(false).await {
            Err(error)
                if first && error.class() != Class::Setup && began.elapsed() < AGAIN_WITHIN =>
            {
                self.connection(true).await
            }
            connection => connection,
        };
        self.connection = Some(connection.map_err(|error| NoConnection(store_chain(&error)))?);
        Ok(())
    }

    /// The connection of the record before, a kept one, or a new one.
    pub(crate) async fn connection(&mut self, fresh: bool) -> Result<Connection, StoreError> {
        let until = self.batch.deadline.before_handler();
        match self.connection.take() {
            _ if fresh => self.slot.fresh_connection(until).await,
            Some(connection) => Ok(connection),
            None => self.slot.connection(until).await,
        }
    }

    /// Takes a connection back for the next record.
    pub(crate) fn put_back(&mut self, connection: Option<Connection>) {
        self.connection = connection;
    }

    /// Closes the connection; the next record gets another.
    pub(crate) fn discard(&mut self) {
        self.connection = None;
    }

    /// Gives the connection back for the next invocation.
    pub(crate) fn keep(mut self) {
        if let Some(connection) = self.connection.take() {
            connection.keep();
        }
    }

    /// Rolls a claim back. Returns whether the handler had committed it by itself.
    pub(crate) async fn roll_back(&mut self, claim: Claim) -> bool {
        match claim.roll_back(self.batch.deadline.settle()).await {
            RolledBack::Proven(connection) => {
                self.put_back(Some(connection));
                false
            }
            RolledBack::Unproven(withdrawal) => self.withdraw(withdrawal).await,
        }
    }

    /// Takes back a claim that may have been committed by the handler. Returns whether it had been.
    pub(crate) async fn withdraw(&mut self, withdrawal: Withdrawal) -> bool {
        match withdrawal
            .run(&self.slot, &self.batch.deadline.closing_limits())
            .await
        {
            Ok(committed) => committed,
            Err(error) => {
                tracing::warn!(
                    consumer = self.batch.settings.consumer.as_str(),
                    reason = store_chain(&error),
                    "could not look whether the handler had committed by itself"
                );
                false
            }
        }
    }
}
