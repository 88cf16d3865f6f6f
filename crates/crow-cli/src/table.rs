//! Text tables, aligned by display width.

use std::io::{self, Write};

/// Spaces between columns.
pub(crate) const GAP: usize = 2;

/// Writes rows with aligned columns; the last column is not padded.
pub(crate) fn write_table<const N: usize>(
    out: &mut impl Write,
    rows: impl Iterator<Item = [String; N]>,
) -> io::Result<()> {
    let rows: Vec<[String; N]> = rows.map(|row| row.map(|cell| sanitize_line(&cell))).collect();
    let widths = column_widths(&rows);
    for row in &rows {
        let mut line = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', width - console::measure_text_width(cell) + GAP));
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Returns the columns before the last cell of a row, for rows whose last cell is to be fitted.
pub(crate) fn width_before_last<const N: usize>(rows: &[[String; N]]) -> usize {
    let rows: Vec<[String; N]> =
        rows.iter().map(|row| row.each_ref().map(|cell| sanitize_line(cell))).collect();
    column_widths(&rows).iter().take(N.saturating_sub(1)).map(|width| width + GAP).sum()
}

fn column_widths<const N: usize>(rows: &[[String; N]]) -> Vec<usize> {
    let width =
        |column: usize| rows.iter().map(|row| console::measure_text_width(&row[column])).max().unwrap_or(0);
    (0..N).map(width).collect()
}

/// The columns of a text.
pub(crate) fn text_width(text: &str) -> usize {
    console::measure_text_width(&sanitize_line(text))
}

/// Returns a text of at most `width` columns: the middle of a longer one is replaced, as names differ at their ends.
pub(crate) fn shorten_middle(text: &str, width: usize) -> String {
    let text = sanitize_line(text);
    if text_width(&text) <= width {
        return text;
    }
    let letters: Vec<char> = text.chars().collect();
    let letter_width = |letter: &char| console::measure_text_width(letter.encode_utf8(&mut [0; 4]));
    // The number of letters that fit into `room` columns.
    let n_fitting = |letters: &mut dyn Iterator<Item = &char>, room: usize| {
        let ends = letters.scan(0, |used, letter| {
            *used += letter_width(letter);
            Some(*used)
        });
        ends.take_while(|&used| used <= room).count()
    };
    let room = width.saturating_sub(1);
    let n_first = n_fitting(&mut letters.iter(), room / 2);
    let n_last = n_fitting(&mut letters.iter().rev(), room - room / 2);
    letters[..n_first].iter().chain(&['…']).chain(&letters[letters.len() - n_last..]).collect()
}

/// Replaces control characters, so that stored text cannot control the terminal.
pub(crate) fn sanitize_line(text: &str) -> String {
    text.chars().map(|letter| if is_unprintable(letter) { ' ' } else { letter }).collect()
}

fn is_unprintable(letter: char) -> bool {
    letter.is_control() || is_bidi_control(letter)
}

/// Marks that reorder the letters around them, so that a text reads as something else.
pub(crate) fn is_bidi_control(letter: char) -> bool {
    matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Replaces control characters in a text of several lines.
pub(crate) fn sanitize_text(text: &str) -> String {
    let is_fine = |letter: char| matches!(letter, '\n' | '\t') || !is_unprintable(letter);
    text.chars().map(|letter| if is_fine(letter) { letter } else { ' ' }).collect()
}

/// Renders a document on one line without control characters.
pub(crate) fn json_line(document: &serde_json::Value) -> String {
    let mut line = String::new();
    for letter in document.to_string().chars() {
        match is_unprintable(letter) {
            // JSON allows these unescaped, and only inside strings.
            true => line.push_str(&format!("\\u{:04x}", u32::from(letter))),
            false => line.push(letter),
        }
    }
    line
}

#[cfg(test)]
mod tests {
    #[test]
    fn long_text_is_shortened_in_its_middle() {
        assert_eq!(super::shorten_middle("/work/crow", 10), "/work/crow");
        assert_eq!(super::shorten_middle("/work/a long name/crow", 10), "/wor…/crow");
        assert_eq!(super::shorten_middle("/漢字漢字漢字漢字", 9), "/漢…漢字");
        assert_eq!(super::shorten_middle("/work\u{1b}[31m/crow", 9), "/wor…crow");
    }

    #[test]
    fn columns_are_aligned_by_display_width() {
        let rows = [["NAME", "N", "TEXT"], ["日本", "1", ""], ["a\u{1b}[31m", "22", "long enough"]];
        let mut out = Vec::new();
        super::write_table(&mut out, rows.into_iter().map(|row| row.map(str::to_owned)))
            .expect("a vector takes all");
        let expected = "NAME    N   TEXT\n日本    1\na [31m  22  long enough\n";
        assert_eq!(String::from_utf8(out).expect("text"), expected);
    }
}
