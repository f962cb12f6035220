//! Draws a step.
//!
//! ```text
//!  narrow                 wide
//!  ┌──────────────┐       ┌──────────────┬──────────────┐
//!  │ title        │       │ title                       │
//!  │ input        │       │ input        │ lanes        │
//!  │ decisions    │       │ decisions    │ partitions   │
//!  │ lanes, …  or │       │              │ risk         │
//!  │ explanation  │       ├──────────────┴──────────────┤
//!  │              │       │ explanation                 │
//!  │ message      │       │ message                     │
//!  └──────────────┘       └─────────────────────────────┘
//! ```
//!
//! A small screen shows only the parts that fit.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Block, Borders, List, ListItem, ListState, Paragraph};

use super::app::{App, KEYS, Mode};
use super::view::View;

/// Width in columns from which lanes are shown beside decisions.
const WIDE: u16 = 120;
/// Least width of tables beside decisions, in columns.
const TABLES_MIN: u16 = 60;
/// Greatest number of lines for the chosen decision.
const CHOSEN_LINES_MAX: usize = 6;
/// Number of columns at the left of an explanation's row that name its subject.
const SUBJECT: usize = 12;
/// Greatest number of lines for differences.
const DIFFERENCE_LINES_MAX: usize = 3;

/// Draws a step. `progress` is the progress of a long search, or `None`.
pub fn draw(frame: &mut Frame<'_>, app: &App, view: &View, progress: Option<&str>) {
    let rows = [Constraint::Length(1), Constraint::Fill(1), Constraint::Length(1)];
    let [title, body, bottom] = Layout::vertical(rows).areas(frame.area());
    draw_title(frame, title, view);
    match app.mode {
        Mode::Help => draw_help(frame, body),
        _ if frame.area().width >= WIDE => draw_wide(frame, body, app, view),
        _ => draw_narrow(frame, body, app, view),
    }
    draw_bottom(frame, bottom, app, progress);
}

fn draw_title(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let is_same = view.differences.is_empty();
    let verdict = if is_same { " as recorded ".green() } else { " DIFFERS ".red().bold() };
    let columns = [Constraint::Fill(1), Constraint::Length(verdict.width() as u16)];
    let [title, right] = Layout::horizontal(columns).areas(area);
    frame.render_widget(Line::from(view.title.as_str()).bold(), title);
    frame.render_widget(verdict, right);
}

fn draw_narrow(frame: &mut Frame<'_>, area: Rect, app: &App, view: &View) {
    let input = input_lines(view, area.width);
    let height = input.len() as u16 + 1;
    let below = match &view.explanation {
        Some(_) => Constraint::Fill(2),
        None => Constraint::Length((view.lanes.len() + view.partitions.len() + 3) as u16),
    };
    let rows = [Constraint::Length(height), Constraint::Min(3), below];
    let [first, decisions, last] = Layout::vertical(rows).areas(area);
    draw_lines(frame, first, " input ", input);
    draw_decisions(frame, decisions, app, view);
    match &view.explanation {
        Some(explanation) => draw_explanation(frame, last, app, explanation),
        None => draw_state(frame, last, view),
    }
}

fn draw_wide(frame: &mut Frame<'_>, area: Rect, app: &App, view: &View) {
    let below = if view.explanation.is_some() { Constraint::Percentage(40) } else { Constraint::Length(0) };
    let [above, last] = Layout::vertical([Constraint::Fill(1), below]).areas(area);
    // Tables get the width that they need, up to most of the screen; explanations get the rest.
    let tables = view.lanes.iter().chain(&view.partitions).map(|row| row.chars().count());
    let width = tables.max().map_or(0, |width| width as u16).max(TABLES_MIN).min(area.width / 3 * 2);
    let columns = [Constraint::Fill(1), Constraint::Length(width)];
    let [left, right] = Layout::horizontal(columns).spacing(1).areas(above);
    let input = input_lines(view, left.width);
    let rows = [Constraint::Length(input.len() as u16 + 1), Constraint::Fill(1)];
    let [first, decisions] = Layout::vertical(rows).areas(left);
    draw_lines(frame, first, " input ", input);
    draw_decisions(frame, decisions, app, view);
    draw_state(frame, right, view);
    if let Some(explanation) = &view.explanation {
        draw_explanation(frame, last, app, explanation);
    }
}

