//! Groups whose state stays in a device's memory: the lane side of a GPU.

use std::collections::BTreeMap;
use std::ops::Range;

use warptape_kernels::device::{
    Device, DeviceClosedBar, DeviceError, DeviceSlab, GroupRows, RunningBatch, SlabConfig,
};
use warptape_kernels::{RowKind, Rows, SignalParams};

use crate::{GroupInput, GroupOutput, GroupStage, Lateness, Repack, StageConfig};

/// Slots for which there is room at first.
const CAPACITY_MIN: usize = 1024;

/// Groups whose state stays in a device's memory. Their outputs equal those of their [`GroupStage`]s.
pub struct DeviceGroups<K> {
    slab: DeviceSlab,
    signals: SignalParams,
    groups: BTreeMap<K, DeviceGroup>,
}

struct DeviceGroup {
    /// The symbols and the encoding of signals. Its slabs are as old as the last barrier.
    stage: Box<GroupStage>,
    /// The device's slot of each slot of the group.
    slots: Vec<u32>,
}

/// Inputs that were begun.
pub struct Begun<K> {
    parts: Vec<Part<K>>,
    /// The batch that the device has not finished; `None` if there is none.
    running: Option<RunningBatch>,
}

/// The rest of a group's input.
struct Part<K> {
    key: K,
    input: GroupInput,
    /// Ends of runs of rows, the last one first.
    cuts: Vec<Cut>,
    /// Rows that were run.
    done: usize,
    output: GroupOutput,
}

/// The end of a run of rows.
#[derive(Clone, Copy, Debug)]
enum Cut {
    /// Before this row, which is a barrier: the state is read there.
    Barrier(usize),
    /// After this row, because event time may go back after it: kernels close bars by the last watermark before a row.
    Back(usize),
}

impl Cut {
    /// The first row after the run that this ends.
    fn end(self) -> usize {
        match self {
            Self::Barrier(row) => row,
            Self::Back(row) => row + 1,
        }
    }

    /// The cuts among rows, the first one first.
    fn among(rows: &Rows) -> impl DoubleEndedIterator<Item = Self> + '_ {
        (0..rows.len()).filter_map(|row| match rows.kind[row] {
            RowKind::BARRIER => Some(Self::Barrier(row)),
            RowKind::CUT => Some(Self::Back(row)),
            _ => None,
        })
    }
}

impl<K: Ord + Copy> DeviceGroups<K> {
    /// No groups, on a device of this name.
    pub fn new(name: &str, device: Box<dyn Device>, config: &StageConfig) -> Result<Self, DeviceError> {
        let slab = SlabConfig {
            bars: config.bars.clone(),
            allowed_lateness_ns: Lateness::of(config).max_ns(),
            indicators: config.indicators.clone(),
            signals: config.signals,
        };
        Ok(Self {
            slab: DeviceSlab::new(name, device, slab, CAPACITY_MIN)?,
            signals: config.signals,
            groups: BTreeMap::new(),
        })
    }

    /// Takes a group on, in place of an older state of it.
    pub fn install(&mut self, key: K, mut stage: Box<GroupStage>) -> Result<(), DeviceError> {
        self.retain(|other| *other != key);
        let slots = self.slab.take_slots(stage.symbol_count())?;
        self.slab.install(&slots, &stage.slot_state())?;
        self.groups.insert(key, DeviceGroup { stage, slots });
        Ok(())
    }

    /// Gives up an installed group. Returns its state.
    pub fn take(&mut self, key: &K) -> Result<Box<GroupStage>, DeviceError> {
        let DeviceGroup { mut stage, slots } = self.groups.remove(key).expect("the group was installed");
        self.slab.read(&slots, &mut stage.slot_state())?;
        self.slab.give_back(&slots);
        Ok(stage)
    }

    /// Lets go of all groups that are not kept.
    pub fn retain(&mut self, mut keeps: impl FnMut(&K) -> bool) {
        let Self { slab, groups, .. } = self;
        groups.retain(|key, group| {
            let kept = keeps(key);
            if !kept {
                slab.give_back(&group.slots);
            }
            kept
        });
    }

    /// Bytes of the device's memory: slots, staging and workspace.
    pub fn memory_bytes(&self) -> [usize; 3] {
        self.slab.memory_bytes()
    }

    /// Processes rows of installed groups, each named once. Outputs are in the order of the inputs.
    pub fn run(&mut self, inputs: Vec<(K, GroupInput)>) -> Result<Vec<GroupOutput>, DeviceError> {
        let begun = self.begin(inputs)?;
        self.finish(begun)
    }

    /// True if a group's input may begin while others are under way. It must bring no symbols, because they take slots,
    /// and no cuts, because a state is read or event time goes back there.
    pub fn may_overlap(input: &GroupInput) -> bool {
        input.symbols.is_empty() && Cut::among(&input.rows).next().is_none()
    }

    /// Begins to process rows, as [`DeviceGroups::run`] does. One more batch may begin before this one is finished, if
    /// all of its inputs [may overlap](DeviceGroups::may_overlap) others.
    pub fn begin(&mut self, inputs: Vec<(K, GroupInput)>) -> Result<Begun<K>, DeviceError> {
        let beside = inputs.iter().all(|(_, input)| Self::may_overlap(input));
        let mut parts: Vec<Part<K>> = inputs.into_iter().map(Part::new).collect();
        let mut running = None;
        while running.is_none() && parts.iter().any(|part| !part.is_done()) {
            let batch = self.begin_to_cuts(&mut parts)?;
            if beside {
                running = Some(batch);
            } else {
                self.finish_to_cuts(&mut parts, batch)?;
            }
        }
        Ok(Begun { parts, running })
    }

