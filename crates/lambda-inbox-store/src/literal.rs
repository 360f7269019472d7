//! Values written into the text of a statement.
//!
//! BEGIN and the claim go out in one simple query, which takes no parameters. What a value is made of
//! must not matter then: only printable ASCII stands for itself, quote and backslash excepted, and every
//! other character is a Unicode escape. Such a text means the same under every `client_encoding` and
//! with every setting of `standard_conforming_strings`, and no value can end its literal.

use std::fmt::Write;

/// The parameters of one statement, each as a literal of its type.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arguments(Vec<String>);

impl Arguments {
    pub(crate) fn literals(&self) -> &[String] {
        &self.0
    }

    pub(crate) fn text(mut self, value: Option<&str>) -> Self {
        self.0.push(value.map_or_else(
            || "NULL::text".to_owned(),
            |value| {
                let mut sql = String::with_capacity(value.len() + 9);
                sql.push_str("E'");
                push_escaped(&mut sql, value);
                sql.push_str("'::text");
                sql
            },
        ));
        self
    }

    pub(crate) fn number(mut self, value: Option<i64>) -> Self {
        self.0.push(value.map_or_else(
            || "NULL::int8".to_owned(),
            |value| format!("'{value}'::int8"),
        ));
        self
    }

    pub(crate) fn bytes(mut self, value: &[u8]) -> Self {
        let mut sql = String::from(r"E'\\x");
        sql.push_str(&hex::encode(value));
        sql.push_str("'::bytea");
        self.0.push(sql);
        self
    }

    pub(crate) fn texts<'a>(self, values: impl Iterator<Item = Option<&'a str>>) -> Self {
        self.array("text", values, |sql, value| {
            sql.push('"');
            push_element(sql, value);
            sql.push('"');
        })
    }

    pub(crate) fn numbers(self, values: impl Iterator<Item = Option<i64>>) -> Self {
        self.array("int8", values, |sql, value| {
            // Writing into a String cannot fail.
            let _ = write!(sql, "{value}");
        })
    }

    pub(crate) fn byte_strings<'a>(self, values: impl Iterator<Item = &'a [u8]>) -> Self {
        self.array("bytea", values.map(Some), |sql, value| {
            // Two layers of escapes, the array's and the literal's.
            sql.push_str(r#""\\\\x"#);
            sql.push_str(&hex::encode(value));
            sql.push('"');
        })
    }

    /// An array that is NULL as a whole.
    pub(crate) fn no_texts(mut self) -> Self {
        self.0.push("NULL::text[]".to_owned());
        self
    }

    fn array<T>(
        mut self,
        of: &str,
        values: impl Iterator<Item = Option<T>>,
        push: impl Fn(&mut String, T),
    ) -> Self {
        let mut sql = String::from("E'{");
        for (index, value) in values.enumerate() {
            if index > 0 {
                sql.push(',');
            }
            match value {
                Some(value) => push(&mut sql, value),
                None => sql.push_str("NULL"),
            }
        }
        sql.push_str("}'::");
        sql.push_str(of);
        sql.push_str("[]");
        self.0.push(sql);
        self
    }
}

fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && byte != b'\'' && byte != b'\\'
}

fn push_escaped(sql: &mut String, value: &str) {
    if value.bytes().all(is_plain) {
        return sql.push_str(value);
    }
    for c in value.chars() {
        match u8::try_from(c) {
            Ok(byte) if is_plain(byte) => sql.push(c),
            // Writing into a String cannot fail.
            _ => {
                let _ = match u32::from(c) {
                    code @ 0..=0xFFFF => write!(sql, "\\u{code:04x}"),
                    code => write!(sql, "\\U{code:08x}"),
                };
            }
        }
    }
}

/// The array's own escapes first, the literal's on top of them.
fn push_element(sql: &mut String, value: &str) {
    if value.contains(['"', '\\']) {
        let value = value.replace('\\', r"\\").replace('"', r#"\""#);
        push_escaped(sql, &value);
    } else {
        push_escaped(sql, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lambda_inbox_testkit::postgres::TestDatabase;
    use sqlx::{AssertSqlSafe, Row};

    /// What would end a literal, an array's element or the array, and what stands outside ASCII.
    const AWKWARD: [&str; 12] = [
        "plain-0a",
        "it's; COMMIT; --",
        r"C:\new\'",
        "\\",
        "\"quoted\", {braces}",
        "NULL",
        " ",
        "tab\tline\r\n",
        "\u{1}\u{7f}",
        "gr\u{fc}n \u{20ac}",
        "\u{1f980}",
        "$1 $$ ${x} \u{feff}",
    ];

    #[tokio::test]
    async fn every_text_arrives_as_it_is_whatever_the_session_is_set_to() {
        let database = TestDatabase::create().await.unwrap();
        let mut pg = database.connect().await.unwrap();
        for settings in [
            "RESET ALL",
            "SET standard_conforming_strings = off; SET backslash_quote = on",
            // Within a multi-byte character of these, a backslash or a quote can stand.
            "SET client_encoding = 'SJIS'",
            "SET client_encoding = 'LATIN1'",
        ] {
            sqlx::raw_sql(settings).execute(&mut pg).await.unwrap();
            let mut arguments = Arguments::default();
            for text in AWKWARD {
                arguments = arguments.text(Some(text));
            }
            let arguments = arguments
                .texts(AWKWARD.into_iter().map(Some).chain([None]))
                .bytes(&[0, 39, 92, 255])
                .byte_strings([&[39, 92][..], &[]].into_iter())
                .numbers([Some(-1), None].into_iter());
            let expected: Vec<String> = AWKWARD.map(hex::encode).into();
            let literals = arguments.literals();
            let (texts, arrays) = literals.split_at(AWKWARD.len());
            for (literal, expected) in texts.iter().zip(&expected) {
                let sql = format!("SELECT encode(convert_to({literal}, 'UTF8'), 'hex')");
                let row = sqlx::raw_sql(AssertSqlSafe(sql)).fetch_one(&mut pg).await;
                assert_eq!(&row.unwrap().get::<String, _>(0), expected, "{settings}");
            }
            let sql = format!(
                "SELECT (SELECT string_agg(coalesce(encode(convert_to(t, 'UTF8'), 'hex'), '-'), ' ') \
                 FROM unnest({}) t), encode({}, 'hex'), \
                 (SELECT string_agg(encode(b, 'hex'), ',') FROM unnest({}) b), ({})::text",
                arrays[0], arrays[1], arrays[2], arrays[3]
            );
            let row = sqlx::raw_sql(AssertSqlSafe(sql)).fetch_one(&mut pg).await;
            let row = row.unwrap();
            assert_eq!(row.get::<String, _>(0), format!("{} -", expected.join(" ")));
            assert_eq!(row.get::<String, _>(1), "00275cff");
            assert_eq!(row.get::<String, _>(2), "275c,");
            assert_eq!(row.get::<String, _>(3), "{-1,NULL}");
        }
    }

    #[test]
    fn a_literal_is_printable_ascii() {
        let arguments = Arguments::default().texts(AWKWARD.into_iter().map(Some));
        for literal in arguments.literals() {
            assert!(
                literal.bytes().all(|byte| matches!(byte, b' '..=b'~')),
                "{literal}"
            );
        }
    }
}
