//! A small terminal emulator for tests.

use std::{
    io,
    sync::{Arc, Mutex},
};

/// A terminal that stdout and stderr share.
#[derive(Debug, Clone, Default)]
pub(super) struct FakeTerminal(Arc<Mutex<Vec<u8>>>);

impl io::Write for FakeTerminal {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl FakeTerminal {
    /// Returns all output, with escape codes as `^[`.
    pub(super) fn raw_text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap().replace('\x1b', "^[")
    }

    /// Returns the lines on a terminal of this width, including those that scrolled off.
    pub(super) fn rendered_lines(&self, columns: usize) -> String {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let mut rows: Vec<Vec<char>> = vec![Vec::new()];
        let (mut row, mut column) = (0, 0);
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                '\n' => (row, column) = (row + 1, 0),
                '\r' => column = 0,
                '\x1b' => {
                    let kind = chars.next();
                    if kind == Some(']') {
                        // A link, up to its terminator.
                        chars.by_ref().find(|c| *c == '\\');
                        continue;
                    }
                    assert_eq!(kind, Some('['), "an escape code that is not ours");
                    let code: String =
                        chars.by_ref().take_while(|c| !matches!(c, 'A' | 'J' | 'K' | 'm')).collect();
                    // The final character decides; colours are ignored.
                    match last_char_before(&text, chars.as_str()) {
                        'A' => row -= code.parse::<usize>().unwrap(),
                        'J' => {
                            rows[row].truncate(column);
                            rows.truncate(row + 1);
                        }
                        'K' => rows[row].truncate(column),
                        _ => {}
                    }
                }
                c => {
                    let width = console::measure_text_width(&c.to_string());
                    if column + width > columns {
                        (row, column) = (row + 1, 0);
                    }
                    rows.resize(rows.len().max(row + 1), Vec::new());
                    let cells = &mut rows[row];
                    cells.resize(cells.len().max(column + width), ' ');
                    cells[column] = c;
                    // The second cell of a wide letter.
                    cells[column + 1..column + width].fill('\0');
                    column += width;
                }
            }
            rows.resize(rows.len().max(row + 1), Vec::new());
        }
        let lines = rows.iter().map(|row| row.iter().filter(|c| **c != '\0').collect::<String>());
        lines
            .map(|line| line.trim_end().to_owned() + "\n")
            .collect::<String>()
            .trim_end_matches('\n')
            .to_owned()
            + "\n"
    }
}

fn last_char_before(text: &str, rest: &str) -> char {
    text[..text.len() - rest.len()].chars().next_back().unwrap()
}