    /// Waits for the batch that was begun first.
    pub fn finish(&mut self, begun: Begun<K>) -> Result<Vec<GroupOutput>, DeviceError> {
        let Begun { mut parts, running } = begun;
        if let Some(batch) = running {
            self.finish_to_cuts(&mut parts, batch)?;
        }
        Ok(parts.into_iter().map(|part| part.output).collect())
    }

    /// Runs the rows of all groups at once, each up to its next cut.
    fn begin_to_cuts(&mut self, parts: &mut [Part<K>]) -> Result<RunningBatch, DeviceError> {
        for part in parts.iter_mut().filter(|part| !part.is_done()) {
            let group = self.groups.get_mut(&part.key).expect("the group was installed");
            // The state read at a cut does not have the symbols after it yet.
            let barrier = part.cuts.iter().rev().find_map(|cut| match cut {
                Cut::Barrier(row) => Some(*row),
                Cut::Back(_) => None,
            });
            let offset = barrier.map_or(i64::MAX, |barrier| part.input.rows.offset[barrier]);
            let back = group.stage.add_symbols(&mut part.input.symbols, offset);
            let fresh = group.stage.symbol_count() - group.slots.len();
            group.slots.extend(self.slab.take_slots(fresh)?);
            if !back.is_empty() {
                let slots: Vec<u32> = back.iter().map(|slot| group.slots[*slot as usize]).collect();
                self.slab.install(&slots, &group.stage.of_slots(&back).slot_state())?;
            }
        }
        let running: Vec<GroupRows<'_>> = parts
            .iter()
            .filter(|part| !part.is_done())
            .map(|part| GroupRows {
                slots: &self.groups[&part.key].slots,
                rows: &part.input.rows,
                range: part.next_range(),
            })
            .collect();
        let staged = self.slab.stage(&running)?;
        self.slab.begin(&staged)
    }

    fn finish_to_cuts(&mut self, parts: &mut [Part<K>], batch: RunningBatch) -> Result<(), DeviceError> {
        let closed = self.slab.finish(batch)?;
        self.receive(parts, &closed);
        for part in parts.iter_mut().filter(|part| !part.is_done()) {
            let group = self.groups.get_mut(&part.key).expect("the group was installed");
            group.stage.emit(&mut part.output.signals);
            part.done = part.next_range().end;
            let cut = part.cuts.pop();
            if let Some(Cut::Back(row)) = cut
                && let Some(seen_since_ns) = part.input.rows.seen_since_ns(row)
            {
                group.stage.see_since(seen_since_ns);
            }
            if let Some(Cut::Barrier(barrier)) = cut {
                self.slab.read(&group.slots, &mut group.stage.slot_state())?;
                let number = part.input.rows.time_ns[barrier];
                let repack = group.stage.meet_barrier(number, &mut part.input.repacks, &mut part.output);
                if let Some(Repack { slots, pages, .. }) = repack {
                    let of_device =
                        |slots: &[u32]| slots.iter().map(|slot| group.slots[*slot as usize]).collect();
                    let left: Vec<Vec<u32>> = pages.iter().map(|(_, slots)| of_device(slots)).collect();
                    group.slots = of_device(&slots);
                    left.iter().for_each(|slots| self.slab.give_back(slots));
                }
                part.done = barrier + 1;
            }
        }
        Ok(())
    }

    /// Gives each group its closed bars, which come in the order of the groups.
    fn receive(&mut self, parts: &[Part<K>], mut closed: &[DeviceClosedBar]) {
        let (mut first_place, mut first_row) = (0, 0);
        for part in parts.iter().filter(|part| !part.is_done()) {
            let group = self.groups.get_mut(&part.key).expect("the group was installed");
            group.stage.specs.iter_mut().for_each(|spec| spec.clear());
            let places_end = first_place + group.slots.len();
            let (of_group, rest) =
                closed.split_at(closed.partition_point(|bar| (bar.place as usize) < places_end));
            for bar in of_group {
                let state = &mut group.stage.specs[bar.spec as usize];
                let out = (&mut state.closed, &mut state.columns, &mut state.detected);
                let (slot, row) = (bar.place - first_place as u32, bar.row as usize - first_row);
                bar.receive(slot, &part.input.rows, row, &self.signals, out);
            }
            closed = rest;
            first_place = places_end;
            first_row += part.input.rows.len();
        }
    }
}

impl<K> Part<K> {
    fn new((key, input): (K, GroupInput)) -> Self {
        let cuts = Cut::among(&input.rows).rev().collect();
        Self { key, input, cuts, done: 0, output: GroupOutput::default() }
    }

    fn is_done(&self) -> bool {
        self.done == self.input.rows.len() && self.input.symbols.is_empty()
    }

    /// The rows up to the next cut.
    fn next_range(&self) -> Range<usize> {
        self.done..self.cuts.last().map_or(self.input.rows.len(), |cut| cut.end())
    }
}
