//! Poolers that refuse what a client sends first.

use crate::support::{PATIENCE, chain, connect, refusal, source, url};
use lambda_inbox_store::Class;
use lambda_inbox_testkit::postgres::{Cluster, TestDatabase};
use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;

const URL: &str = "DATABASE_URL";
const POOLED: &str = "LAMBDA_INBOX_DB_POOLED";

/// Stands before a server, and refuses clients that send a certain parameter at start-up.
struct Pooler {
    server: SocketAddr,
    refuses: &'static str,
    code: &'static str,
}

/// As RDS Proxy answers `options`.
const RDS_PROXY: (&str, &str) = ("options", "0A000");
/// As PgBouncer answers `extra_float_digits`, which sqlx sends unless told not to.
const PGBOUNCER: (&str, &str) = ("extra_float_digits", "08P01");

impl Pooler {
    /// Serves until the test's runtime ends.
    async fn start(
        database: &TestDatabase,
        (refuses, code): (&'static str, &'static str),
    ) -> SocketAddr {
        let options = database.options();
        let pooler = Self {
            server: format!("{}:{}", options.get_host(), options.get_port())
                .parse()
                .unwrap(),
            refuses,
            code,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                // A client that goes away is its own affair.
                let _ = pooler.serve(client).await;
            }
        });
        address
    }

    async fn serve(&self, mut client: TcpStream) -> io::Result<()> {
        let start_up = loop {
            let packet = start_up_packet(&mut client).await?;
            // SSLRequest: <https://www.postgresql.org/docs/current/protocol-message-formats.html>
            if packet[4..8] != 80_877_103_u32.to_be_bytes() {
                break packet;
            }
            client.write_all(b"N").await?;
        };
        let mut texts = start_up[8..].split(|byte| *byte == 0);
        if texts.any(|text| text == self.refuses.as_bytes()) {
            let fields = format!("SFATAL\0VFATAL\0C{}\0Munsupported\0\0", self.code);
            let length = u32::try_from(fields.len() + 4).unwrap();
            client.write_all(b"E").await?;
            client.write_all(&length.to_be_bytes()).await?;
            return client.write_all(fields.as_bytes()).await;
        }
        let mut server = TcpStream::connect(self.server).await?;
        server.write_all(&start_up).await?;
        copy_bidirectional(&mut client, &mut server).await.map(drop)
    }
}

async fn start_up_packet(client: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut packet = vec![0; 4];
    client.read_exact(&mut packet).await?;
    let length = u32::from_be_bytes(packet[..4].try_into().unwrap()) as usize;
    packet.resize(length, 0);
    client.read_exact(&mut packet[4..]).await?;
    Ok(packet)
}

#[tokio::test]
async fn a_pooler_that_refuses_start_up_options_is_answered_by_the_setting_for_it() {
    let database = TestDatabase::create().await.unwrap();
    let cases = [(RDS_PROXY, "?options=-c%20geqo%3Doff"), (PGBOUNCER, "")];
    for (pooler, query) in cases {
        let address = Pooler::start(&database, pooler).await;
        let behind = url(&database.options().port(address.port()));

        let error = refusal(&[(URL, &format!("{behind}{query}"))]).await;
        assert!(
            error.contains("LAMBDA_INBOX_DB_POOLED=on"),
            "{pooler:?}: {error}"
        );

        let pooled = [(URL, behind.as_str()), (POOLED, "on")];
        let mut connection = connect(&pooled).await.unwrap();
        let one: i32 = sqlx::query_scalar("SELECT 1")
            .fetch_one(&mut *connection)
            .await
            .unwrap();
        assert_eq!(one, 1);
    }
}

#[tokio::test]
async fn a_refused_password_is_told_by_its_sqlstate_and_not_shown() {
    let cluster = Cluster::start().await.unwrap();
    let wrong = url(&cluster.options().password("hunter2"));
    let source = source(&[(URL, &wrong)]).unwrap();
    let error = source.connect(Instant::now() + PATIENCE).await.unwrap_err();
    let text = format!("{} {error:?}", chain(&error));
    assert!(!text.contains("hunter2"), "{text}");
    assert_eq!(error.class(), Class::Connection, "{text}");
    assert!(text.contains("28P01"), "{text}");
}
