//! Attachments of a prompt: file links with lines, images in base64, and pages of files are parsed without harm.
//!
//! The first line of the input is a URI, the second the type of an image, the rest its data and a text.
#![no_main]

use crow_core::{ContentPart, LinePager, PageRange, check_image, link, read_data_url, read_image_part};
use libfuzzer_sys::fuzz_target;

fn page(pieces: &[&[u8]], range: PageRange) -> crow_core::LinePage {
    let mut pager = LinePager::new(range);
    pieces.iter().for_each(|piece| pager.push(piece));
    pager.into_page()
}

fuzz_target!(|data: &[u8]| {
    let mut parts = data.splitn(3, |&byte| byte == b'\n');
    let (uri, mime, rest) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    if let Ok(uri) = std::str::from_utf8(uri) {
        if let Some((path, lines)) = link::parse_file_link(uri) {
            assert!(path.starts_with('/'), "{uri}");
            assert!(lines.is_none_or(|(first, last)| 0 < first && first <= last), "{uri}");
        }
        assert!(!link::format_link(uri, "name").is_empty());
        drop(read_data_url(uri));
    }
    if let (Ok(mime), Ok(data)) = (std::str::from_utf8(mime), std::str::from_utf8(rest))
        && let Ok(ContentPart::Image { mime, data }) = read_image_part(mime, data)
    {
        let bytes = crow_core::decode_base64(&data).expect("a parsed image is base64");
        assert_eq!(check_image(&bytes), Ok(mime.as_str()));
    }
    let [first_line, lines_max, chars_max] =
        [0, 1, 2].map(|place| usize::from(mime.get(place).copied().unwrap_or(3)) % 16 + 1);
    let range = PageRange { first_line, lines_max, bytes_max: 100, chars_max };
    let whole = page(&[rest], range);
    let cut = rest.len() / 2;
    assert_eq!(page(&[&rest[..cut], &rest[cut..]], range), whole);
    assert!(whole.lines.len() <= lines_max && whole.lines.iter().map(String::len).sum::<usize>() <= 100);
    if let Ok(text) = std::str::from_utf8(rest) {
        assert_eq!(whole.n_lines, text.lines().count());
    }
});
