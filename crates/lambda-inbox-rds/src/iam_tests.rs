use super::*;
use sqlx::ConnectOptions;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

const KEY_ID: &str = "AKIDEXAMPLE";
const SECRET_KEY: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
/// 2026-01-02T03:04:05Z.
const THEN: Duration = Duration::from_secs(1_767_323_045);

fn credentials(session_token: Option<&str>) -> Credentials {
    Credentials::new(
        KEY_ID,
        SECRET_KEY,
        session_token.map(str::to_owned),
        None,
        "test",
    )
}

fn endpoint(host: &str, port: u16, user: &str, region: &str) -> Endpoint {
    Endpoint {
        host: host.to_owned(),
        port,
        user: user.to_owned(),
        region: region.to_owned(),
    }
}

/// The part before the query, and the query's parameters, still escaped.
fn parts(token: &str) -> (&str, BTreeMap<&str, &str>) {
    let (place, query) = token.split_once('?').unwrap();
    let pairs = query.split('&').map(|pair| pair.split_once('=').unwrap());
    (place, pairs.collect())
}

/// What botocore 1.44.8 makes of the same values at the same time (`generate_db_auth_token`).
#[test]
fn a_token_is_the_one_that_awss_own_signer_makes() {
    let plain = endpoint(
        "shop.abcdefghijkl.eu-west-1.rds.amazonaws.com",
        5432,
        "app",
        "eu-west-1",
    );
    let odd = endpoint(
        "shop.cluster-abc.us-east-2.rds.amazonaws.com",
        6432,
        "app user+é@x",
        "us-east-2",
    );
    let session_token = "IQoJb3JpZ2luX2VjEXAMPLE//token+with/signs==";
    let cases = [
        (
            plain,
            None,
            "shop.abcdefghijkl.eu-west-1.rds.amazonaws.com:5432/?Action=connect&DBUser=app\
             &X-Amz-Algorithm=AWS4-HMAC-SHA256\
             &X-Amz-Credential=AKIDEXAMPLE%2F20260102%2Feu-west-1%2Frds-db%2Faws4_request\
             &X-Amz-Date=20260102T030405Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host\
             &X-Amz-Signature=1720b73380925f33e82f169b64d3d98e9ba9276863a608c3f2c797cf4bb9437f",
        ),
        (
            odd,
            Some(session_token),
            "shop.cluster-abc.us-east-2.rds.amazonaws.com:6432/?Action=connect\
             &DBUser=app%20user%2B%C3%A9%40x&X-Amz-Algorithm=AWS4-HMAC-SHA256\
             &X-Amz-Credential=AKIDEXAMPLE%2F20260102%2Fus-east-2%2Frds-db%2Faws4_request\
             &X-Amz-Date=20260102T030405Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host\
             &X-Amz-Security-Token=IQoJb3JpZ2luX2VjEXAMPLE%2F%2Ftoken%2Bwith%2Fsigns%3D%3D\
             &X-Amz-Signature=f81065a4e258f5baeee082bb750585cb07411412097ebe4216bda90f161d7945",
        ),
    ];
    for (endpoint, session_token, expected) in cases {
        let token = token(&endpoint, credentials(session_token), UNIX_EPOCH + THEN).unwrap();
        assert_eq!(parts(&token), parts(expected));
    }
}

/// C-13: the connection that is opened at minute 16 has a token that is valid at minute 16.
#[tokio::test]
async fn each_connection_has_a_token_of_its_own_time() {
    static NOW: AtomicU64 = AtomicU64::new(THEN.as_secs());
    let login = IamLogin {
        provider: Mutex::new(Some(SharedCredentialsProvider::new(credentials(None)))),
        clock: || UNIX_EPOCH + Duration::from_secs(NOW.load(Ordering::Relaxed)),
        ..IamLogin::new(
            endpoint("db.example", 5432, "app", "eu-west-1"),
            "shop".to_owned(),
        )
    };
    for (minutes, issued) in [
        (0, "20260102T030405Z"),
        (14, "20260102T031805Z"),
        (16, "20260102T032005Z"),
    ] {
        NOW.store(THEN.as_secs() + 60 * minutes, Ordering::Relaxed);
        let until = Instant::now() + Duration::from_secs(60);
        let options = login.attempt(until).await.unwrap().options;
        let url = options.to_url_lossy();
        let token = sqlx_core::percent_encoding::percent_decode_str(url.password().unwrap())
            .decode_utf8()
            .unwrap();
        let (place, parameters) = parts(&token);
        assert_eq!(place, "db.example:5432/");
        assert_eq!(
            (parameters["X-Amz-Date"], parameters["X-Amz-Expires"]),
            (issued, "900")
        );
    }
}