/// Draws lines below a title.
fn draw_lines(frame: &mut Frame<'_>, area: Rect, title: &str, lines: Vec<Line<'_>>) {
    let block = Block::new().borders(Borders::TOP).title(title.bold());
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn input_lines(view: &View, width: u16) -> Vec<Line<'_>> {
    let mut lines: Vec<Line<'_>> = wrapped(&view.input, width).into_iter().map(Line::from).collect();
    lines.truncate(CHOSEN_LINES_MAX);
    let different = view.differences.iter().flat_map(|difference| wrapped(difference, width));
    lines.extend(different.take(DIFFERENCE_LINES_MAX).map(|line| Line::from(line).red()));
    lines
}

fn draw_decisions(frame: &mut Frame<'_>, area: Rect, app: &App, view: &View) {
    let title = match view.decisions.len() {
        0 => " no decisions ".to_owned(),
        1 => " 1 decision ".to_owned(),
        many => format!(" decision {} of {many} ", app.cursor + 1),
    };
    let block = Block::new().borders(Borders::TOP).title(title.bold());
    let width = area.width.saturating_sub(2);
    let item = |(index, words): (usize, &String)| {
        if index != app.cursor {
            return ListItem::new(cut(words, width));
        }
        let mut lines = wrapped(words, width);
        lines.truncate(CHOSEN_LINES_MAX);
        ListItem::new(lines.into_iter().map(Line::from).collect::<Vec<_>>())
    };
    // Only visible decisions are laid out, because a step may have thousands.
    let from = app.cursor.saturating_sub(usize::from(area.height));
    let until = (app.cursor + usize::from(area.height)).min(view.decisions.len());
    let items: Vec<_> =
        (from..until).zip(view.decisions.get(from..until).unwrap_or_default()).map(item).collect();
    let list = List::new(items).block(block).highlight_symbol("> ").highlight_style(Style::new().bold());
    let mut state = ListState::default();
    state.select((!view.decisions.is_empty()).then_some(app.cursor - from));
    frame.render_stateful_widget(list, area, &mut state);
}

fn draw_state(frame: &mut Frame<'_>, area: Rect, view: &View) {
    let rows = [
        Constraint::Max(view.lanes.len() as u16 + 1),
        Constraint::Max(view.partitions.len() as u16 + 1),
        Constraint::Length(1),
        Constraint::Fill(1),
    ];
    let [lanes, partitions, risk, _] = Layout::vertical(rows).areas(area);
    for (area, title, table) in
        [(lanes, " lanes after the step ", &view.lanes), (partitions, " partitions ", &view.partitions)]
    {
        let shown = usize::from(area.height.saturating_sub(1));
        let mut lines: Vec<Line<'_>> =
            table.iter().take(shown).map(|row| Line::from(cut(row, area.width))).collect();
        if let Some(header) = lines.first_mut() {
            *header = std::mem::take(header).dim();
        }
        if let Some(last) = lines.last_mut().filter(|_| table.len() > shown) {
            *last = Line::from(format!("… and {} more", table.len() - shown + 1)).dim();
        }
        draw_lines(frame, area, title, lines);
    }
    frame.render_widget(Line::from(view.risk.as_str()), risk);
}

