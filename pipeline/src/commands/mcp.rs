//! `warptape mcp`: offers the commands to an assistant as tools, by the Model Context Protocol over standard input and
//! output.
//!
//! A tool is a command: a call runs this executable with fixed flags and checked values. So answers equal those of the
//! command line, and a call can be ended at any time.

mod answer;
mod call;
mod check;
mod child;
mod page;
mod parameters;
mod server;
mod tools;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::io::stdio_pipes;
use tokio::signal::unix::{SignalKind, signal};

use self::child::Children;
use self::page::Endpoint;
use self::server::Server;
use crate::cli::McpArgs;
use crate::printable::to_stderr;
use crate::settings::Settings;
use crate::usage_error::UsageError;

/// Serves one client until it closes standard input, or until SIGINT or SIGTERM.
pub fn execute(args: &McpArgs, settings: &Settings, config: Option<&Path>) -> anyhow::Result<ExitCode> {
    let children = Children::new(config, Duration::from_secs(args.timeout_s))?;
    let folder = args.allow_writes.as_deref().map(existing_folder).transpose()?;
    let endpoint = args.endpoint.as_ref().map(|url| Endpoint::new(url, settings.endpoint.token.as_ref()));
    let mut logs = vec![settings.log.url.clone()];
    for log in &args.other_log {
        if !logs.contains(log) {
            logs.push(log.clone());
        }
    }
    let server = Server::new(children, logs, folder, endpoint);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(serve(server));
    // A pending read of standard input, such as from a terminal, cannot be cancelled; so the runtime does not wait for
    // it.
    runtime.shutdown_background();
    served.map(|()| ExitCode::SUCCESS)
}

async fn serve(server: Server) -> anyhow::Result<()> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    if std::io::IsTerminal::is_terminal(&std::io::stdin()) {
        to_stderr(format_args!("waiting for an assistant's client on standard input; Ctrl-C to end"));
    }
    tokio::select! {
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
        served = converse(server) => served,
    }
}

/// Answers the client until it closes standard input.
async fn converse(server: Server) -> anyhow::Result<()> {
    match server.serve(stdio_pipes()).await {
        Ok(running) => {
            running.waiting().await.context("the conversation ended in a panic")?;
            Ok(())
        }
        Err(ServerInitializeError::ConnectionClosed(_)) => Err(UsageError(
            "standard input ended before a client's first request; let an assistant's client start this command \
             (docs/mcp.md)"
                .to_owned(),
        )
        .into()),
        Err(error) => Err(error).context("cannot serve the client's first request"),
    }
}

/// Returns the absolute path of a folder; an error if there is no such folder.
fn existing_folder(folder: &Path) -> Result<PathBuf, UsageError> {
    let found = fs::canonicalize(folder).ok().filter(|path| path.is_dir());
    found.ok_or_else(|| {
        UsageError(format!("--allow-writes {}: no such folder; create it first", folder.display()))
    })
}
