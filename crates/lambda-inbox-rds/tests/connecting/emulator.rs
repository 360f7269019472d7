//! AWS Secrets Manager, spoken by an emulator: a process of its own on 127.0.0.1.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// On a cold, busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Secrets Manager on 127.0.0.1. It ends with this value, or with the test's process.
pub(crate) struct Emulator {
    pub(crate) address: SocketAddr,
    shell: Child,
    _state: tempfile::TempDir,
}

impl Emulator {
    pub(crate) async fn start() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let tool = root.join("scripts/tool");
        install(&root, &tool);
        let address = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap();
        let state = tempfile::tempdir().unwrap();
        let shell = Command::new("/bin/sh")
            .args([
                "-c",
                "\"$1\" ministack & emulator=$!; cat; kill \"$emulator\"; wait",
                "sh",
            ])
            .arg(&tool)
            .env("BIND_HOST", "127.0.0.1")
            .env("GATEWAY_PORT", address.port().to_string())
            .env("HOME", state.path())
            .env("TMPDIR", state.path())
            .current_dir(state.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let emulator = Self {
            address,
            shell,
            _state: state,
        };
        let began = Instant::now();
        while TcpStream::connect(address).await.is_err() {
            assert!(
                began.elapsed() < START_TIMEOUT,
                "the emulator does not start"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        emulator
    }

    pub(crate) async fn create_secret(&self, user: &str, password: &str) -> String {
        let secret = serde_json::json!({ "username": user, "password": password });
        self.create(user, &secret.to_string()).await
    }

    pub(crate) async fn create(&self, name: &str, secret: &str) -> String {
        let body = serde_json::json!({ "Name": name, "SecretString": secret });
        let answer = self.call("CreateSecret", &body).await;
        answer["ARN"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn put_secret(&self, arn: &str, user: &str, password: &str) {
        let secret = serde_json::json!({ "username": user, "password": password }).to_string();
        let body = serde_json::json!({ "SecretId": arn, "SecretString": secret });
        self.call("PutSecretValue", &body).await;
    }

    async fn call(&self, operation: &str, body: &serde_json::Value) -> serde_json::Value {
        let body = body.to_string();
        let request = format!(
            "POST / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Length: {}\r\n\
             Content-Type: application/x-amz-json-1.1\r\nX-Amz-Target: secretsmanager.{operation}\r\n\
             Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/secretsmanager/aws4_request, \
             SignedHeaders=host, Signature=0\r\n\r\n{body}",
            self.address,
            body.len(),
        );
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let json = answer.find('{').unwrap_or_else(|| panic!("{answer}"));
        let mut values = serde_json::Deserializer::from_str(&answer[json..]).into_iter();
        values.next().unwrap().unwrap()
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        drop(self.shell.stdin.take());
        let _ = self.shell.wait();
    }
}

/// Once, though every test is a process of its own.
fn install(root: &Path, tool: &Path) {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    std::fs::create_dir_all(&target).unwrap();
    let lock = std::fs::File::create(target.join("ministack.lock")).unwrap();
    lock.lock().unwrap();
    let installed = Command::new(tool)
        .args(["ministack", "--help"])
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(
        installed.success(),
        "the emulator of Secrets Manager (ministack, from PyPI) cannot be installed: python3 with venv and \
         pip are needed"
    );
}
