//! State of slots: as words in a device's memory, and as slabs on the host.

use bytemuck::{Pod, Zeroable};

use super::Address;
use super::slab::SlabConfig;
use crate::bars::BarSlab;
use crate::bars::device::{DeviceBar, quote_words};
use crate::indicators::IndicatorSlab;
use crate::indicators::device::IndicatorArrays;
use crate::signals::SignalSlab;

/// Number of words of eight bytes of an open bar.
const BAR_WORDS: usize = size_of::<DeviceBar>() / 8;
const _: () = assert!(BAR_WORDS * 8 == size_of::<DeviceBar>());

/// Words of slots in memory: `Words` of `slots.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct Words {
    pub at: u64,
    pub slot: u64,
    pub slot_stride: u64,
    pub word_stride: u64,
}

/// Arguments of `move_slots`: `MoveArgs` of `slots.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
pub struct MoveArgs {
    pub places: u64,
    pub words: u64,
    pub from: Words,
    pub to: Words,
}

/// State of the slots of a group on the host.
pub struct SlotState<'a> {
    /// The state under each bar specification.
    pub specs: Vec<SpecState<'a>>,
}

/// State of slots under one bar specification.
#[expect(missing_docs, reason = "the types say it")]
pub struct SpecState<'a> {
    pub bars: &'a mut BarSlab,
    pub indicators: &'a mut IndicatorSlab,
    pub signals: &'a mut SignalSlab,
}

/// One or several quantities of each slot of a slab.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    /// Words of each slot.
    pub words: usize,
    /// True if one word of all slots is contiguous; otherwise all words of one slot are.
    by_word: bool,
}

impl Field {
    /// The words of the field, in memory with room for `capacity` slots.
    pub fn words(&self, at: Address, slot: Address, capacity: usize) -> Words {
        let (slot_stride, word_stride) = if self.by_word { (1, capacity) } else { (self.words, 1) };
        Words { at, slot, slot_stride: slot_stride as u64, word_stride: word_stride as u64 }
    }

    /// Bytes of the field with room for `capacity` slots.
    pub fn bytes(&self, capacity: usize) -> usize {
        8 * self.words * capacity
    }
}

/// Fields of a specification, in their order.
pub(super) const OPEN: usize = 0;
pub(super) const OPEN_COUNT: usize = 1;
pub(super) const NUMBERS: usize = 2;
pub(super) const CLOSES: usize = 3;
pub(super) const SQUARED_RETURNS: usize = 4;
pub(super) const WEIGHTS: usize = 5;
pub(super) const ZONES: usize = 6;
pub(super) const QUOTES: usize = 7;
pub(super) const SPEC_FIELDS: usize = 8;

/// All fields of a slab: those of each specification.
pub(super) fn fields(config: &SlabConfig) -> Vec<Field> {
    let by_word = |words| Field { words, by_word: true };
    let mut fields = Vec::new();
    let of_one_slot = IndicatorArrays::new(&config.indicators, 1);
    for spec in &config.bars {
        let open_max = config.open_max(*spec);
        let of_spec: [Field; SPEC_FIELDS] = [
            Field { words: BAR_WORDS * open_max, by_word: false },
            by_word(1),
            by_word(of_one_slot.numbers.len()),
            by_word(of_one_slot.closes.len()),
            by_word(of_one_slot.squared_returns.len()),
            by_word(of_one_slot.weights.len()),
            by_word(1),
            Field { words: quote_words(*spec), by_word: false },
        ];
        fields.extend(of_spec);
    }
    fields
}

/// All words of the first `slots` slots, field by field, without gaps.
pub(super) fn pack(config: &SlabConfig, slots: usize, state: &SlotState<'_>) -> Vec<u64> {
    let mut packed = Vec::new();
    for (spec, of_spec) in config.bars.iter().zip(&state.specs) {
        let open_max = config.open_max(*spec);
        let mut open = vec![DeviceBar::default(); open_max * slots];
        let mut open_count = vec![0_u64; slots];
        let mut arrays = IndicatorArrays::new(&config.indicators, slots);
        for slot in 0..slots {
            let bars = of_spec.bars.open_bars(slot);
            open[open_max * slot..][..bars.len()].copy_from_slice(&bars);
            open_count[slot] = bars.len() as u64;
            arrays.scatter(slot, of_spec.indicators, slot);
        }
        packed.extend_from_slice(bytemuck::cast_slice(&open));
        packed.extend_from_slice(&open_count);
        for numbers in [&arrays.numbers, &arrays.closes, &arrays.squared_returns, &arrays.weights] {
            packed.extend_from_slice(bytemuck::cast_slice(numbers));
        }
        packed.extend(of_spec.signals.packed_zones().take(slots).map(u64::from));
        (0..slots)
            .for_each(|slot| packed.extend_from_slice(bytemuck::cast_slice(&of_spec.bars.quotes(slot))));
    }
    packed
}

/// The inverse of [`pack`].
pub(super) fn unpack(config: &SlabConfig, slots: usize, mut packed: &[u64], state: &mut SlotState<'_>) {
    let mut take = |words: usize| {
        let (taken, rest) = packed.split_at(words * slots);
        packed = rest;
        taken
    };
    for (spec, of_spec) in config.bars.iter().zip(&mut state.specs) {
        let open_max = config.open_max(*spec);
        // Packed words are not aligned for bars.
        let open = take(BAR_WORDS * open_max);
        let open: Vec<DeviceBar> = open
            .chunks_exact(BAR_WORDS)
            .map(|words| bytemuck::pod_read_unaligned(bytemuck::cast_slice(words)))
            .collect();
        let open_count = take(1);
        *of_spec.bars = BarSlab::new(*spec, config.allowed_lateness_ns);
        of_spec.bars.resize(slots);
        let mut arrays = IndicatorArrays::new(&config.indicators, slots);
        for numbers in
            [&mut arrays.numbers, &mut arrays.closes, &mut arrays.squared_returns, &mut arrays.weights]
        {
            let words = take(numbers.len() / slots);
            numbers.copy_from_slice(bytemuck::cast_slice(words));
        }
        let zones = take(1);
        let quote_words = quote_words(*spec);
        let quotes = take(quote_words);
        for slot in 0..slots {
            of_spec.bars.set_open_bars(slot, &open[open_max * slot..][..open_count[slot] as usize]);
            arrays.gather(slot, of_spec.indicators, slot);
            of_spec.signals.set_packed_zones(slot, zones[slot] as u32);
            of_spec.bars.set_quotes(slot, bytemuck::cast_slice(&quotes[quote_words * slot..][..quote_words]));
        }
    }
}
