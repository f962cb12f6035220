//! The plain sequential run: it processes every record by itself, in order, each group at once. All other runs must
//! equal it.

use warptape_kernels::Isa;
use warptape_schemas::TickDecoder;
use warptape_schemas::tick::TickColumns;
use warptape_stages::{
    GroupOutput, GroupQueue, GroupStage, PartitionIntake, SignalMerge, StageConfig, TickRecord,
};

use crate::market::written_ns;

/// Outputs of one partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outputs {
    /// Encoded signals in order.
    pub signals: Vec<Vec<u8>>,
    /// Offset and row of each late tick.
    pub late: Vec<(i64, i32)>,
    /// Offset of each dead letter, and its rows; the rows are empty if it concerns the whole record.
    pub dead: Vec<(i64, Vec<i32>)>,
}

/// Returns the state of the host's part of the stages after the records of one partition.
pub fn intake(config: &StageConfig, records: &[Vec<u8>]) -> PartitionIntake {
    let mut intake = PartitionIntake::new(config);
    let mut queues: Vec<_> = (0..config.groups_per_partition).map(|_| GroupQueue::default()).collect();
    let mut decoder = TickDecoder::new().by_rows(true);
    for (offset, record) in (0_i64..).zip(records) {
        let mut columns = TickColumns::default();
        let record = TickRecord { offset, written_ns: written_ns(record), value: record };
        let _ = intake.accept_record(record, &mut decoder, &mut columns, &mut queues, &mut Vec::new());
    }
    intake
}

/// Processes the records of one partition.
pub fn run(config: &StageConfig, records: &[Vec<u8>]) -> Outputs {
    let groups = config.groups_per_partition as usize;
    let mut intake = PartitionIntake::new(config);
    let mut stages: Vec<_> = (0..groups).map(|_| GroupStage::new(config, Isa::Baseline)).collect();
    let mut queues: Vec<_> = (0..groups).map(|_| GroupQueue::default()).collect();
    let mut decoder = TickDecoder::new().by_rows(true);
    let mut columns = TickColumns::default();
    let mut outputs = Outputs::default();
    for (offset, record) in (0_i64..).zip(records) {
        let mut late = Vec::new();
        let record = TickRecord { offset, written_ns: written_ns(record), value: record };
        if intake.accept_record(record, &mut decoder, &mut columns, &mut queues, &mut late).is_err() {
            outputs.dead.push((offset, Vec::new()));
            continue;
        }
        let is_only = columns.len() == 1;
        let rows = |row: usize| if is_only { Vec::new() } else { vec![row as i32] };
        outputs.dead.extend(columns.rejected.iter().map(|invalid| (offset, rows(invalid.row))));
        outputs.late.extend(late.iter().map(|late| (offset, late.index as i32)));
        let mut merge = SignalMerge::default();
        for (queue, stage) in queues.iter_mut().zip(&mut stages) {
            let mut output = GroupOutput::default();
            stage.run(queue.take(queue.rows.len()), &mut output);
            merge.push(output.signals);
        }
        outputs.signals.extend(merge.take_before(i64::MAX).iter().map(|signal| signal.bytes.to_vec()));
    }
    outputs
}
