use super::*;

/// Measures a page as (elements, depth, reopened).
#[track_caller]
fn check(html: &str, expected: (usize, usize, usize)) {
    let HtmlShape { n_elements, depth, n_reopened, .. } = measure_html(html);
    assert_eq!((n_elements, depth, n_reopened), expected, "{}", html.get(..80).unwrap_or(html));
}

#[test]
fn ordinary_pages_are_measured() {
    check("", (0, 0, 0));
    check("a < b and 1 <2", (0, 0, 0));
    check("<html><body><div><p>x<p>y</div></body></html>", (5, 1, 0));
    check("<ul><li>a<ul><li>b</ul></ul>", (4, 2, 0));
    check("<br><img src=a><hr/><input>", (4, 0, 0));
    check("<DIV><div></DIV></div>", (2, 2, 0));
    check("<!doctype html><?xml?><div>", (1, 1, 0));
}

#[test]
fn text_that_looks_like_an_element_is_not_counted() {
    check("<!-- <div><div> --><div>", (1, 1, 0));
    check("<script>'<div><div>'</script ><div>", (2, 1, 0));
    check("<style>a</styles><div></style><div>", (2, 1, 0));
    check("<div title='<div><div>'>", (1, 1, 0));
    check("<div title = \"a>b\"><i>", (2, 2, 0));
    check("<div title='", (1, 1, 0));
    check("<script>", (1, 0, 0));
    check("<!--", (0, 0, 0));
    check("</div></div><div>", (1, 1, 0));
}

#[test]
fn end_tags_without_start_tags_hide_nothing() {
    check(&"<div></x>".repeat(1000), (1000, 1000, 0));
    check(&"<div><i></i>".repeat(1000), (2000, 1001, 0));
}

#[test]
fn text_that_a_parser_reads_as_elements_is_counted() {
    let deep = "<div>".repeat(1000);
    for before in [
        "<!-->",
        "<!--->",
        "<!-- --!>",
        "<svg><style>",
        "<svg><p><script>",
        "<svg><title></svg></title><style>",
        "<svg><foreignObject></svg></foreignObject><style>",
        "<select><style></select>",
        "<select><template></select></template><style></select>",
        "<math><mi></math></mi><style>",
        "<b><i></b><style>",
        "<p =\">",
        "<p x=y =\">",
        "</x a=\">\" <script>",
        "<script><!--<script></script><style></script>",
    ] {
        let depth = measure_html(&format!("{before}{deep}")).depth;
        assert!(depth >= 1000, "{before}: {depth}");
    }
    for before in ["<svg><p>", "<svg><title>"] {
        let depth = measure_html(&format!("{before}{}", "<path/>".repeat(1000))).depth;
        assert!(depth >= 1000, "{before}: {depth}");
    }
    let depth = measure_html(&format!("<svg>{}", "<circle r=1/>".repeat(1000))).depth;
    assert!(depth >= 1000, "{depth}");
}

#[test]
fn drawings_are_not_deep() {
    let icon = "<svg><title>x</title><g><path d='a'/><circle r=1 /></g></svg><script>'<div>'</script>";
    check(&icon.repeat(100), (600, 2, 0));
}

#[test]
fn reopened_elements_are_counted() {
    check("<b><p>x<p>y", (3, 1, 2));
    check(&format!("{}{}", "<b id=1>".repeat(100), "<p>x".repeat(100)), (200, 100, 4950 + 10_000));
}

#[test]
fn escape_cost_includes_the_surrounding_text() {
    let escaping = |html: &str| measure_html(html).escape_cost;
    assert_eq!(escaping("<p>ab<p>cd"), 0);
    assert_eq!(escaping("&&<p>&&"), 4 * 4);
    assert_eq!(escaping("<<<"), 3 * 3);
    assert_eq!(escaping("a\u{a0}b"), 4);
    assert_eq!(escaping("<title>&</title>"), 3 * "&</title>".len());
    assert_eq!(escaping("<p title='&&'>"), 2 * "p title='&&'".len());
    assert_eq!(escaping("<p title=\"&\">"), 3 * "p title='&'".len());
}

#[test]
fn attributes_of_the_largest_tag_are_counted() {
    let attributes = |html: &str| measure_html(html).n_attributes;
    assert_eq!(attributes("<p>a b c"), 0);
    assert_eq!(attributes("<p a b=c d = e f='g h' i=\"j\"k/l>"), 7);
    assert_eq!(attributes("<p a><p a =b c></p x y z =>"), 3);
    assert_eq!(attributes("<p a b c"), 3);
}

#[test]
fn measuring_is_fast_for_any_input() {
    let begin = std::time::Instant::now();
    for hostile in [
        "<",
        "<a",
        "<a ",
        "</",
        "<!--",
        "<script>",
        "<a b='",
        "<div>",
        "<b><p>",
        "</script",
        "<a =",
        "<x y=\"\">",
    ] {
        measure_html(&hostile.repeat((1 << 16) / hostile.len()));
        measure_html(&format!("<script>{}", hostile.repeat((1 << 16) / hostile.len())));
    }
    assert!(begin.elapsed().as_secs() < 20, "{:?}", begin.elapsed());
}
