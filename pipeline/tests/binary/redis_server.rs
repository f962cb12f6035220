//! Redis for tests: the one that the tests are given, and own ones that may be killed, stopped and emptied.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use redis::{Client, Connection};
use tempfile::TempDir;

use super::processes::{DEADLINE, folder};

/// How long a test waits before it looks again whether a server answers.
const LOOK: Duration = Duration::from_millis(10);

/// The URL of the Redis that tests share. Each test has a prefix of its own there.
pub fn shared() -> String {
    std::env::var("WARPTAPE_TEST_REDIS").expect(
        "WARPTAPE_TEST_REDIS is not set: `tests/services` starts a Redis and exports it, or give the URL of one, \
         such as redis://127.0.0.1:6379",
    )
}

/// A connection to the server of a URL.
pub fn connect(url: &str) -> Connection {
    let client = Client::open(url).expect("the URL of a Redis");
    client.get_connection_with_timeout(DEADLINE).unwrap_or_else(|error| panic!("{url}: {error}"))
}

/// A server of one test, without persistence. It is killed when dropped.
pub struct RedisServer {
    child: Child,
    port: u16,
    options: Vec<String>,
    folder: TempDir,
}

impl RedisServer {
    /// Starts a server with more options, in which `{port}` stands for its port.
    pub fn start(options: &[&str]) -> RedisServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("a bound address").port();
        drop(listener);
        let options: Vec<String> =
            options.iter().map(|option| option.replace("{port}", &port.to_string())).collect();
        let folder = folder();
        let child = spawn(port, &folder, &options);
        let server = RedisServer { child, port, options, folder };
        server.wait();
        server
    }

    /// A port of this machine on which nobody listens, as the URL of a server.
    pub fn nowhere() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        format!("redis://127.0.0.1:{}", listener.local_addr().expect("a bound address").port())
    }

    /// Its URL, without a password.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A connection.
    pub fn connect(&self) -> Connection {
        connect(&self.url())
    }

    /// Kills it: all that it held is gone.
    pub fn kill(&mut self) {
        self.child.kill().expect("a child can be killed");
        self.child.wait().expect("a child can be waited for");
    }

    /// Starts it again after a kill, on the same port.
    pub fn restart(&mut self) {
        self.child = spawn(self.port, &self.folder, &self.options);
        self.wait();
    }

    /// Sends a signal by name, such as `STOP`.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args([format!("-{name}"), self.child.id().to_string()]).status();
        assert!(status.expect("kill runs").success());
    }

    fn wait(&self) {
        let started = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(started.elapsed() < DEADLINE, "redis-server does not answer on port {}", self.port);
            std::thread::park_timeout(LOOK);
        }
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn spawn(port: u16, folder: &TempDir, options: &[String]) -> Child {
    Command::new("redis-server")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
        .args(options)
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("redis-server starts: where it is missing, install it (Debian: apt-get install redis-server)")
}
