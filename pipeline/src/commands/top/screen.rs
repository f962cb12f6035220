//! Draws the screen.
//!
//! ```text
//!  state in words                    process, time
//!  totals, or the components with troubles
//!  rates      │ lanes      │ signals
//!  candles    │ partitions │ decisions      one, two or three columns, by width
//!             │ stores     │ risk
//!  keys                              panes without room
//! ```

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Borders, Clear, Paragraph};
use unicode_width::UnicodeWidthStr;

use super::client::Subject;
use super::keys::KEYS;
use super::layout;
use super::model::{Link, Mode, Model, Pane, Search, Why};
use super::palette::Palette;
use super::panes;
use super::table::{Room, window};
use super::words::{count, shown, span, time_of_day};
use crate::commands::fit::cut;

/// Height from which the header has a second line.
const TOTALS_MIN: u16 = 12;
/// Greatest width of a search.
const SEARCH_WIDTH: u16 = 60;

/// Draws the screen.
pub fn draw(frame: &mut Frame<'_>, model: &Model) {
    let palette = Palette { is_coloured: model.is_coloured };
    let area = frame.area();
    let header = if area.height < TOTALS_MIN { 1 } else { 2 };
    let rows = [Constraint::Length(header), Constraint::Fill(1), Constraint::Length(1)];
    let [top, body, bottom] = Layout::vertical(rows).areas(area);
    draw_header(frame, top, model, palette);
    let hidden = draw_panes(frame, body, model, palette);
    draw_footer(frame, bottom, model, &hidden, palette);
    match &model.mode {
        Mode::Watching => {}
        Mode::Help => draw_help(frame, body, palette),
        Mode::Search(search) => draw_search(frame, body, model, search, palette),
        Mode::Why(why) => draw_why(frame, body, model, why, palette),
    }
}

/// Returns the sign, the words and the style of the pipeline's state.
pub fn state_words(model: &Model, palette: Palette) -> (&'static str, String, Style) {
    let told = |level: &str, words: String| {
        let (sign, style) = palette.level(level);
        (sign, words, style)
    };
    match (model.link(), &model.state) {
        (Link::Asking, _) | (Link::Answers, None) => told("", format!("asking {}", model.url)),
        (Link::Silent(silence), _) => told("down", format!("no answer since {}", span(silence))),
        (Link::Refuses, _) => {
            told("down", model.trouble.as_ref().map(ToString::to_string).unwrap_or_default())
        }
        (Link::Answers, Some(state)) => {
            let words = if state.words.is_empty() { &state.level } else { &state.words };
            told(&state.level, words.clone())
        }
    }
}

fn draw_header(frame: &mut Frame<'_>, area: Rect, model: &Model, palette: Palette) {
    let (sign, words, style) = state_words(model, palette);
    let still = model.paused.map(|since| {
        let span = span(model.now.saturating_sub(since));
        Span::styled(format!("  stands still since {span}"), palette.warning())
    });
    let state = Span::styled(format!("{sign} {}", shown(&words)), style.add_modifier(Modifier::BOLD));
    let mut left = vec![state];
    left.extend(still);
    let taken: usize = left.iter().map(Span::width).sum();
    let right = process_words(model, usize::from(area.width).saturating_sub(taken + 2));
    let rows = [Constraint::Length(1), Constraint::Length(1)];
    let [first, second] = Layout::vertical(rows).areas(area);
    let columns = [Constraint::Fill(1), Constraint::Length(right.width() as u16)];
    let [left_area, right_area] = Layout::horizontal(columns).areas(first);
    frame.render_widget(Line::from(left), left_area);
    frame.render_widget(Line::styled(right, palette.faint()), right_area);
    frame.render_widget(second_line(model, usize::from(second.width), palette), second);
}

