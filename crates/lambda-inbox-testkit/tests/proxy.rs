//! The fault proxy: first before an echoing server, byte by byte, then before Postgres, for what
//! the faults mean there.

#![allow(clippy::unwrap_used)] // In helpers too, which Clippy does not take for tests.

use std::time::{Duration, Instant};

use lambda_inbox_testkit::postgres::TestDatabase;
use lambda_inbox_testkit::proxy::Proxy;
use sqlx::{Connection, PgConnection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Long enough to notice bytes that should not have come; too short only makes a test lenient.
const A_WHILE: Duration = Duration::from_millis(100);
/// Far longer than anything takes, because the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn bytes_pass_unchanged_in_both_directions() {
    let (_proxy, mut client) = echo().await;
    let sent: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let (mut from, mut to) = client.split();
    let mut received = vec![0; sent.len()];
    let (written, read) = tokio::join!(to.write_all(&sent), from.read_exact(&mut received));
    written.unwrap();
    read.unwrap();
    assert!(received == sent);
}

#[tokio::test]
async fn the_end_of_a_connection_is_passed_on() {
    let (_proxy, mut client) = echo().await;
    client.write_all(b"last words").await.unwrap();
    client.shutdown().await.unwrap();
    let mut received = String::new();
    client.read_to_string(&mut received).await.unwrap();
    assert_eq!(received, "last words");
}

#[tokio::test]
async fn a_delay_is_added_in_each_direction() {
    let (proxy, mut client) = echo().await;
    for one_way in [Duration::from_micros(500), Duration::from_millis(20)] {
        proxy.set_delay(one_way);
        let began = Instant::now();
        assert_eq!(exchange(&mut client, b"ping").await, b"ping");
        assert!(
            began.elapsed() >= 2 * one_way,
            "{:?} for {one_way:?}",
            began.elapsed()
        );
    }
}

