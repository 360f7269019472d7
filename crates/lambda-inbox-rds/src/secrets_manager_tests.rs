use super::*;

const ARN: &str = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:rds!db-1234-AbCdEf";

fn login(
    host: Option<&str>,
    port: Option<u16>,
    name: Option<&str>,
    user: Option<&str>,
) -> SecretLogin {
    let place = Place {
        host: host.map(str::to_owned),
        port,
        name: name.map(str::to_owned),
        user: user.map(str::to_owned),
    };
    SecretLogin::new(place, ARN).unwrap()
}

fn secret(text: &str) -> Secret {
    Secret::parse(text).unwrap()
}

const WHOLE: &str = r#"{"username":"u","password":"hunter2","host":"h","port":6000,"dbname":"d"}"#;

#[test]
fn the_environment_says_where_and_the_secret_says_what_it_leaves_open() {
    let cases = [
        (login(None, None, None, None), ("h", 6000, Some("d"), "u")),
        (
            login(Some("proxy"), Some(5433), Some("shop"), Some("u")),
            ("proxy", 5433, Some("shop"), "u"),
        ),
    ];
    for (login, expected) in cases {
        let options = login.options(&secret(WHOLE)).unwrap();
        let found = (
            options.get_host(),
            options.get_port(),
            options.get_database(),
            options.get_username(),
        );
        assert_eq!(found, expected);
    }
    let rds = secret(r#"{"username":"u","password":"x"}"#);
    let options = login(Some("h"), None, Some("d"), None)
        .options(&rds)
        .unwrap();
    assert_eq!(options.get_port(), 5432);
}

#[test]
fn what_nobody_says_is_named() {
    let cases = [
        (
            login(None, None, Some("d"), Some("u")),
            "LAMBDA_INBOX_DB_HOST",
        ),
        (
            login(Some("h"), None, None, Some("u")),
            "LAMBDA_INBOX_DB_NAME",
        ),
        (
            login(Some("h"), None, Some("d"), None),
            "LAMBDA_INBOX_DB_USER",
        ),
    ];
    for (login, variable) in cases {
        let error = login
            .options(&secret(r#"{"password":"hunter2"}"#))
            .unwrap_err()
            .to_string();
        assert!(error.contains(variable), "{error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn a_password_is_not_tried_for_another_user() {
    let login = login(None, None, None, Some("somebody"));
    let error = login.options(&secret(WHOLE)).unwrap_err().to_string();
    assert!(
        error.contains("\"somebody\"") && error.contains("\"u\""),
        "{error}"
    );
}
