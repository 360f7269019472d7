//! The statements of the hot path, built once for the configured table.

use crate::literal::Arguments;
use crate::table::{Layout, Profile, Table};

#[derive(Debug)]
pub(crate) struct Statements {
    pub(crate) claim: Prepared,
    pub(crate) claim_many: Prepared,
    pub(crate) fingerprint: Template,
    pub(crate) withdraw: Template,
}

impl Statements {
    pub(crate) fn new(table: &Table) -> Self {
        Self {
            claim: claim(table),
            claim_many: claim_many(table),
            fingerprint: fingerprint(table),
            withdraw: withdraw(table),
        }
    }
}

/// A text with `?1`, `?2` and so on where its values go; `$` may stand in a schema's name.
#[derive(Debug)]
pub(crate) struct Template(String);

impl Template {
    /// The text with the values in their places.
    pub(crate) fn with(&self, arguments: &Arguments) -> String {
        let mut parts = self.0.split('?');
        let mut sql = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part.find(|c: char| !c.is_ascii_digit());
            let (number, rest) = part.split_at(end.unwrap_or(part.len()));
            let index = number.parse::<usize>().ok();
            let value = index.and_then(|number| arguments.literals().get(number.checked_sub(1)?));
            sql.push_str(value.map_or("NULL", String::as_str));
            sql.push_str(rest);
        }
        sql
    }
}

/// A statement that each session plans once and then runs by its name, within a simple query. Behind a
/// pooler no session is ours to plan in, and the whole text goes out each time.
#[derive(Debug)]
pub(crate) struct Prepared {
    name: &'static str,
    types: &'static str,
    template: Template,
    profile: Profile,
}

impl Prepared {
    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// The statement that makes the name known; `None` where there is no name.
    pub(crate) fn prepare(&self) -> Option<String> {
        let (name, types) = (self.name, self.types);
        match self.profile {
            Profile::Direct => {
                let sql = numbered(&self.template.0);
                Some(format!("PREPARE {name} ({types}) AS {sql}"))
            }
            Profile::Pooled => None,
        }
    }

    pub(crate) fn execute(&self, arguments: &Arguments) -> String {
        match self.profile {
            Profile::Direct => {
                let arguments = arguments.literals().join(", ");
                format!("EXECUTE {} ({arguments})", self.name)
            }
            Profile::Pooled => self.template.with(arguments),
        }
    }
}

/// The text as the server takes it where the values come apart from it.
fn numbered(sql: &str) -> String {
    sql.replace('?', "$")
}

/// A claim bounds its own wait by a `lock_timeout` that holds for its statement alone: each CTE reads the
/// one before it, so the timeout is set before the INSERT and put back, for the handler, after it. Behind
/// a pooler nothing may be set, and the role's own timeout holds.
struct Bounds {
    ctes: String,
    /// What the INSERT reads beside its values.
    from: &'static str,
}

fn bounds(profile: Profile, wait: &str) -> Bounds {
    match profile {
        Profile::Direct => Bounds {
            ctes: format!(
                "handler AS MATERIALIZED (SELECT current_setting('lock_timeout') AS lock_timeout), \
                 bounded AS MATERIALIZED (\
                   SELECT lock_timeout, set_config('lock_timeout', {wait}, true) FROM handler), "
            ),
            from: ", bounded",
        },
        Profile::Pooled => Bounds {
            ctes: String::new(),
            from: "",
        },
    }
}

/// First writer wins; a duplicate waits for our commit, then gets no row. Where a row was there already
/// its fingerprint comes back in the same round trip.
fn claim(table: &Table) -> Prepared {
    let (inbox, this) = (table.quoted(), this_row(table, "?2", "?3", "?4"));
    let Bounds { ctes, from } = bounds(table.profile, "?8");
    let unbound = match table.profile {
        Profile::Direct => ", set_config('lock_timeout', bounded.lock_timeout, true)",
        Profile::Pooled => "",
    };
    let sql = format!(
        "WITH {ctes}won AS (\
           INSERT INTO {inbox} (consumer, source, message_id, sent_at, status, fingerprint, \
             transport_message_id) \
           SELECT ?1, ?2, ?3, {}, ?5, ?6, ?7 FROM (SELECT) AS one_row{from} \
           ON CONFLICT DO NOTHING \
           RETURNING pg_current_xact_id()::text AS transaction_id) \
         SELECT transaction_id, \
           CASE WHEN transaction_id IS NULL THEN (\
             SELECT encode(i.fingerprint, 'hex') FROM {inbox} AS i WHERE {this}) END \
             AS fingerprint{unbound} \
         FROM (SELECT max(transaction_id) AS transaction_id FROM won) AS result{from}",
        time("?4")
    );
    Prepared {
        name: "lambda_inbox_claim",
        types: "text, text, text, int8, text, bytea, text, text",
        template: Template(sql),
        profile: table.profile,
    }
}

/// Milliseconds fit a float's 53 bits beyond the year 9999.
fn time(milliseconds: &str) -> String {
    format!("to_timestamp({milliseconds}::float8 / 1000)")
}

/// What tells a row `i` of the inbox, with the consumer as the first value.
fn this_row(table: &Table, source: &str, message_id: &str, sent_at: &str) -> String {
    let key = format!("i.consumer = ?1 AND i.source = {source} AND i.message_id = {message_id}");
    match table.layout {
        Layout::Keyed => key,
        Layout::TimeOrdered => format!("i.sent_at = {} AND {key}", time(sent_at)),
    }
}

/// What the winner wrote, where it committed only while our claim waited for it.
fn fingerprint(table: &Table) -> Template {
    let (inbox, this) = (table.quoted(), this_row(table, "?2", "?3", "?4"));
    Template(format!(
        "SELECT encode(i.fingerprint, 'hex') AS fingerprint FROM {inbox} AS i WHERE {this}"
    ))
}

