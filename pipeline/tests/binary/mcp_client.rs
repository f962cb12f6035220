//! A client of `mcp` that sends and parses JSON-RPC itself.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::processes::{DEADLINE, WARPTAPE};

/// A client with its server; the server is killed when the client is dropped.
pub struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    next_id: u64,
}

impl Client {
    /// Starts a server and initialises the session. Also returns the server's answer.
    pub fn start(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> (Self, Value) {
        let mut child = Command::new(WARPTAPE)
            .arg("mcp")
            .args(arguments)
            .current_dir(folder)
            .env_clear()
            .envs(environment.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let out = BufReader::new(child.stdout.take().expect("a pipe"));
        let input = child.stdin.take();
        let (sender, lines) = channel();
        std::thread::spawn(move || out.lines().map_while(Result::ok).all(|line| sender.send(line).is_ok()));
        let mut client = Self { child, input, lines, next_id: 0 };
        let hello = client.ask(
            "initialize",
            &json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            }),
        );
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        (client, hello["result"].clone())
    }

    /// Starts a server of the log `a.db` without further arguments.
    pub fn of_a(folder: &Path) -> Self {
        Self::start(folder, &["--log", "sqlite:a.db"], &[]).0
    }

    pub fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("it is open");
        writeln!(input, "{message}").expect("the server reads");
    }

    /// Sends a request, and returns its number.
    pub fn request(&mut self, method: &str, params: &Value) -> u64 {
        self.next_id += 1;
        self.send(&json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params}));
        self.next_id
    }

    /// Returns the next message. It must be JSON, because standard output contains nothing else.
    #[track_caller]
    pub fn message(&mut self) -> Value {
        let line = self.lines.recv_timeout(DEADLINE).expect("a message");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    /// Returns the answer to a request. Notifications before it are skipped.
    #[track_caller]
    pub fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.request(method, params);
        loop {
            let message = self.message();
            if message["id"] == id {
                return message;
            }
            assert!(message.get("id").is_none(), "{message}");
        }
    }

    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    }

    /// Returns the structured content of an answer, after checking that the answer's text repeats it.
    #[track_caller]
    pub fn facts(&mut self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{result}");
        let facts = result["structuredContent"].clone();
        let text: Value =
            serde_json::from_str(result["content"][0]["text"].as_str().expect("a text")).expect("JSON");
        assert_eq!(text, facts);
        facts
    }

    /// Returns the text of an answer without structured content.
    #[track_caller]
    pub fn text(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(
            (&result["isError"], &result["structuredContent"]),
            (&json!(false), &Value::Null),
            "{result}"
        );
        result["content"][0]["text"].as_str().expect("a text").to_owned()
    }

    /// Returns the error message of a call that must fail.
    #[track_caller]
    pub fn refusal(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{result}");
        result["content"][0]["text"].as_str().expect("a text").to_owned()
    }

    /// Returns the tools by name.
    pub fn tools(&mut self) -> BTreeMap<String, Value> {
        let answer = self.ask("tools/list", &json!({}));
        let tools = answer["result"]["tools"].as_array().expect("a list").clone();
        tools.into_iter().map(|tool| (tool["name"].as_str().expect("a name").to_owned(), tool)).collect()
    }

    /// Returns the number of running child processes of the server. An ended one that waits to be reaped does not
    /// count.
    pub fn children(&self) -> usize {
        let id = self.child.id();
        let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        let runs = |id: &&str| {
            let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
        };
        children.expect("Linux tells children").split_whitespace().filter(runs).count()
    }

    /// Waits until the server has this number of child processes.
    #[track_caller]
    pub fn await_children(&self, expected: usize) {
        let until = Instant::now() + DEADLINE;
        while self.children() != expected {
            assert!(Instant::now() < until, "{} children, not {expected}", self.children());
            std::thread::park_timeout(Duration::from_millis(5));
        }
    }

    /// Returns the process number of the server.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the server ends, and returns its exit code.
    pub fn end(mut self) -> Option<i32> {
        drop(self.input.take());
        while self.lines.recv_timeout(DEADLINE).is_ok() {}
        self.child.wait().expect("a child can be waited for").code()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
