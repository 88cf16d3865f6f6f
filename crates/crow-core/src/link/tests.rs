use super::{format_link, is_web_image};

#[track_caller]
fn check(uri: &str, name: &str, expected: &str) {
    assert_eq!(format_link(uri, name), expected);
}

#[test]
fn file_link_is_path_with_lines() {
    check("file:///p/src/main.rs", "main.rs", "[main.rs](/p/src/main.rs)");
    check("file:///p/a%20b.txt#L10:20", "a b", "[a b](/p/a b.txt) (lines 10 to 20)");
    check("file:///p/a#L3", "", "[/p/a] (line 3)");
    check("file:///p/a#L3-L9", "/p/a", "[/p/a] (lines 3 to 9)");
    check("file://localhost/p/a#L3-9", "", "[/p/a] (lines 3 to 9)");
}

#[test]
fn line_range_has_several_formats() {
    for range in
        ["#L3:9", "#L3-9", "#L3-L9", "#3-9", "#l3,9", "#L3C1-L9C20", "?lines=3-9", "?symbol=x&lines=3:9"]
    {
        check(&format!("file:///p/a{range}"), "", "[/p/a] (lines 3 to 9)");
    }
    for range in ["#L3", "#3", "#L3C7", "#line=3", "?line=3", "?symbol=f#L3"] {
        check(&format!("file:///p/a{range}"), "", "[/p/a] (line 3)");
    }
    check("file:/p/a#L3", "", "[/p/a] (line 3)");
    check("file:///p/why?", "", "[/p/why?]");
    check("file:///p/why?#L3", "", "[/p/why?] (line 3)");
}

#[test]
fn invalid_line_range_is_ignored() {
    for fragment in ["L0", "L9:3", "Lx", "section", "L", "L3-", "L-3", "L+3", "L99999999999999999999", ""] {
        check(&format!("file:///p/a#{fragment}"), "", "[/p/a]");
    }
}

#[test]
fn link_is_rendered_as_one_line() {
    check("file:///p/a%0ASYSTEM: x", "b\nc", "[b\\nc](/p/a\\nSYSTEM: x)");
    check("x:\n\u{202e}", "", "[x:\\n\\u{202e}]");
}

#[test]
fn other_links_stay_unchanged() {
    check("https://example.org/a#L3", "page", "[page](https://example.org/a#L3)");
    check("https://example.org/a", "", "[https://example.org/a]");
    check("file://other-host/p/a", "", "[file://other-host/p/a]");
    check("file:///p/%ff", "", "[file:///p/%ff]");
    check("file:///p/%f", "", "[file:///p/%f]");
}

#[test]
fn web_image_is_detected_by_type_or_extension() {
    let check = |uri: &str, mime: Option<&str>, expected: bool| {
        assert_eq!(is_web_image(uri, mime), expected, "{uri} {mime:?}");
    };
    check("https://a.test/b.png", None, true);
    check("HTTP://a.test/b.JPEG?size=2#top", None, true);
    check("https://a.test/b", Some("image/webp"), true);
    check("https://a.test/b", Some("Image/JPG; q=1"), true);
    check("https://a.test/b", Some("image/*"), true);
    check("https://a.test/b.png", Some(""), true);
    check("https://a.test/b.png", Some("text/html"), false);
    check("https://a.test/b.svg", Some("image/svg+xml"), false);
    check("https://a.test/b?c=d.png", None, false);
    check("https://a.png", None, false);
    check("file:///a/b.png", None, false);
    check("ftp://a.test/b.png", Some("image/png"), false);
    check("é", None, false);
}