fn draw_explanation(frame: &mut Frame<'_>, area: Rect, app: &App, explanation: &[String]) {
    let scroll = app.scroll.min(explanation.len().saturating_sub(1));
    let lines = explanation.iter().skip(scroll).map(|line| {
        let shown = Line::from(cut(&shifted(line, app.shift, area.width), area.width));
        if line.starts_with("  *") { shown.bold() } else { shown }
    });
    draw_lines(frame, area, " why ", lines.take(usize::from(area.height)).collect());
}

fn draw_help(frame: &mut Frame<'_>, area: Rect) {
    let lines = KEYS.map(|(keys, meaning)| Line::from(format!("  {keys:<18} {meaning}"))).to_vec();
    draw_lines(frame, area, " keys ", lines);
}

fn draw_bottom(frame: &mut Frame<'_>, area: Rect, app: &App, progress: Option<&str>) {
    let message = app.message.0.as_str();
    let typed = |question: &str, typed: &str| {
        // The end of the typed text and its mistake stay visible, however narrow the screen is.
        let mistake = if message.is_empty() { String::new() } else { format!("  ({message})") };
        let room = usize::from(area.width).saturating_sub(question.chars().count() + 2);
        let hidden = typed.chars().count().saturating_sub(room);
        format!("{question} {}_{mistake}", typed.chars().skip(hidden).collect::<String>())
    };
    let words = match (progress, &app.mode) {
        (Some(progress), _) => progress.to_owned(),
        (None, Mode::Place(text)) => typed("go to:", text),
        (None, Mode::Condition(text)) => typed("condition:", text),
        (None, Mode::Help) => "press any key to go back".to_owned(),
        (None, Mode::Stepping) => message.to_owned(),
    };
    let condition = match (&app.condition, &app.mode) {
        (Some(condition), Mode::Stepping) => format!("c searches for: {condition}"),
        _ => String::new(),
    };
    let condition = cut(&crate::printable::printable_line(&condition), area.width / 2);
    let columns = [Constraint::Fill(1), Constraint::Length(condition.chars().count() as u16)];
    let [area, right] = Layout::horizontal(columns).spacing(u16::from(!condition.is_empty())).areas(area);
    let line = Line::from(crate::printable::printable_line(&words).into_owned());
    frame.render_widget(if app.message.1 { line.red() } else { line }, area);
    frame.render_widget(Line::from(condition).dim(), right);
}

/// Scrolls a line that does not fit: drops `shift` characters after the columns that name its subject.
fn shifted(line: &str, shift: usize, width: u16) -> String {
    let length = line.chars().count();
    let shift = shift.min(length.saturating_sub(usize::from(width)));
    if shift == 0 {
        return line.to_owned();
    }
    // The mark of the scrolled-out part replaces one kept character.
    let kept = SUBJECT.min(usize::from(width) / 2);
    let first = line.chars().take(kept).chain(['…']);
    first.chain(line.chars().skip(kept + 1 + shift)).collect()
}

/// Cuts a text to the width of one line.
fn cut(text: &str, width: u16) -> String {
    let width = usize::from(width);
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// Wraps a text, between words if possible; lines after the first are indented.
fn wrapped(text: &str, width: u16) -> Vec<String> {
    const INDENT: &str = "  ";
    let width = usize::from(width).max(INDENT.len() + 1);
    let (mut lines, mut line) = (Vec::new(), String::new());
    for word in text.split(' ') {
        let mut word = word;
        let length = |text: &str| text.chars().count();
        if !line.trim().is_empty() && length(&line) + 1 + length(word) > width {
            lines.push(std::mem::replace(&mut line, INDENT.to_owned()));
        } else if !line.trim().is_empty() {
            line.push(' ');
        }
        while length(&line) + length(word) > width {
            let room = width.saturating_sub(length(&line)).max(1);
            let end = word.char_indices().nth(room).map_or(word.len(), |(end, _)| end);
            line.push_str(&word[..end]);
            word = &word[end..];
            lines.push(std::mem::replace(&mut line, INDENT.to_owned()));
        }
        line.push_str(word);
    }
    lines.push(line);
    lines
}
