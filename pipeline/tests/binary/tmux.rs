//! A terminal for tests, provided by tmux.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::processes::{DEADLINE, WARPTAPE};

/// Text that the shell prints when a command ends, before the exit code.
const ENDED: &str = "ended with";

/// A terminal of 120 columns and 40 lines. It has its own tmux server, which ends when it is dropped.
pub struct Tmux<'a> {
    folder: &'a Path,
}

impl<'a> Tmux<'a> {
    /// Starts a shell in a terminal, in this folder.
    pub fn start(folder: &'a Path) -> Self {
        let tmux = Self { folder };
        let size = ["-x", "120", "-y", "40"];
        tmux.run(&[&["new-session", "-d"][..], &size, &["env", "PS1=ready ", "sh", "-i"]].concat());
        tmux
    }

    /// Runs a command of tmux, and returns its output.
    pub fn run(&self, arguments: &[&str]) -> String {
        let output = Command::new("tmux")
            .args(["-f", "/dev/null", "-S"])
            .arg(self.folder.join("tmux"))
            .args(arguments)
            .current_dir(self.folder)
            .env_remove("TMUX")
            .env("TERM", "xterm-256color")
            .env("LC_ALL", "C.UTF-8")
            .env("WARPTAPE", WARPTAPE)
            .stdin(Stdio::null())
            .output()
            .expect("tmux is installed: tests/run does it, from the Debian package of this name");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "tmux {arguments:?}: {error}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Presses keys, given by tmux's names.
    pub fn press(&self, keys: &[&str]) {
        self.run(&[&["send-keys"], keys].concat());
    }

    /// Types text unchanged.
    pub fn write(&self, text: &str) {
        self.run(&["send-keys", "-l", text]);
    }

    /// Types a command.
    fn command(&self, text: &str) {
        self.write(text);
        self.press(&["Enter"]);
    }

    /// Waits until the screen shows all these texts, and returns the screen.
    #[track_caller]
    pub fn await_screen(&self, expected: &[&str]) -> String {
        let until = Instant::now() + DEADLINE;
        loop {
            let screen = self.run(&["capture-pane", "-p"]);
            let missing: Vec<_> = expected.iter().filter(|text| !screen.contains(**text)).collect();
            if missing.is_empty() {
                return screen;
            }
            assert!(Instant::now() < until, "{missing:?} is not shown:\n{screen}");
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    /// True if the terminal shows the alternate screen instead of the shell's.
    pub fn is_on_other_screen(&self) -> bool {
        self.run(&["display-message", "-p", "#{alternate_on}"]).trim() == "1"
    }

    /// Starts a command. When it ends, the shell prints its exit code, and whether the terminal has its former state.
    pub fn start_command(&self, command: &str) {
        let command = format!("stty -g >before; {command}; ");
        let after = "printf 'ended %s %s, ' with $?; stty -g >after; cmp before after && echo restored";
        self.command(&(command + after));
    }

    /// Returns the process of the command.
    fn process(&self) -> String {
        let shell = self.run(&["display-message", "-p", "#{pane_pid}"]).trim().to_owned();
        let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children"));
        children.expect("a shell").trim().to_owned()
    }

    /// Closes the terminal under the command, and waits until the command has ended.
    #[track_caller]
    pub fn close(self) {
        let process = self.process();
        let folder = Path::new("/proc").join(&process);
        assert!(folder.exists(), "no process {process:?}");
        drop(self);
        let until = Instant::now() + DEADLINE;
        while folder.exists() {
            assert!(Instant::now() < until, "the command goes on without its terminal");
            std::thread::park_timeout(Duration::from_millis(20));
        }
    }

    /// Sends a signal to the command.
    pub fn signal(&self, name: &str) {
        let process = self.process();
        let status = Command::new("kill").args([&format!("-{name}"), &process]).status().expect("kill runs");
        assert!(status.success(), "no process {process:?}");
    }

    /// Changes the size of the terminal.
    pub fn resize(&self, columns: u16, lines: u16) {
        self.run(&["resize-window", "-x", &columns.to_string(), "-y", &lines.to_string()]);
    }

    /// Waits until the command has ended with this exit code, and has restored the terminal.
    #[track_caller]
    pub fn await_end(&self, code: i32) {
        let screen = self.await_screen(&[&format!("{ENDED} {code}, restored")]);
        assert!(!self.is_on_other_screen(), "{screen}");
        assert_eq!(self.run(&["display-message", "-p", "#{cursor_flag}"]).trim(), "1", "the cursor is shown");
        self.command("clear");
        let until = Instant::now() + DEADLINE;
        while self.run(&["capture-pane", "-p"]).contains(ENDED) {
            assert!(Instant::now() < until, "the screen is not cleared");
        }
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        let socket = self.folder.join("tmux");
        drop(Command::new("tmux").arg("-S").arg(socket).arg("kill-server").output());
    }
}
