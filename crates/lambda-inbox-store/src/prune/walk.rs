//! Deleting from the unpartitioned time-ordered table, which has no index by the time of processing: its
//! primary key is walked from the oldest send time on, page by page. Old rows that must stay (their
//! message was processed late, or its consumer's retention is longer) are passed once a run, not once a
//! batch.

use super::report::TimeOrderedPruned;
use super::run::{Halt, Run, Steps, Value};
use super::sql;
use sqlx::Row;
use sqlx::postgres::PgRow;

/// Before every time that SQS can say.
const BEFORE_ALL: i64 = 0;

/// A key of the primary key, to go on behind.
#[derive(Clone)]
struct Place {
    sent_at: i64,
    consumer: String,
    source: String,
    message_id: String,
}

impl Run<'_> {
    pub(super) async fn walk(&mut self) -> Result<(), Halt> {
        let mut pruned = TimeOrderedPruned::default();
        let result = self.pages(&mut pruned).await;
        self.report.rows += pruned.rows;
        self.report.time_ordered = Some(pruned);
        result
    }

    async fn pages(&mut self, pruned: &mut TimeOrderedPruned) -> Result<(), Halt> {
        let sql = if self.pruner.dry_run {
            sql::count_page(self.schema)
        } else {
            sql::delete_page(self.schema)
        };
        let steps = Pages {
            fixed: [
                Value::Texts(self.cut_offs.consumers().to_vec()),
                Value::AllSeconds(self.cut_offs.seconds().to_vec()),
                Value::Seconds(self.cut_offs.default_seconds()),
                Value::Seconds(self.cut_offs.shortest()),
            ],
        };
        let mut place = Some(Place {
            sent_at: BEFORE_ALL,
            consumer: String::new(),
            source: String::new(),
            message_id: String::new(),
        });
        while let Some(from) = place {
            let (rows, next) = self.batch(&sql, from, &steps).await?;
            pruned.rows += rows;
            place = next;
        }
        Ok(())
    }
}

/// The cut-offs come first, then the place and the number of rows.
struct Pages {
    fixed: [Value; 4],
}

impl Steps<Place> for Pages {
    fn values(&self, place: &Place, rows: u32) -> Vec<Value> {
        let place = [
            Value::Number(place.sent_at),
            Value::Text(place.consumer.clone()),
            Value::Text(place.source.clone()),
            Value::Text(place.message_id.clone()),
            Value::Number(rows.into()),
        ];
        self.fixed.iter().cloned().chain(place).collect()
    }

    fn read(&self, row: &PgRow, _: u32) -> Result<(u64, Option<Place>), sqlx::Error> {
        let done: i64 = row.try_get(0)?;
        let sent_at: Option<i64> = row.try_get("sent_at")?;
        let next = match sent_at {
            None => None,
            Some(sent_at) => Some(Place {
                sent_at,
                consumer: row.try_get("consumer")?,
                source: row.try_get("source")?,
                message_id: row.try_get("message_id")?,
            }),
        };
        Ok((done.unsigned_abs(), next))
    }
}