#[tokio::test]
async fn delays_of_chunks_that_follow_each_other_do_not_add_up() {
    let (proxy, mut client) = echo().await;
    proxy.set_delay(Duration::from_millis(200));
    let began = Instant::now();
    for chunk in 0..50 {
        client.write_all(&[chunk]).await.unwrap();
        // So that the kernel does not make one chunk of all.
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let mut received = [0; 50];
    client.read_exact(&mut received).await.unwrap();
    assert_eq!(
        received,
        std::array::from_fn(|chunk| u8::try_from(chunk).unwrap())
    );
    // One after the other they would take 20 s.
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
}

#[tokio::test]
async fn bytes_stay_in_order_when_the_delay_shrinks() {
    let (proxy, mut client) = echo().await;
    proxy.set_delay(A_WHILE);
    client.write_all(b"slow ").await.unwrap();
    eventually("the proxy has the first bytes", async || {
        proxy.round_trips() == 1
    })
    .await;
    proxy.set_delay(Duration::ZERO);
    assert_eq!(exchange_of(&mut client, b"fast", 9).await, b"slow fast");
}

#[tokio::test]
async fn round_trips_are_counted_over_all_connections() {
    let (proxy, mut client) = echo().await;
    assert_eq!(proxy.round_trips(), 0);
    for _ in 0..3 {
        exchange(&mut client, b"ping").await;
    }
    let mut other = TcpStream::connect(proxy.addr()).await.unwrap();
    exchange(&mut other, b"ping").await;
    assert_eq!(proxy.round_trips(), 4);
    proxy.reset_round_trips();
    exchange(&mut client, b"ping").await;
    assert_eq!(proxy.round_trips(), 1);
    assert_eq!(proxy.connections(), 2);
}

#[tokio::test]
async fn what_a_client_sends_without_waiting_is_one_round_trip() {
    let (proxy, mut client) = echo().await;
    // Ours for sending both parts before the first one's echo is back.
    proxy.set_delay(Duration::from_secs(1));
    client.write_all(b"one").await.unwrap();
    eventually("the proxy has the first bytes", async || {
        proxy.round_trips() == 1
    })
    .await;
    assert_eq!(exchange_of(&mut client, b"two", 6).await, b"onetwo");
    assert_eq!(proxy.round_trips(), 1);
}

#[tokio::test]
async fn a_cut_closes_live_connections_and_lets_new_ones_in() {
    let (proxy, mut client) = echo().await;
    exchange(&mut client, b"ping").await;
    proxy.cut();
    assert!(is_closed(&mut client).await);
    let mut client = TcpStream::connect(proxy.addr()).await.unwrap();
    assert_eq!(exchange(&mut client, b"ping").await, b"ping");
}

#[tokio::test]
async fn while_connections_are_refused_new_ones_are_closed_and_live_ones_go_on() {
    let (proxy, mut live) = echo().await;
    exchange(&mut live, b"ping").await;
    proxy.refuse(true);
    assert!(is_closed(&mut TcpStream::connect(proxy.addr()).await.unwrap()).await);
    assert_eq!(exchange(&mut live, b"ping").await, b"ping");
    assert_eq!(proxy.connections(), 2);
    proxy.refuse(false);
    let mut client = TcpStream::connect(proxy.addr()).await.unwrap();
    assert_eq!(exchange(&mut client, b"ping").await, b"ping");
}

#[tokio::test]
async fn a_black_hole_swallows_everything_until_it_ends_and_loses_nothing() {
    let (proxy, mut live) = echo().await;
    exchange(&mut live, b"ping").await;
    proxy.black_hole(true);
    let mut new = TcpStream::connect(proxy.addr()).await.unwrap();
    for client in [&mut live, &mut new] {
        client.write_all(b"hello?").await.unwrap();
        assert!(is_silent(client).await);
    }
    proxy.black_hole(false);
    for client in [&mut live, &mut new] {
        assert_eq!(exchange_of(client, b"", 6).await, b"hello?");
    }
}

#[tokio::test]
async fn a_cut_reaches_into_a_black_hole() {
    let (proxy, mut client) = echo().await;
    exchange(&mut client, b"ping").await;
    proxy.black_hole(true);
    client.write_all(b"hello?").await.unwrap();
    proxy.cut();
    assert!(is_closed(&mut client).await);
}

#[tokio::test]
async fn a_cut_before_a_pattern_happens_once_wherever_the_pattern_is_split() {
    let parts: [&[&[u8]]; 5] = [
        &[b"COMMIT"],
        &[b"; COMMIT;"],
        &[b"xCOM", b"MITx"],
        &[b"C", b"OMMIT"],
        &[b"COMMI", b"T"],
    ];
    for parts in parts {
        let (proxy, mut client) = echo().await;
        let cut = proxy.cut_before(b"COMMIT");
        let (last, first) = parts.split_last().unwrap();
        for part in first {
            assert_eq!(exchange(&mut client, part).await, *part);
        }
        assert!(!cut.fired(), "{parts:?}");
        client.write_all(last).await.unwrap();
        assert!(is_closed(&mut client).await, "{parts:?}");
        assert!(cut.fired(), "{parts:?}");
        let mut client = TcpStream::connect(proxy.addr()).await.unwrap();
        assert_eq!(exchange(&mut client, b"COMMIT").await, b"COMMIT");
    }
}

#[tokio::test]
async fn a_pattern_that_was_sent_before_the_fault_was_set_does_not_count() {
    let (proxy, mut client) = echo().await;
    exchange(&mut client, b"COMMIT").await;
    let cut = proxy.cut_before(b"COMMIT");
    exchange(&mut client, b"ROLLBACK").await;
    assert!(!cut.fired());
}

#[tokio::test]
async fn of_two_faults_for_the_same_bytes_the_second_waits_for_the_next_match() {
    let (proxy, mut client) = echo().await;
    let (first, second) = (proxy.cut_before(b"COMMIT"), proxy.cut_before(b""));
    client.write_all(b"COMMIT").await.unwrap();
    first.wait().await;
    assert!(!second.fired());
    let mut client = TcpStream::connect(proxy.addr()).await.unwrap();
    client.write_all(b"anything").await.unwrap();
    second.wait().await;
}

#[tokio::test]
async fn held_bytes_and_what_follows_go_when_they_are_released() {
    let (proxy, mut client) = echo().await;
    let hold = proxy.hold_before(b"COMMIT");
    exchange(&mut client, b"BEGIN").await;
    client.write_all(b"COMMIT").await.unwrap();
    hold.held().await;
    client.write_all(b" and more").await.unwrap();
    assert!(is_silent(&mut client).await);
    hold.release();
    assert_eq!(exchange_of(&mut client, b"", 15).await, b"COMMIT and more");
    assert_eq!(exchange(&mut client, b"COMMIT").await, b"COMMIT");
}

#[tokio::test]
async fn a_hold_that_is_dropped_before_it_happens_never_does() {
    let (proxy, mut client) = echo().await;
    drop(proxy.hold_before(b"COMMIT"));
    assert_eq!(exchange(&mut client, b"COMMIT").await, b"COMMIT");
}

#[tokio::test]
async fn dropping_the_proxy_closes_its_connections() {
    let (proxy, mut client) = echo().await;
    exchange(&mut client, b"ping").await;
    drop(proxy);
    assert!(is_closed(&mut client).await);
}

#[tokio::test]
async fn a_client_is_closed_when_the_server_cannot_be_reached() {
    // Bound, so that nobody else gets the port, but not listening.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = socket.local_addr().unwrap().port();
    let proxy = Proxy::start("127.0.0.1", port).await.unwrap();
    assert!(is_closed(&mut TcpStream::connect(proxy.addr()).await.unwrap()).await);
}

#[tokio::test]
async fn a_unix_socket_is_refused_as_the_server() {
    let error = Proxy::start("/var/run/postgresql", 5432).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
}

#[tokio::test]
async fn a_simple_query_is_one_round_trip() {
    let (_database, proxy, mut client) = postgres().await;
    proxy.reset_round_trips();
    execute(&mut client, "SELECT 1; SELECT 2").await.unwrap();
    assert_eq!(proxy.round_trips(), 1);
}

#[tokio::test]
async fn a_commit_that_is_cut_is_not_done() {
    let (database, proxy, mut client) = postgres().await;
    let cut = proxy.cut_before(b"COMMIT");
    execute(&mut client, "BEGIN; INSERT INTO effect VALUES (1)")
        .await
        .unwrap();
    execute(&mut client, "COMMIT").await.unwrap_err();
    assert!(cut.fired());
    no_transaction_is_open(&database).await;
    assert_eq!(effects(&database).await, 0);
}

#[tokio::test]
async fn a_commit_whose_reply_is_lost_is_done() {
    let (database, proxy, mut client) = postgres().await;
    let lost = proxy.lose_reply_to(b"COMMIT");
    execute(&mut client, "BEGIN; INSERT INTO effect VALUES (1)")
        .await
        .unwrap();
    execute(&mut client, "COMMIT").await.unwrap_err();
    assert!(lost.fired());
    assert_eq!(effects(&database).await, 1);
}

#[tokio::test]
async fn a_long_reply_is_thrown_away_to_its_end() {
    let (database, proxy, mut client) = postgres().await;
    let lost = proxy.lose_reply_to(b"repeat");
    let statement = "SELECT repeat('x', 1000) FROM generate_series(1, 5000); \
                     INSERT INTO effect VALUES (1)";
    execute(&mut client, statement).await.unwrap_err();
    assert!(lost.fired());
    assert_eq!(effects(&database).await, 1);
}

#[tokio::test]
async fn a_commit_that_is_held_is_done_when_released() {
    let (database, proxy, mut client) = postgres().await;
    let hold = proxy.hold_before(b"COMMIT");
    execute(&mut client, "BEGIN; INSERT INTO effect VALUES (1)")
        .await
        .unwrap();
    let commit = tokio::spawn(async move { execute(&mut client, "COMMIT").await });
    hold.held().await;
    assert_eq!(effects(&database).await, 0);
    assert_eq!(database.open_transactions().await.unwrap().len(), 1);
    hold.release();
    commit.await.unwrap().unwrap();
    assert_eq!(effects(&database).await, 1);
}

#[tokio::test]
async fn a_commit_that_is_held_is_never_done_if_its_client_goes_away() {
    let (database, proxy, mut client) = postgres().await;
    let hold = proxy.hold_before(b"COMMIT");
    execute(&mut client, "BEGIN; INSERT INTO effect VALUES (1)")
        .await
        .unwrap();
    let commit = tokio::spawn(async move { execute(&mut client, "COMMIT").await });
    hold.held().await;
    commit.abort();
    no_transaction_is_open(&database).await;
    hold.release();
    assert_eq!(effects(&database).await, 0);
}

#[tokio::test]
async fn behind_a_black_hole_the_server_keeps_the_transaction_of_a_client_that_is_gone() {
    let (database, proxy, mut client) = postgres().await;
    execute(&mut client, "BEGIN; INSERT INTO effect VALUES (1)")
        .await
        .unwrap();
    proxy.black_hole(true);
    drop(client);
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(database.open_transactions().await.unwrap().len(), 1);
    proxy.black_hole(false);
    no_transaction_is_open(&database).await;
}

#[tokio::test]
async fn a_statement_does_not_reach_the_server_once_cut_has_returned() {
    let (database, proxy, mut client) = postgres().await;
    proxy.cut();
    execute(&mut client, "INSERT INTO effect VALUES (1)")
        .await
        .unwrap_err();
    no_transaction_is_open(&database).await;
    assert_eq!(effects(&database).await, 0);
}

/// A client of a proxy before a server that sends everything back.
async fn echo() -> (Proxy, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = socket.split();
                let _ = tokio::io::copy(&mut from, &mut to).await;
            });
        }
    });
    let proxy = Proxy::start("127.0.0.1", port).await.unwrap();
    let client = TcpStream::connect(proxy.addr()).await.unwrap();
    client.set_nodelay(true).unwrap();
    (proxy, client)
}

