//! Redis servers for tests: the shared one, and others that a test may kill, stop and empty.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use redis::{Client, Connection};
use tempfile::TempDir;

use super::processes::{DEADLINE, folder};

/// Wait of a test between two checks whether a server answers.
const LOOK: Duration = Duration::from_millis(10);

/// Returns the URL of the Redis server that tests share. Each test uses its own prefix there.
pub fn shared() -> String {
    std::env::var("WARPTAPE_TEST_REDIS").expect(
        "WARPTAPE_TEST_REDIS is not set: `tests/services` starts a Redis and exports it, or give the URL of one, \
         such as redis://127.0.0.1:6379",
    )
}

/// Connects to the server of a URL.
pub fn connect(url: &str) -> Connection {
    let client = Client::open(url).expect("the URL of a Redis");
    client.get_connection_with_timeout(DEADLINE).unwrap_or_else(|error| panic!("{url}: {error}"))
}

/// Greatest number of ports to try, because another process may take a free port a moment later.
const PORTS_MAX: usize = 10;

/// A server of one test, without persistence; it is killed when dropped.
pub struct RedisServer {
    child: Child,
    port: u16,
    /// Options of the server, in which `{port}` is replaced by its port.
    options: Vec<String>,
    folder: TempDir,
}

impl RedisServer {
    /// Starts a server with further options, in which `{port}` is replaced by its port.
    pub fn start(options: &[&str]) -> RedisServer {
        let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
        for _ in 0..PORTS_MAX {
            let (port, folder) = (free_port(), folder());
            let child = spawn(port, &folder, &options);
            let mut server = RedisServer { child, port, options: options.clone(), folder };
            if server.answers() {
                return server;
            }
        }
        panic!("redis-server ended by itself on {PORTS_MAX} ports");
    }

    /// Returns a URL at which no server listens: a privileged port of this machine that is not in use.
    pub fn nowhere() -> String {
        "redis://127.0.0.1:1".to_owned()
    }

    /// Returns the server's URL, without a password.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Returns the server's port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Connects to the server.
    pub fn connect(&self) -> Connection {
        connect(&self.url())
    }

    /// Kills the server and loses all of its contents.
    pub fn kill(&mut self) {
        self.child.kill().expect("a child can be killed");
        self.child.wait().expect("a child can be waited for");
    }

    /// Starts the server again after a kill, on the same port.
    pub fn restart(&mut self) {
        self.child = spawn(self.port, &self.folder, &self.options);
        assert!(self.answers(), "redis-server ended by itself on port {}", self.port);
    }

    /// Sends a signal by name, such as `STOP`.
    pub fn signal(&self, name: &str) {
        let status = Command::new("kill").args([format!("-{name}"), self.child.id().to_string()]).status();
        assert!(status.expect("kill runs").success());
    }

    /// Waits until the server listens; false if it ended.
    fn answers(&mut self) -> bool {
        let started = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            if self.child.try_wait().expect("a child can be waited for").is_some() {
                return false;
            }
            assert!(started.elapsed() < DEADLINE, "redis-server does not answer on port {}", self.port);
            std::thread::park_timeout(LOOK);
        }
        true
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("a bound address").port()
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn spawn(port: u16, folder: &TempDir, options: &[String]) -> Child {
    let port = port.to_string();
    Command::new("redis-server")
        .args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
        .args(options.iter().map(|option| option.replace("{port}", &port)))
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("redis-server starts: where it is missing, install it (Debian: apt-get install redis-server)")
}
