//! Converts HTML to markdown: the main content if it can be determined. CPU intensive; must not know the network.
//!
//! Pages are untrusted: an expensive page is converted in a simpler way, and a panic of an engine is caught.

use std::panic::{AssertUnwindSafe, catch_unwind};

use dom_query::Document;
use dom_smoothie::{Config, Readability};
use reqwest::Url;

use super::{
    html_shape::{HtmlShape, measure_html},
    tag_stripper::strip_tags,
};

/// The nesting limit of browsers.
const DEPTH_MAX: usize = 512;

/// Engines compare neighbouring elements; longer pages are generated lists.
const ELEMENTS_MAX: usize = 20_000;

/// More is an attack on the parser.
const REOPENED_MAX: usize = 100_000;

/// A second or two of an optimized program at most, and a hundred times the need of pages of this size.
const ESCAPE_COST_MAX: usize = 10_000_000_000;

/// More than any real tag has; a parser compares each with all before it.
const ATTRIBUTES_MAX: usize = 1000;

/// A shorter text is as likely a menu or a login page as an article.
const ARTICLE_CHARS_MIN: usize = 250;

/// Converts a page to markdown; `None` if an engine failed.
pub(super) fn html_to_markdown(html: &str, url: &Url) -> Option<String> {
    if !is_safe_to_parse(&measure_html(html)) {
        return Some(strip_tags(html));
    }
    catch_panic(|| {
        let MainContent { title, document } = extract_main_content(html, url)?;
        Some(prepend_title(&title, &render_markdown(&document, url)))
    })
    .flatten()
}

fn is_safe_to_parse(html_shape: &HtmlShape) -> bool {
    let HtmlShape { n_elements, depth, n_reopened, escape_cost, n_attributes } = *html_shape;
    let is_small = depth <= DEPTH_MAX && n_elements <= ELEMENTS_MAX && n_attributes <= ATTRIBUTES_MAX;
    is_small && n_reopened <= REOPENED_MAX && escape_cost <= ESCAPE_COST_MAX
}

/// Runs work that may panic on an unexpected page.
fn catch_panic<T>(work: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(work)).ok()
}

/// The content of a page worth reading.
struct MainContent {
    title: String,
    document: Document,
}

/// Extracts the main content, or returns the whole page.
fn extract_main_content(html: &str, url: &Url) -> Option<MainContent> {
    // Classes give the language of a code block.
    let config = Config { keep_classes: true, max_elements_to_parse: ELEMENTS_MAX * 2, ..Config::default() };
    let mut page = Readability::new(html, Some(url.as_str()), Some(config)).ok()?;
    // Taken first, because the search for an article changes the document.
    let full_page = page.doc.clone();
    if page.is_probably_readable()
        && let Ok(article) = page.parse()
        && article.text_content.chars().nth(ARTICLE_CHARS_MIN).is_some()
    {
        return Some(MainContent { title: article.title, document: Document::from(article.content) });
    }
    Some(MainContent { title: String::new(), document: full_page })
}

fn render_markdown(document: &Document, url: &Url) -> String {
    let base = document.base_uri().and_then(|base| url.join(&base).ok());
    let base = base.as_ref().unwrap_or(url);
    // The content of a file in an address would fill the model's context.
    document.select("img[src^='data:']").remove();
    document.select("a[href^='data:']").remove_attr("href");
    for (elements, attribute) in [("a[href]", "href"), ("img[src]", "src")] {
        for element in document.select(elements).iter() {
            if let Ok(absolute) = base.join(&element.attr_or(attribute, "")) {
                element.set_attr(attribute, absolute.as_str());
            }
        }
    }
    // The converter would join a term and its definition.
    document.select("dt, dd").rename("div");
    document.md(None).trim().to_owned()
}

/// Prepends the title unless the text begins with it.
fn prepend_title(title: &str, text: &str) -> String {
    let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
    let first = text.lines().next().unwrap_or_default();
    let has_title = first.strip_prefix("# ").is_some_and(|heading| heading.trim() == title);
    if title.is_empty() || has_title { text.to_owned() } else { format!("# {title}\n\n{text}") }
}

#[cfg(test)]
mod tests;