async fn exchange(client: &mut TcpStream, bytes: &[u8]) -> Vec<u8> {
    exchange_of(client, bytes, bytes.len()).await
}

async fn exchange_of(client: &mut TcpStream, bytes: &[u8], expected: usize) -> Vec<u8> {
    client.write_all(bytes).await.unwrap();
    let mut received = vec![0; expected];
    client.read_exact(&mut received).await.unwrap();
    received
}

async fn is_closed(client: &mut TcpStream) -> bool {
    matches!(client.read(&mut [0]).await, Ok(0) | Err(_))
}

async fn is_silent(client: &mut TcpStream) -> bool {
    tokio::time::timeout(A_WHILE, client.read(&mut [0]))
        .await
        .is_err()
}

/// A client of a proxy before a database with an empty table `effect`.
async fn postgres() -> (TestDatabase, Proxy, PgConnection) {
    let database = TestDatabase::create().await.unwrap();
    let mut direct = database.connect().await.unwrap();
    execute(&mut direct, "CREATE TABLE effect (id int)")
        .await
        .unwrap();
    let options = database.options();
    let proxy = Proxy::start(options.get_host(), options.get_port())
        .await
        .unwrap();
    let client = PgConnection::connect_with(&proxy.options(&options))
        .await
        .unwrap();
    (database, proxy, client)
}

async fn execute(connection: &mut PgConnection, statements: &'static str) -> sqlx::Result<()> {
    sqlx::raw_sql(statements)
        .execute(connection)
        .await
        .map(drop)
}

async fn effects(database: &TestDatabase) -> i64 {
    let mut connection = database.connect().await.unwrap();
    sqlx::query_scalar("SELECT count(*) FROM effect")
        .fetch_one(&mut connection)
        .await
        .unwrap()
}

async fn no_transaction_is_open(database: &TestDatabase) {
    eventually("no transaction is open", async || {
        database.open_transactions().await.unwrap().is_empty()
    })
    .await;
}

async fn eventually(what: &str, condition: impl AsyncFn() -> bool) {
    let began = Instant::now();
    while !condition().await {
        assert!(began.elapsed() < PATIENCE, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
