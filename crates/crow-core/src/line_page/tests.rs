use proptest::prelude::*;

use super::*;

const RANGE: PageRange = PageRange { first_line: 1, lines_max: 3, bytes_max: 1000, chars_max: 10 };

#[track_caller]
fn check(text: &str, range: PageRange, expected: (&[&str], usize)) {
    let mut pager = LinePager::new(range);
    pager.push(text.as_bytes());
    let page = pager.into_page();
    assert_eq!(
        (page.lines.iter().map(String::as_str).collect::<Vec<_>>(), page.n_lines),
        (expected.0.to_vec(), expected.1)
    );
}

#[test]
fn page_contains_requested_lines() {
    check("", RANGE, (&[], 0));
    check("1\n2\r\n3\n4\n5", RANGE, (&["1", "2", "3"], 5));
    check("1\n2\n3\n", PageRange { first_line: 3, ..RANGE }, (&["3"], 3));
    check("1\n2\n3\n", PageRange { first_line: 4, ..RANGE }, (&[], 3));
    check("12\n3456\n7", PageRange { bytes_max: 5, ..RANGE }, (&["12"], 3));
    check("1234567890\r\n\r", RANGE, (&["1234567890", "\r"], 2));
    check("12345678901", RANGE, (&["1234567890… (cut, the line has 11 characters)"], 1));
}

proptest! {
    #[test]
    fn pages_equal_lines_for_any_chunking(
        text in "[aé\r\n]{0,40}", first_line in 1_usize..6, lines_max in 1_usize..5, cuts in prop::collection::vec(0_usize..40, 0..4),
    ) {
        let range = PageRange { first_line, lines_max, bytes_max: 1000, chars_max: 100 };
        let mut pager = LinePager::new(range);
        let bytes = text.as_bytes();
        let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
        cuts.sort_unstable();
        let mut begin = 0;
        for end in cuts.into_iter().chain([bytes.len()]) {
            pager.push(&bytes[begin..end]);
            begin = end;
        }
        let page = pager.into_page();
        let lines: Vec<String> = text.lines().skip(first_line - 1).take(lines_max).map(str::to_owned).collect();
        prop_assert_eq!(page, LinePage { first_line, lines, n_lines: text.lines().count(), is_lossy: false });
    }
}
