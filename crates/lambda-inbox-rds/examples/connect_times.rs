//! How long connecting and a round trip take, plain and with TLS, by sqlx alone and through a `Source`:
//! `cargo run --release -p lambda-inbox-rds --example connect_times`. The figures of ADR 0013.

use lambda_inbox_rds::Source;
use lambda_inbox_testkit::postgres::Cluster;
use lambda_inbox_testkit::proxy::Proxy;
use lambda_inbox_testkit::tls::Authority;
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use sqlx::{Connection, PgConnection};
use std::error::Error;
use std::time::Duration;
use tokio::time::Instant;

const CONNECTS: usize = 60;
const ROUND_TRIPS: usize = 1000;
/// Of a statement that takes more than one TLS record.
const LARGE_BYTES: usize = 40 * 1024;
const LARGE: usize = 40;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let authority = Authority::new("private")?;
    let server = authority.issue(["localhost", "127.0.0.1"])?;
    let cluster = Cluster::builder().tls(&server).start().await?;
    let plain = cluster.options();
    let tls = plain
        .clone()
        .ssl_mode(PgSslMode::VerifyFull)
        .ssl_root_cert_from_pem(authority.certificate().as_bytes().to_vec());
    // As with the feature `rds-ca-bundle`.
    let mut bundle = include_bytes!("../certs/rds-ca-bundle.pem").to_vec();
    bundle.extend(authority.certificate().as_bytes());
    let bundled = tls.clone().ssl_root_cert_from_pem(bundle);
    let proxy = Proxy::start(plain.get_host(), plain.get_port()).await?;
    for one_way in [Duration::ZERO, Duration::from_micros(500)] {
        proxy.set_delay(one_way);
        println!("round trip of the network: {:?}", one_way * 2);
        for (name, options) in [("plain", &plain), ("tls", &tls), ("bundle", &bundled)] {
            let options = if one_way.is_zero() {
                options.clone()
            } else {
                proxy.options(options)
            };
            sqlx_alone(name, &options).await?;
            through_source(name, &options).await?;
        }
    }
    Ok(())
}

async fn sqlx_alone(name: &str, options: &PgConnectOptions) -> Result<(), Box<dyn Error>> {
    let mut connects = Vec::new();
    for _ in 0..CONNECTS {
        let began = Instant::now();
        let connection = PgConnection::connect_with(options).await?;
        connects.push(began.elapsed());
        connection.close().await?;
    }
    let mut connection = PgConnection::connect_with(options).await?;
    print(&format!("sqlx {name}"), connects, &mut connection).await
}

async fn through_source(name: &str, options: &PgConnectOptions) -> Result<(), Box<dyn Error>> {
    let source = Source::from(options.clone());
    let until = || Instant::now() + Duration::from_secs(5);
    let mut connects = Vec::new();
    for _ in 0..CONNECTS {
        let began = Instant::now();
        let connection = source.connect(until()).await?;
        connects.push(began.elapsed());
        drop(connection);
    }
    let mut connection = source.connect(until()).await?;
    print(&format!("source {name}"), connects, &mut connection).await
}

async fn print(
    name: &str,
    connects: Vec<Duration>,
    connection: &mut PgConnection,
) -> Result<(), Box<dyn Error>> {
    let small = repeat(connection, ROUND_TRIPS, "x").await?;
    let large = repeat(connection, LARGE, &"x".repeat(LARGE_BYTES)).await?;
    let [connect, small, large] = [connects, small, large].map(median);
    println!("{name:14} connect {connect:9.3?}  round trip {small:9.3?}  40 KiB {large:9.3?}");
    Ok(())
}

async fn repeat(
    connection: &mut PgConnection,
    count: usize,
    text: &str,
) -> Result<Vec<Duration>, sqlx::Error> {
    let mut times = Vec::new();
    for _ in 0..count {
        let began = Instant::now();
        let _: i32 = sqlx::query_scalar("SELECT length($1)")
            .bind(text)
            .fetch_one(&mut *connection)
            .await?;
        times.push(began.elapsed());
    }
    Ok(times)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}
