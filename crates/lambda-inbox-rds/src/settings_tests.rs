use super::*;
use std::collections::HashMap;
use std::error::Error;

const SECRET: &str = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:rds!db-1234-AbCdEf";
const URL: (&str, &str) = (DATABASE_URL, "postgres://app:hunter2@db.example:5432/shop");

fn settings(variables: &[(&str, &str)]) -> Result<Source, SettingsError> {
    let variables: HashMap<_, _> = variables.iter().copied().collect();
    source(|name| variables.get(name).map(|value| (*value).to_owned()))
}

fn refusal(variables: &[(&str, &str)]) -> String {
    let error = settings(variables).unwrap_err();
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[test]
fn what_cannot_work_is_refused_with_the_fix_and_shows_no_password() {
    let host = (HOST, "db.example");
    let cases: &[(&[(&str, &str)], &str)] = &[
        (&[], "DATABASE_URL is not set"),
        (&[(DATABASE_URL, "")], "DATABASE_URL is not set"),
        (&[(DATABASE_URL, "hunter2")], "postgres://user"),
        (
            &[(DATABASE_URL, "mysql://app:hunter2@db/shop")],
            "postgres://user",
        ),
        (
            &[(DATABASE_URL, "postgres://app:hunter2#w/x@db/shop")],
            "%23",
        ),
        (
            &[(DATABASE_URL, "postgres://app:12?hunter2@db/shop")],
            "%3F",
        ),
        (
            &[(DATABASE_URL, "postgres://app:12/hunter2@db/shop")],
            "%2F",
        ),
        (&[(DATABASE_URL, "postgres://app:5#hunter2@db/shop")], "%23"),
        (
            &[(DATABASE_URL, "postgres://app:x@db/shop?sslpassword=hunter2")],
            "the parameter \"sslpassword\"",
        ),
        (
            &[URL, host],
            "DATABASE_URL and LAMBDA_INBOX_DB_HOST are both set",
        ),
        (
            &[URL, (SECRET_ARN, SECRET)],
            "DATABASE_URL and LAMBDA_INBOX_DB_SECRET_ARN are both set",
        ),
        (
            &[host],
            "LAMBDA_INBOX_DB_SECRET_ARN, or LAMBDA_INBOX_DB_AUTH=iam",
        ),
        (
            &[host, (PORT, "x"), (SECRET_ARN, SECRET)],
            "LAMBDA_INBOX_DB_PORT is \"x\", expected a port",
        ),
        (
            &[host, (AUTH, "password")],
            "LAMBDA_INBOX_DB_AUTH is \"password\", expected iam",
        ),
        (
            &[host, (AUTH, "iam"), (SECRET_ARN, SECRET)],
            "are both set; unset one",
        ),
        (&[URL, (TLS, "on")], "verify-full, verify-ca"),
        (
            &[URL, (CA, "/no/such/file")],
            "\"/no/such/file\" (LAMBDA_INBOX_DB_CA or sslrootcert)",
        ),
        (&[URL, (CA, "/dev/null")], "there is no certificate"),
        (&[URL, (POOLED, "yes")], "on or off"),
        (
            &[
                (
                    DATABASE_URL,
                    "postgres://app:hunter2@db/shop?sslmode=require",
                ),
                (TLS, "require"),
            ],
            "LAMBDA_INBOX_DB_TLS is set, and DATABASE_URL has sslmode",
        ),
        (
            &[
                (
                    DATABASE_URL,
                    "postgres://app:hunter2@db/shop?sslrootcert=/a",
                ),
                (CA, "/a"),
            ],
            "LAMBDA_INBOX_DB_CA is set, and DATABASE_URL has sslrootcert",
        ),
        (
            &[
                (
                    DATABASE_URL,
                    "postgres://app:hunter2@db/shop?options=-c%20geqo%3Doff",
                ),
                (POOLED, "on"),
            ],
            "ALTER ROLE",
        ),
    ];
    for (variables, text) in cases {
        let refusal = refusal(variables);
        assert!(refusal.contains(text), "{variables:?}: {refusal}");
        assert!(!refusal.contains("hunter2"), "{refusal}");
    }
}

#[cfg(not(feature = "secrets-manager"))]
#[test]
fn a_secret_needs_its_feature() {
    let refusal = refusal(&[(HOST, "db.example"), (SECRET_ARN, SECRET)]);
    assert!(refusal.contains("feature secrets-manager"), "{refusal}");
}

#[cfg(not(feature = "iam"))]
#[test]
fn a_token_needs_its_feature() {
    let refusal = refusal(&[(HOST, "db.example"), (AUTH, "iam")]);
    assert!(refusal.contains("feature iam"), "{refusal}");
}

#[cfg(feature = "secrets-manager")]
#[test]
fn a_secret_is_named_by_its_arn() {
    assert!(settings(&[(SECRET_ARN, SECRET)]).is_ok());
    for arn in [
        "prod/db",
        "arn:aws:sqs:eu-west-1:123456789012:secret:x",
        "arn:aws:secretsmanager::1:secret:x",
    ] {
        let refusal = refusal(&[(SECRET_ARN, arn)]);
        assert!(refusal.contains("an ARN like"), "{arn}: {refusal}");
    }
}

#[cfg(feature = "iam")]
#[test]
fn a_token_needs_host_user_database_region_and_encryption() {
    let all = [
        (AUTH, "iam"),
        (HOST, "db.example"),
        (USER, "app"),
        (NAME, "shop"),
        (AWS_REGION, "eu-west-1"),
    ];
    assert!(settings(&all).is_ok());
    for absent in &all[1..] {
        let rest: Vec<_> = all.iter().filter(|pair| *pair != absent).copied().collect();
        let refusal = refusal(&rest);
        let name = if absent.0 == AWS_REGION {
            REGION
        } else {
            absent.0
        };
        assert!(refusal.starts_with(name), "{refusal}");
    }
    for (mode, works) in [
        ("disable", false),
        ("prefer", false),
        ("require", true),
        ("verify-full", true),
    ] {
        let mut variables = all.to_vec();
        variables.push((TLS, mode));
        assert_eq!(settings(&variables).is_ok(), works, "{mode}");
    }
}

#[test]
fn no_debug_output_has_the_password() {
    let source = settings(&[URL]).unwrap();
    assert!(!format!("{source:?}").contains("hunter2"));
}

#[test]
fn the_url_may_name_an_ipv6_address() {
    assert_eq!(in_brackets("[::1]").as_deref(), Some("::1"));
    assert_eq!(in_brackets("db.example"), None);
}
