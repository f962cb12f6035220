//! Risk of portfolios: value, profits under scenarios, value at risk, expected shortfall, and their components. The
//! module knows no names, no threads and no clock: assets, positions and books are numbers. Any range of scenarios may
//! be computed anywhere.
//!
//! ```text
//! Portfolio, Scenarios ──▶ Portfolio::run ──▶ Profits ──▶ Ranked ──▶ Tail::loss      of a book, a desk, all
//!                                                           └──────▶ component_losses  of positions
//! Portfolio, Covariance ─▶ Parametric
//! Portfolio, Scenarios ──▶ LiveProfits                        kept up with what changes
//! ```
//!
//! A profit is `quantity · (value in the scenario − value now)`. Each position is revalued in full, by the formulas of
//! [`pricing`](crate::pricing). The profits of a book are summed in one shape: its positions by number, then the books
//! in it by number. Neighbours are added, then neighbouring sums, and so on; a term without a neighbour is passed on
//! unchanged ([`Tree`](tree)). So a sum's bits depend only on its terms, and a changed profit changes only the sums
//! above it.

mod covariance;
mod device;
mod live;
mod measures;
mod parametric;
mod positions;
mod revaluation;
mod scenarios;
pub(crate) mod semi_definite;
mod tree;

pub use covariance::{Covariance, CovarianceError, realised_volatilities};
pub use device::{DEVICE_CELLS_MAX, exponential_on_device, run_on_device, sample_on_device};
pub use live::{LiveProfits, Recomputed};
pub use measures::{CONFIDENCE_RANGE, MeasureError, Ranked, TAIL_BLOCK, Tail, loss_of_blocks};
pub use parametric::{Contribution, Parametric};
pub use positions::{
    ASSETS_MAX, BOOKS_MAX, Instrument, POSITIONS_MAX, Portfolio, PortfolioError, Position, QUANTITY_RANGE,
};
pub use revaluation::Profits;
pub use scenarios::{CELLS_MAX, Drawn, Returns, ScenarioError, Scenarios, Shock, Stress};
