//! Draws the state of a host.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Cell, Paragraph, Row, Table, Widget};

use super::look::Look;

const WALLETS: [(&str, u16); 4] = [("WALLET", 32), ("HEIGHT", 10), ("RESCAN", 26), ("KEYS", 10)];
const PLUGINS: [(&str, u16); 8] = [
    ("PLUGIN", 20),
    ("STATE", 18),
    ("CALLS", 12),
    ("ERRORS", 10),
    ("MEAN TIME", 12),
    ("WAITING", 8),
    ("CRASHES", 8),
    ("REFUSED", 8),
];
const CALLS: [(&str, u16); 3] = [("CALL IN FLIGHT", 32), ("TIME", 12), ("PROGRESS", 40)];

/// Draws a state from its line `scrolled` on.
pub fn draw(frame: &mut Frame<'_>, seen: &Look, scrolled: u16) {
    let area = frame.area();
    let whole = picture(seen, area.width);
    let first = scrolled.min(whole.area.height.saturating_sub(area.height));
    let buffer = frame.buffer_mut();
    for y in 0..area.height.min(whole.area.height) {
        for x in 0..area.width {
            if let (Some(to), Some(from)) = (buffer.cell_mut((x, y)), whole.cell((x, first + y))) {
                *to = from.clone();
            }
        }
    }
}

/// A state as lines of text.
pub fn text(seen: &Look, width: u16) -> String {
    let whole = picture(seen, width);
    let line = |y| (0..width).filter_map(|x| whole.cell((x, y))).map(|cell| cell.symbol()).collect::<String>();
    let lines: Vec<String> = (0..whole.area.height).map(|y| line(y).trim_end().to_owned()).collect();
    lines.join("\n")
}

/// The whole state, as high as it needs.
fn picture(seen: &Look, width: u16) -> Buffer {
    let fact = |(name, value): &(&str, String)| {
        Line::from(vec![Span::from(format!("{name} ")).dim(), Span::from(format!("{value}   ")).bold()])
    };
    let word = |word: &str| Line::from(Span::from(format!("{word} ")).red().bold());
    let mut head = filled(seen.node.iter().map(fact), width);
    head.extend(filled(seen.error.iter().flat_map(|error| error.split(' ')).map(word), width));
    head.push(Line::default());
    let rows = head.len() + seen.wallets.len() + seen.plugins.len() + seen.calls.len();
    // The tables' heads, and a blank line after each table.
    let height = u16::try_from(rows + 6).unwrap_or(u16::MAX);
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    let mut y = u16::try_from(head.len()).unwrap_or(u16::MAX);
    Paragraph::new(head).render(buffer.area, &mut buffer);
    table(&mut buffer, &mut y, &WALLETS, &seen.wallets);
    table(&mut buffer, &mut y, &PLUGINS, &seen.plugins);
    table(&mut buffer, &mut y, &CALLS, &seen.calls);
    buffer
}

/// Wraps pieces of text into lines, without splitting a piece.
fn filled<'a>(pieces: impl Iterator<Item = Line<'a>>, width: u16) -> Vec<Line<'a>> {
    let mut lines: Vec<Line<'_>> = Vec::new();
    for piece in pieces {
        match lines.last_mut() {
            Some(line) if line.width() + piece.width() <= usize::from(width) => line.spans.extend(piece.spans),
            _ => lines.push(piece),
        }
    }
    lines
}

/// Draws a table at line `y`, and sets `y` to the line after it.
fn table<const N: usize>(buffer: &mut Buffer, y: &mut u16, columns: &[(&'static str, u16); N], rows: &[[String; N]]) {
    let height = u16::try_from(rows.len() + 1).unwrap_or(u16::MAX);
    let area = Rect::new(0, *y, buffer.area.width, height).intersection(buffer.area);
    let is_bad = |row: &[String; N], column: usize| match columns[column].0 {
        "STATE" => !row[column].starts_with("running"),
        "CRASHES" | "REFUSED" => row[column] != "0",
        _ => false,
    };
    let cells = rows.iter().map(|row| {
        Row::new(row.iter().enumerate().map(|(column, text)| {
            Cell::from(text.as_str()).style(if is_bad(row, column) { Style::new().red() } else { Style::new() })
        }))
    });
    let head = Row::new(columns.map(|(name, _)| name)).style(Style::new().reversed());
    let widths = columns.map(|(_, width)| Constraint::Max(width));
    Table::new(cells, widths).header(head).render(area, buffer);
    *y = y.saturating_add(height).saturating_add(1);
}