/// Returns as many facts about the process as fit.
fn process_words(model: &Model, room: usize) -> String {
    let Some(state) = &model.snapshot else { return String::new() };
    let process = &state.process;
    let time = time_of_day(&state.at, 0);
    let node = shown(&process.node);
    let whole = format!(
        "{node}  group {} {}  version {}  {}",
        shown(&process.group),
        process.ordinal,
        shown(&process.version),
        shown(&state.at)
    );
    let choices = [whole, format!("{node}  {time}"), time];
    choices.into_iter().find(|words| words.width() <= room).unwrap_or_default()
}

/// Returns the reason for the endpoint's silence, or the components in trouble, or totals.
fn second_line(model: &Model, room: usize, palette: Palette) -> Line<'static> {
    let faint = |words: &str| Line::styled(cut(words, room), palette.faint());
    if let (Link::Silent(_), Some(trouble)) = (model.link(), &model.trouble) {
        return faint(&shown(&format!("{}: {trouble}; asking again", model.url)));
    }
    let (Some(state), Some(snapshot)) = (&model.state, &model.snapshot) else { return Line::default() };
    let troubled: Vec<Span<'static>> = state
        .components
        .iter()
        .filter(|component| component.level != "ok")
        .map(|component| {
            let (sign, style) = palette.level(&component.level);
            let words = format!("{sign} {}: {}  ", shown(&component.name), shown(&component.reason));
            Span::styled(words, style)
        })
        .collect();
    if !troubled.is_empty() {
        return Line::from(troubled);
    }
    let totals = &snapshot.totals;
    let words = [
        (totals.ticks, "ticks"),
        (totals.signals, "signals"),
        (totals.decisions, "decisions"),
        (totals.commits, "commits"),
        (totals.late, "late"),
        (totals.dead_letters, "dead letters"),
        (totals.symbols, "symbols"),
    ];
    faint(&words.map(|(number, name)| format!("{} {name}", count(number))).join("  "))
}

/// Draws the panes, and returns those that did not fit.
fn draw_panes(frame: &mut Frame<'_>, area: Rect, model: &Model, palette: Palette) -> Vec<Pane> {
    let columns = layout::panes(model, area.width, area.height);
    let widths = vec![Constraint::Fill(1); columns.len()];
    let areas = Layout::horizontal(widths).spacing(1).split(area);
    for (column, area) in columns.iter().zip(areas.iter()) {
        let heights = column.iter().map(|(_, height)| Constraint::Length(*height));
        let places = Layout::vertical(heights).split(*area);
        for ((pane, _), area) in column.iter().zip(places.iter()) {
            draw_pane(frame, *area, *pane, model, palette);
        }
    }
    if matches!(model.link(), Link::Silent(_) | Link::Refuses) {
        // The shown values are old.
        frame.buffer_mut().set_style(area, palette.faint());
    }
    let is_shown = |pane: &Pane| columns.iter().flatten().any(|(shown, _)| shown == pane);
    Pane::ALL.into_iter().filter(|pane| !is_shown(pane)).collect()
}

