//! Styles by meaning. Each meaning has a sign or a word as well, so that nothing is lost without colours.

use ratatui::style::{Color, Modifier, Style};

/// Styles of a terminal with colours, or without.
#[derive(Clone, Copy, Debug)]
pub struct Palette {
    /// True if the terminal shows colours.
    pub is_coloured: bool,
}

impl Palette {
    fn of(self, colour: Color, without: Modifier) -> Style {
        if self.is_coloured { Style::new().fg(colour) } else { Style::new().add_modifier(without) }
    }

    /// Returns the style of values that are in order.
    pub fn good(self) -> Style {
        self.of(Color::Green, Modifier::empty())
    }

    /// Returns the style of values that need attention.
    pub fn warning(self) -> Style {
        self.of(Color::Yellow, Modifier::BOLD)
    }

    /// Returns the style of values that are lost or wrong.
    pub fn bad(self) -> Style {
        self.of(Color::Red, Modifier::BOLD).add_modifier(Modifier::BOLD)
    }

    /// Returns the style of titles and of lines of measured values.
    pub fn accent(self) -> Style {
        self.of(Color::Cyan, Modifier::empty())
    }

    /// Returns the style of column headers and of other words beside values.
    pub fn faint(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// Returns the style of the selected row.
    pub fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// Returns the sign and the style of a level of health: `ok`, `degraded`, `down` or another word.
    pub fn level(self, level: &str) -> (&'static str, Style) {
        match level {
            "ok" => ("●", self.good()),
            "degraded" => ("▲", self.warning()),
            "down" => ("✖", self.bad()),
            _ => ("?", self.faint()),
        }
    }

    /// Returns the style of a lane's state.
    pub fn lane(self, state: &str) -> Style {
        match state {
            "working" => self.good(),
            "idle" => Style::new(),
            "lost" => self.bad(),
            _ => self.warning(),
        }
    }
}
