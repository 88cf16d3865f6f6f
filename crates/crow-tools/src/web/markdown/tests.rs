use expect_test::{Expect, expect};

use super::*;

fn url() -> Url {
    Url::parse("https://example.com/docs/page").unwrap()
}

#[track_caller]
fn check(html: &str, expect: &Expect) {
    expect.assert_eq(&html_to_markdown(html, &url()).unwrap_or_else(|| "none".to_owned()));
}

const PARAGRAPH: &str = "<p>Long sentences with commas, clauses, and more of them, are what an article is made of, as \
    everybody knows who has read one, or two, and no site would put so many of them into a menu, or a footer.</p>";

#[test]
fn article_is_extracted() {
    let html = format!(
        "<html><head><title>The page | Site</title><style>p {{}}</style></head><body>
        <nav><a href=/>Home</a> <a href=/about>About</a></nav>
        <main><article><h1>The page</h1>{PARAGRAPH}{PARAGRAPH}
        <p>See <a href='other#x'>the other</a> and <a href='https://docs.rs/'>docs</a>.</p>
        <ul><li>one<ul><li>deep</li></ul></li><li>two</li></ul>
        <pre><code class='language-rust'>fn main() {{\n    run(a &lt; b);\n}}</code></pre>
        <table><tr><th>key</th><th>meaning</th></tr><tr><td>a</td><td>x | y</td></tr></table>
        <p><img src='/i.png' alt='a picture'></p>
        </article></main><footer>Imprint and cookies</footer><script>track()</script></body></html>"
    );
    check(
        &html,
        &expect![[r#"
            # The page | Site

            Long sentences with commas, clauses, and more of them, are what an article is made of, as everybody knows who has read one, or two, and no site would put so many of them into a menu, or a footer.

            Long sentences with commas, clauses, and more of them, are what an article is made of, as everybody knows who has read one, or two, and no site would put so many of them into a menu, or a footer.

            See [the other](https://example.com/docs/other#x) and [docs](https://docs.rs/).

            - one
                - deep
            - two

            ```rust
            fn main() {
                run(a < b);
            }
            ```


            | key | meaning |
            | --- | ------- |
            | a | x \| y |

            ![a picture](https://example.com/i.png)"#]],
    );
}

#[test]
fn page_without_an_article_is_converted_as_a_whole() {
    check(
        "<title>T</title><h1>Links</h1><ul><li><a href=/a>first</a><li><a href=b>second</a></ul><p>a &amp; b &copy; &#x41;",
        &expect![[r#"
            # Links

            - [first](https://example.com/a)
            - [second](https://example.com/docs/b)

            a & b © A"#]],
    );
    check(
        "<dl><dt>term<dd>meaning<dt>other<dd>one</dl>",
        &expect![[r#"
        term

        meaning

        other

        one"#]],
    );
    check(
        "<p>a <img src='data:image/png;base64,AAAA' alt=x> b <a href='data:text/html,x'>c</a>",
        &expect!["a b c"],
    );
    check("just text", &expect!["just text"]);
    check("", &expect![[""]]);
    check("<p>unclosed <b>bold <i>both</b> end", &expect!["unclosed **bold *both*** *end*"]);
    check("<base href='https://other.org/x/'><a href=y>y</a>", &expect!["[y](https://other.org/x/y)"]);
}

/// Converts pages that would hang or crash an unprotected process. Blocking threads have this much stack.
#[track_caller]
fn check_hostile(name: &str, html: String) {
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    let ended = thread.spawn(move || html_to_markdown(&html, &url()).map(|text| text.len()));
    let n_bytes = ended.unwrap().join().unwrap();
    assert!(n_bytes.is_some_and(|n_bytes| n_bytes > 0), "{name}");
}

#[test]
fn depth_is_bounded() {
    let bait = PARAGRAPH.repeat(5);
    for element in [
        "div",
        "blockquote",
        "ul><li",
        "ol><li",
        "table><tr><td",
        "b",
        "a href=x",
        "section",
        "dl><dd",
        "font",
        "svg",
        "span",
    ] {
        check_hostile(element, format!("{bait}{}x", format!("<{element}>").repeat(30_000)));
    }
    check_hostile("hidden", format!("{bait}{}x", "<div></x>".repeat(30_000)));
    check_hostile("just below", format!("{}{}x", "<div>".repeat(500), bait.repeat(20)));
}

#[test]
fn breadth_is_bounded() {
    let bait = PARAGRAPH.repeat(5);
    check_hostile("paragraphs", PARAGRAPH.repeat(2_000));
    check_hostile(
        "cells",
        format!("{bait}<table>{}</table>", format!("<tr>{}</tr>", "<td>x".repeat(100)).repeat(2_000)),
    );
    check_hostile("columns", format!("{bait}<table><tr>{}</table>", "<td>x".repeat(200_000)));
    check_hostile("spans", format!("{bait}<table>{}", "<tr><td colspan=1000000 rowspan=65534>x".repeat(20)));
    check_hostile("items", format!("{bait}<ul>{}", "<li>x".repeat(200_000)));
    let attributes: String = (0..300_000).map(|number| format!(" a{number}")).collect();
    let begin = std::time::Instant::now();
    check_hostile("attributes", format!("{bait}<p{attributes}>x</p>"));
    check_hostile("attributes of an end", format!("{bait}<p>x</p{attributes}>"));
    assert!(begin.elapsed().as_secs() < 20, "attributes: {:?}", begin.elapsed());
    check_hostile("breaks", format!("{bait}{}", "<br>".repeat(300_000)));
    check_hostile("links", format!("{bait}{}", "<a href=x>y</a>".repeat(100_000)));
    check_hostile("divs", format!("{bait}{}", "<div>a, b, c</div>".repeat(4_000)));
    check_hostile("lists", format!("{bait}{}", "<ul><li>x</ul>".repeat(2_000)));
}

#[test]
fn unusual_pages_are_converted() {
    let bait = PARAGRAPH.repeat(5);
    check_hostile(
        "reopened",
        format!(
            "{bait}{}{}",
            (0..500).map(|n| format!("<b id={n}>")).collect::<String>(),
            "<p>x".repeat(100_000)
        ),
    );
    check_hostile("misnested", format!("{bait}{}", "<a><b><p></a></b>".repeat(50_000)));
    check_hostile("entities", format!("{bait}{}", "&amp;&lt;&#x10FFFF;&#0;&nosuch;".repeat(500)));
    check_hostile("ampersands", format!("{bait}{}", "&".repeat(2_000_000)));
    check_hostile("attribute", format!("{bait}<p class='{}'>x", "a ".repeat(100_000)));
    check_hostile(
        "attributes",
        format!("{bait}<p {}>x", (0..5_000).map(|n| format!("a{n}=b ")).collect::<String>()),
    );
    check_hostile("comments", format!("{bait}{}", "<!-- x -->".repeat(10_000)));
    check_hostile("open comment", format!("{bait}{}", "<!--".repeat(50_000)));
    check_hostile("less than", format!("{bait}{}", "<".repeat(2_000_000)));
    check_hostile("one word", format!("{bait}<p>{}", "a".repeat(100_000)));
    check_hostile("blanks", format!("{bait}<p>{}", " ".repeat(100_000)));
    check_hostile("newlines", format!("{bait}<pre>{}", "\n".repeat(100_000)));
    check_hostile("stars", format!("{bait}<p>{}", "*_`[](".repeat(10_000)));
    check_hostile("scripts", format!("{bait}{}", "<script>x".repeat(10_000)));
    check_hostile("templates", format!("{bait}{}", "<template>".repeat(30_000)));
    check_hostile("selects", format!("{bait}{}", "<select><option>".repeat(30_000)));
}

#[test]
fn page_that_is_too_deep_becomes_plain_text() {
    let html = format!(
        "<title>T</title><script>x</script>{}<p>a &amp; <b>b</b><!-- c --> 1 < 2</p>é<br>d",
        "<div>".repeat(600)
    );
    check(
        &html,
        &expect![[r#"
        a & b 1 < 2
        é
        d"#]],
    );
}