/// Takes back the rows that one very transaction committed. Another delivery may own a key by now, and
/// its row has another `xmin`.
fn withdraw(table: &Table) -> Template {
    let inbox = table.quoted();
    let this = this_row(table, "r.source", "r.message_id", "r.sent_at");
    Template(format!(
        "DELETE FROM {inbox} AS i USING unnest(?2, ?3, ?4) AS r (source, message_id, sent_at) \
         WHERE {this} AND i.xmin = ?5::xid8::xid AND pg_xact_status(?5::xid8) = 'committed'"
    ))
}

/// What a composed statement needs of each message beside its claim.
const DELIVERY: &str = ", unnest(?10::text[]) AS body, unnest(?11::int4[]) AS receive_count, \
     unnest(?12::text[]) AS group_id";

/// The claim of many rows, as CTEs that end in `won`; [`claim`] for one. Rows come in the
/// order of their keys and are inserted in it, so that two overlapping batches wait for each other and
/// never deadlock. Statuses and transport ids may be null as a whole where each row has the usual one.
///
/// `generate_series` numbers the rows, and tells the planner, which knows nothing of the arrays'
/// lengths, to expect many: it must not join ten thousand rows by nested loops. Functions in the select
/// list run side by side; in FROM each would fill a store of its own first.
fn claiming(table: &Table, more: &str) -> String {
    let (inbox, sent_at) = (table.quoted(), time("sent_at"));
    let Bounds { ctes, from } = bounds(table.profile, "?2");
    format!(
        "WITH {ctes}message AS MATERIALIZED (\
           SELECT unnest(?4::text[]) AS source, unnest(?5::text[]) AS message_id, \
             unnest(?6::int8[]) AS sent_at, unnest(?7::text[]) AS status, \
             unnest(?8::bytea[]) AS fingerprint, unnest(?9::text[]) AS transport{more}, \
             generate_series(1, ?3::int8) AS position), \
         won AS (\
           INSERT INTO {inbox} (consumer, source, message_id, sent_at, status, fingerprint, \
             transport_message_id) \
           SELECT ?1, source, message_id, {sent_at}, coalesce(status, 'processed'), fingerprint, \
             transport \
           FROM message{from} \
           ORDER BY position \
           ON CONFLICT DO NOTHING \
           RETURNING source, message_id), {}",
        unbounded(table.profile)
    )
}

/// Ends the bound on waits once all rows are claimed, for whoever reads this CTE of one row.
fn unbounded(profile: Profile) -> &'static str {
    match profile {
        Profile::Direct => {
            "unbounded AS MATERIALIZED (\
             SELECT set_config('lock_timeout', bounded.lock_timeout, true) \
             FROM bounded, (SELECT count(*) FROM won) AS done)"
        }
        Profile::Pooled => "unbounded AS MATERIALIZED (SELECT count(*) FROM won)",
    }
}

/// What became of the rows of [`claiming`]: one row with the transaction's id where all were won, which
/// is the rule; else the won ones, and those that were there before, with their fingerprints. A row
/// that committed while the claim waited for it is in neither.
fn claimed(table: &Table) -> String {
    let inbox = table.quoted();
    let this = this_row(
        table,
        "message.source",
        "message.message_id",
        "message.sent_at",
    );
    format!(
        "SELECT NULL::text AS source, NULL::text AS message_id, \
           pg_current_xact_id_if_assigned()::text AS transaction_id, NULL::text AS fingerprint \
         WHERE (SELECT count(*) FROM won) = ?3 \
         UNION ALL \
         SELECT source, message_id, pg_current_xact_id_if_assigned()::text, NULL::text FROM won \
         WHERE (SELECT count(*) FROM won) < ?3 \
         UNION ALL \
         SELECT message.source, message.message_id, NULL, encode(existing.fingerprint, 'hex') \
         FROM message CROSS JOIN LATERAL (\
           SELECT i.fingerprint FROM {inbox} AS i WHERE {this} LIMIT 1) AS existing \
         WHERE (SELECT count(*) FROM won) < ?3"
    )
}

/// The claim of a batch.
fn claim_many(table: &Table) -> Prepared {
    let sql = format!(
        "{}, answer AS MATERIALIZED ({}) \
         SELECT answer.source, answer.message_id, transaction_id, fingerprint \
         FROM unbounded LEFT JOIN answer ON true",
        claiming(table, ""),
        claimed(table)
    );
    Prepared {
        name: "lambda_inbox_claim_many",
        types: "text, text, int8, text[], text[], int8[], text[], bytea[], text[]",
        template: Template(sql),
        profile: table.profile,
    }
}

/// The user's statement behind the claim, over the messages that were won. The claim's bound on waits does
/// not hold for it: what it waits for is no other delivery. A statement that modifies
/// data runs to its end although nothing reads it.
pub(crate) fn composed(table: &Table, statement: &str) -> String {
    let (claim, claimed) = (claiming(table, DELIVERY), claimed(table));
    // The statement is the user's, and keeps its question marks.
    let (claim, claimed) = (numbered(&claim), numbered(&claimed));
    format!(
        "{claim}, fresh AS (\
           SELECT position, coalesce(transport, message_id) AS message_id, source, \
             message_id AS key, body::jsonb AS body, {} AS sent_at, receive_count, group_id \
           FROM unbounded, won JOIN message USING (source, message_id) \
           WHERE coalesce(status, 'processed') = 'processed'), \
         effect AS ({statement}\n), \
         answer AS MATERIALIZED ({claimed}) \
         SELECT answer.source, answer.message_id, transaction_id, fingerprint FROM answer",
        time("sent_at")
    )
}
