use expect_test::{Expect, expect};

use super::*;

const RANGE: PageRange = PageRange { first_line: 1, lines_max: 3, bytes_max: 1000, chars_max: 10 };

/// Returns its bytes three at a time, then ends.
struct Slow<'a>(&'a [u8]);

impl Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.0.len().min(3).min(buffer.len());
        buffer[..n].copy_from_slice(&self.0[..n]);
        self.0 = &self.0[n..];
        Ok(n)
    }
}

#[track_caller]
fn check(bytes: &[u8], range: PageRange, expected: &Expect) {
    let read = |source: &[u8]| match TextPage::read(Slow(source), range, &CancellationToken::new()) {
        Ok(page) => {
            let kind = if page.is_lossy() { "lossy page" } else { "page" };
            format!(
                "{kind}:
{}",
                page.into_text()
            )
        }
        Err(error) => error.to_string(),
    };
    expected.assert_eq(&read(bytes));
    if let Ok(text) = std::str::from_utf8(bytes)
        && !text.contains(['\0', '\u{feff}'])
    {
        assert_eq!(format!("page:\n{}", TextPage::from_text(text, range).into_text()), read(bytes));
    }
}

#[test]
fn page_of_a_text_is_read() {
    check(
        b"1\n2\r\n3\n4\n5",
        RANGE,
        &expect![[r#"
        page:
             1	1
             2	2
             3	3
        (lines 1 to 3 of 5; continue with offset=4)
    "#]],
    );
    check(
        b"1\n2\r\n3\n4\n5",
        PageRange { first_line: 4, ..RANGE },
        &expect![[r#"
        page:
             4	4
             5	5
    "#]],
    );
    check(
        "é".repeat(11).as_bytes(),
        RANGE,
        &expect![[r#"
        page:
             1	éééééééééé… (cut, the line has 11 characters)
    "#]],
    );
    check(
        b"1234567890\r\nx",
        RANGE,
        &expect![[r#"
        page:
             1	1234567890
             2	x
    "#]],
    );
    check(
        b"12\n3456\n7",
        PageRange { bytes_max: 5, ..RANGE },
        &expect![[r#"
        page:
             1	12
        (lines 1 to 1 of 3; continue with offset=2)
    "#]],
    );
}

#[test]
fn encodings_are_decoded() {
    let utf16: Vec<u8> = "\u{feff}grün\n2\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    check(
        &utf16,
        RANGE,
        &expect![[r#"
        page:
             1	grün
             2	2
    "#]],
    );
    check(
        b"\xEF\xBB\xBFa\xFFb\n",
        RANGE,
        &expect![[r#"
        lossy page:
             1	a�b
    "#]],
    );
    check(b"a\n\0b", RANGE, &expect!["it is a binary file"]);
}

/// An endless text.
struct Endless;

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        buffer.fill(b'x');
        Ok(buffer.len())
    }
}

#[test]
fn endless_line_stops_when_cancelled() {
    let cancel = CancellationToken::new();
    let reading = {
        let cancel = cancel.clone();
        std::thread::spawn(move || TextPage::read(Endless, RANGE, &cancel).map(TextPage::into_text))
    };
    cancel.cancel();
    assert_eq!(reading.join().unwrap().unwrap_err().to_string(), "the turn was cancelled");
}
