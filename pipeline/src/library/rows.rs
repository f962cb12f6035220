//! Rows of a log: of a topic, or derived from a run's journals.

use std::iter;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use serde_json::json;
use warptape_eventlog::EventLog;
use warptape_replay::{ExportOptions, VerifyOptions, Window};
use warptape_schemas::SchemaSource;
use warptape_tables::{Batches, RowFilter, RowTopic, TABLES, Table, TablesError, TopicReader};

use crate::open::{OpenLog, Purpose, open_log};
use crate::settings::Settings;
use crate::usage_error::UsageError;

/// Rows of a table as record batches.
pub struct Rows {
    schema: SchemaRef,
    batches: Box<dyn Iterator<Item = Result<RecordBatch, TablesError>> + Send>,
}

impl Rows {
    /// Returns the schema of all batches.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// Reads a table. Rows of a topic end at the topic's end; rows derived from journals end between two transactions.
    pub(super) fn read(
        settings: &Settings,
        table: &'static Table,
        filter: RowFilter,
    ) -> anyhow::Result<Self> {
        if let Some(condition) = filter.lacking(&table.schema()) {
            let name = table.name;
            return Err(UsageError(format!(
                "the table {name} has no column for {condition}: leave {condition} out"
            ))
            .into());
        }
        let names = &settings.topics.names;
        let OpenLog { log, schemas, .. } = open_log(settings, Purpose::Replay)?;
        let Some(topic) = RowTopic::ALL.into_iter().find(|topic| topic.table() == table) else {
            let batches = Box::new(of_run(log, options(settings, schemas), table, filter)?);
            return Ok(Self { schema: table.schema(), batches });
        };
        let name = match topic {
            RowTopic::Signals => &names.signals,
            RowTopic::Ticks => &names.ticks,
            RowTopic::Late => &names.late,
            RowTopic::DeadLetters => &names.dead_letter,
            RowTopic::Journal => &names.journal,
            RowTopic::RiskResults => &names.risk_results,
        };
        let batches = Box::new(TopicReader::open(log, name, (topic, filter), schemas)?);
        Ok(Self { schema: table.schema(), batches })
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch, TablesError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batches.next()
    }
}

/// Returns the table of this name.
pub(super) fn table_named(name: &str) -> Result<&'static Table, UsageError> {
    let mut tables: Vec<&'static Table> = RowTopic::ALL.into_iter().map(RowTopic::table).collect();
    for table in TABLES {
        if !tables.contains(&table) {
            tables.push(table);
        }
    }
    let found = tables.iter().copied().find(|table| table.name == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = tables.iter().map(|table| table.name).collect();
        UsageError(format!("there is no table {name:?}; the tables are {}", names.join(", ")))
    })
}

fn options(settings: &Settings, schemas: Option<Arc<dyn SchemaSource>>) -> ExportOptions {
    let mut verified = VerifyOptions::new(&settings.topics.names, &settings.engine.group);
    verified.sources.schemas = schemas;
    ExportOptions {
        journal: verified.journal,
        sources: verified.sources,
        others: Vec::new(),
        window: Window::default(),
        with_ticks: true,
        by: json!({}),
    }
}

/// Returns the batches of a table derived from journals. A thread reads one batch ahead of the caller, and ends with
/// it.
fn of_run(
    log: Arc<dyn EventLog>,
    options: ExportOptions,
    table: &'static Table,
    filter: RowFilter,
) -> anyhow::Result<impl Iterator<Item = Result<RecordBatch, TablesError>> + Send> {
    let (sender, receiver) = sync_channel(0);
    let read = move || {
        let batches = match Batches::open(&*log, &options, &[table]) {
            Ok(batches) => batches,
            Err(error) => return drop(sender.send(Some(Err(error)))),
        };
        for batch in batches {
            if sender.send(Some(batch.map(|rows| filter.of(rows.batch)))).is_err() {
                return;
            }
        }
        // Without this end mark, the caller reports that rows are missing.
        drop(sender.send(None));
    };
    thread::Builder::new().name("rows".to_owned()).spawn(read)?;
    let mut is_over = false;
    Ok(iter::from_fn(move || {
        if is_over {
            return None;
        }
        let received = receiver.recv().unwrap_or(Some(Err(TablesError::CutShort)));
        is_over = !matches!(received, Some(Ok(_)));
        received
    }))
}