fn draw_pane(frame: &mut Frame<'_>, area: Rect, pane: Pane, model: &Model, palette: Palette) {
    let is_focused = model.focus == pane;
    let style = if is_focused { palette.accent() } else { palette.faint() };
    let weight = if is_focused { Modifier::BOLD } else { Modifier::empty() };
    let mut title = vec![Span::raw(if is_focused { "▶ " } else { " " })];
    title.extend(panes::title(pane, model, palette));
    title.push(Span::raw(" "));
    let block = Block::new()
        .borders(Borders::TOP)
        .border_type(if is_focused { BorderType::Thick } else { BorderType::Plain })
        .border_style(style)
        .title(Line::from(title).style(Style::new().add_modifier(weight)));
    let inner = block.inner(area);
    let room = Room { width: usize::from(inner.width), height: usize::from(inner.height) };
    let lines = if area.is_empty() { Vec::new() } else { panes::lines(pane, model, room, palette) };
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn draw_footer(frame: &mut Frame<'_>, area: Rect, model: &Model, hidden: &[Pane], palette: Palette) {
    let keys = match &model.mode {
        Mode::Watching => "? keys  q quit  Tab pane  Enter why  s symbol  b bar  Space still",
        Mode::Help => "any key goes back",
        Mode::Search(_) => "type a part of the name  up, down  Enter choose  Esc back",
        Mode::Why(_) => "arrows, PageUp, PageDown scroll  Esc back",
    };
    let hidden: Vec<&str> = hidden.iter().map(|pane| pane.name()).collect();
    let words = if hidden.is_empty() { String::new() } else { format!("Tab shows {}", hidden.join(", ")) };
    let room = usize::from(area.width).saturating_sub(keys.width() + 2);
    let words = cut(&words, room);
    let columns = [Constraint::Fill(1), Constraint::Length(words.width() as u16)];
    let [left, right] = Layout::horizontal(columns).areas(area);
    frame.render_widget(Line::from(cut(keys, usize::from(left.width))), left);
    frame.render_widget(Line::styled(words, palette.faint()), right);
}

/// Clears and frames a part of the screen. Returns the area within the frame.
fn overlay(frame: &mut Frame<'_>, area: Rect, title: &str, palette: Palette) -> Rect {
    let title = format!(" {} ", cut(title, usize::from(area.width).saturating_sub(4)));
    let block = Block::bordered().border_style(palette.accent()).title(title);
    let inner = block.inner(area);
    frame.render_widget(Clear, area);
    frame.render_widget(block, area);
    inner
}

fn draw_help(frame: &mut Frame<'_>, body: Rect, palette: Palette) {
    let inner = overlay(frame, body, "keys", palette);
    let lines = KEYS.map(|(keys, meaning)| {
        Line::from(vec![Span::styled(format!(" {keys:<18} "), palette.accent()), Span::raw(meaning)])
    });
    frame.render_widget(Paragraph::new(lines.to_vec()), inner);
}

fn draw_search(frame: &mut Frame<'_>, body: Rect, model: &Model, search: &Search, palette: Palette) {
    let area = Rect { width: body.width.min(SEARCH_WIDTH), ..body };
    let found = model.matches(search);
    let inner = overlay(frame, area, &format!("symbol, {} found", count(found.len() as u64)), palette);
    let room = usize::from(inner.width);
    // The end of the typed text stays visible.
    let typed = shown(&search.typed);
    let hidden = typed.chars().count().saturating_sub(room.saturating_sub(4));
    let typed: String = typed.chars().skip(hidden).collect();
    let mut lines = vec![Line::styled(format!("> {typed}_"), palette.accent())];
    let left_out = model.snapshot.as_ref().map_or(0, |state| state.symbols_left_out);
    let more = (left_out > 0).then(|| format!("{} more by their whole names", count(left_out)));
    let height = usize::from(inner.height).saturating_sub(1 + usize::from(more.is_some()));
    lines.extend(window(found.len(), search.chosen, height).map(|index| {
        let line = Line::from(cut(&shown(found[index]), room));
        if index == search.chosen { line.style(palette.selected()) } else { line }
    }));
    lines.extend(more.map(|more| Line::styled(more, palette.faint())));
    frame.render_widget(Paragraph::new(lines), inner);
}

fn draw_why(frame: &mut Frame<'_>, body: Rect, model: &Model, why: &Why, palette: Palette) {
    let subject = match &why.subject {
        Subject::Signal(place) => format!("why: signal {place}"),
        Subject::Entry(place) => format!("why: entry {place}"),
        Subject::Request(id) => format!("why: request {id}"),
    };
    let inner = overlay(frame, body, &shown(&subject), palette);
    let lines = match &why.lines {
        None => {
            let since: Duration = model.now.saturating_sub(why.asked);
            vec![Line::styled(format!("asking since {}", span(since)), palette.faint())]
        }
        Some(lines) => {
            let visible = lines.iter().skip(why.scroll).take(usize::from(inner.height));
            visible.map(|line| Line::from(line.as_str())).collect()
        }
    };
    let shift = if why.lines.is_some() { why.shift as u16 } else { 0 };
    frame.render_widget(Paragraph::new(lines).scroll((0, shift)), inner);
}
