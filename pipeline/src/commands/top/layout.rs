//! Positions of panes: one to three columns, depending on the width, and in each column as many panes as fit.

use super::model::{Model, Pane};

/// Width from which there are two columns.
const TWO_COLUMNS: u16 = 110;
/// Width from which there are three columns.
const THREE_COLUMNS: u16 = 180;
/// Panes in the order in which they get room.
const PRIORITY: [Pane; 8] = [
    Pane::Rates,
    Pane::Lanes,
    Pane::Decisions,
    Pane::Candles,
    Pane::Signals,
    Pane::Stores,
    Pane::Partitions,
    Pane::Risk,
];
/// Panes that get the remaining height.
const GROWING: [Pane; 3] = [Pane::Candles, Pane::Decisions, Pane::Signals];

/// Returns the panes of each column.
fn columns(width: u16) -> Vec<Vec<Pane>> {
    use Pane::{Candles, Decisions, Lanes, Partitions, Rates, Risk, Signals, Stores};
    match width {
        THREE_COLUMNS.. => {
            vec![vec![Rates, Candles], vec![Lanes, Partitions, Stores], vec![Signals, Decisions, Risk]]
        }
        TWO_COLUMNS.. => {
            vec![vec![Rates, Candles, Lanes, Partitions], vec![Signals, Decisions, Risk, Stores]]
        }
        _ => vec![Pane::ALL.to_vec()],
    }
}

/// Returns the visible panes of each column with their heights, titles included.
pub fn panes(model: &Model, width: u16, height: u16) -> Vec<Vec<(Pane, u16)>> {
    columns(width).iter().map(|column| heights(column, model, height)).collect()
}

/// Returns the panes that fit in a column, in their order. Their heights add up to the column's.
fn heights(column: &[Pane], model: &Model, height: u16) -> Vec<(Pane, u16)> {
    let focus = [model.focus];
    let order: Vec<Pane> =
        focus.into_iter().chain(PRIORITY.into_iter().filter(|pane| *pane != model.focus)).collect();
    let order: Vec<Pane> = order.into_iter().filter(|pane| column.contains(pane)).collect();
    let (mut given, mut left) = (Vec::new(), height);
    for pane in &order {
        let (least, _) = wanted(*pane, model);
        // The first pane is shown even if there is less room than it needs.
        let least = if given.is_empty() { least.min(left) } else { least };
        if least <= left {
            given.push((*pane, least));
            left -= least;
        }
    }
    for (pane, height) in &mut given {
        let more = wanted(*pane, model).1.saturating_sub(*height).min(left);
        *height += more;
        left -= more;
    }
    share_out(&mut given, left);
    given.sort_by_key(|(pane, _)| column.iter().position(|one| one == pane));
    given
}

/// Gives the remaining lines to the growing panes, or to the last pane if none grows.
fn share_out(given: &mut [(Pane, u16)], left: u16) {
    let growing = given.iter().filter(|(pane, _)| GROWING.contains(pane)).count() as u16;
    if growing == 0 {
        if let Some((_, height)) = given.last_mut() {
            *height += left;
        }
        return;
    }
    let (each, mut rest) = (left / growing, left % growing);
    for (_, height) in given.iter_mut().filter(|(pane, _)| GROWING.contains(pane)) {
        *height += each + u16::from(rest > 0);
        rest = rest.saturating_sub(1);
    }
}

/// Returns the least and the wanted height of a pane, title included.
fn wanted(pane: Pane, model: &Model) -> (u16, u16) {
    let rows = |count: usize, most: u16| u16::try_from(count + 2).unwrap_or(most).min(most).max(3);
    let state = model.snapshot.as_ref();
    let counted = |most, count: fn(&crate::endpoint::live::snapshot::Snapshot) -> usize| {
        rows(state.map_or(0, count), most)
    };
    match pane {
        Pane::Rates => (4, 8),
        Pane::Candles => (7, 16),
        Pane::Lanes => (3, counted(18, |state| state.lanes.len())),
        Pane::Signals => (4, 12),
        Pane::Decisions => (4, 12),
        Pane::Partitions => (3, counted(14, |state| state.partitions.len())),
        Pane::Risk => (3, counted(10, |state| state.risk.len())),
        Pane::Stores => (3, counted(12, |state| super::panes::store_rows(state) - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_filled_and_has_the_focus() {
        for pane in Pane::ALL {
            let mut model = Model::new("http://a", false);
            model.focus = pane;
            for width in [1, 60, 110, 180, 240] {
                for height in 0..80 {
                    let columns = panes(&model, width, height);
                    let sum =
                        |column: &Vec<(Pane, u16)>| column.iter().map(|(_, height)| height).sum::<u16>();
                    assert!(
                        columns.iter().all(|column| sum(column) == height),
                        "{width} {height} {columns:?}"
                    );
                    assert!(
                        columns.iter().flatten().any(|(shown, _)| *shown == pane),
                        "{pane:?} {columns:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_high_screen_shows_everything() {
        let model = Model::new("http://a", false);
        for width in [60, 110, 180] {
            assert_eq!(
                panes(&model, width, 60).iter().map(Vec::len).sum::<usize>(),
                Pane::ALL.len(),
                "{width}"
            );
        }
    }
}
