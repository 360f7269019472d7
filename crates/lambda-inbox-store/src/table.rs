//! Which table the keys of a consumer are in, and what may be said to the server on the way.

use crate::schema::Schema;

/// How the rows of the inbox are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layout {
    /// By key: right for every key, and the default.
    #[default]
    Keyed,
    /// By the time at which SQS took the message, then by key, in a table of its own: claims touch the
    /// same few pages however many keys are kept. One key with two times would be two rows, so it is only
    /// for keys that a time belongs to: the MessageId on standard queues.
    TimeOrdered,
}

/// What stands between the process and the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Profile {
    /// Nothing: the session is ours, its settings and prepared statements stay.
    #[default]
    Direct,
    /// RDS Proxy, or PgBouncer in transaction mode: each transaction may meet another session. No
    /// statement is prepared by name and nothing is set; timeouts are the role's.
    Pooled,
}

/// A consumer's table. A [`Schema`] alone stands for the keyed table in it, spoken to directly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Where the table is.
    pub schema: Schema,
    /// Which of the two it is.
    pub layout: Layout,
    /// How it is spoken to.
    pub profile: Profile,
}

impl Table {
    /// The name, ready to stand in a statement.
    pub(crate) fn quoted(&self) -> String {
        let name = match self.layout {
            Layout::Keyed => "inbox",
            Layout::TimeOrdered => crate::layout::TABLE,
        };
        format!("{}.{name}", self.schema.quoted())
    }
}

impl From<Schema> for Table {
    fn from(schema: Schema) -> Self {
        Self {
            schema,
            ..Self::default()
        }
    }
}
