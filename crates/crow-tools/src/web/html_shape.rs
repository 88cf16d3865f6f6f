//! The depth and size of an HTML page, in one cheap pass over any input.
//!
//! Engines that build trees need quadratic time for some of it. Counts too much rather than too little if a page does
//! not close its elements.

use std::collections::HashMap;

/// Longer names are no known elements; they count together.
const NAME_BYTES_MAX: usize = 16;

/// Elements without an end tag.
const VOID_ELEMENTS: [&[u8]; 14] = [
    b"area", b"base", b"br", b"col", b"embed", b"hr", b"img", b"input", b"link", b"meta", b"param",
    b"source", b"track", b"wbr",
];

/// Elements that end at the next one of their kind.
const IMPLIED_END_ELEMENTS: [&[u8]; 16] = [
    b"body",
    b"colgroup",
    b"dd",
    b"dt",
    b"head",
    b"html",
    b"li",
    b"optgroup",
    b"option",
    b"p",
    b"rp",
    b"rt",
    b"tbody",
    b"td",
    b"th",
    b"tr",
];

/// Elements that a parser reopens in every following block until they are closed.
const FORMATTING_ELEMENTS: [&[u8]; 14] = [
    b"a", b"b", b"big", b"code", b"em", b"font", b"i", b"nobr", b"s", b"small", b"strike", b"strong", b"tt",
    b"u",
];

/// Elements whose content is text.
const RAW_TEXT_ELEMENTS: [&[u8]; 8] =
    [b"iframe", b"noembed", b"noframes", b"script", b"style", b"textarea", b"title", b"xmp"];

/// SVG elements that keep the parser within the drawing.
const SVG_ELEMENTS: [&[u8]; 24] = [
    b"circle",
    b"clippath",
    b"defs",
    b"desc",
    b"ellipse",
    b"filter",
    b"g",
    b"image",
    b"line",
    b"lineargradient",
    b"marker",
    b"mask",
    b"path",
    b"pattern",
    b"polygon",
    b"polyline",
    b"radialgradient",
    b"rect",
    b"stop",
    b"symbol",
    b"text",
    b"title",
    b"tspan",
    b"use",
];

/// The measures of a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct HtmlShape {
    pub(super) n_elements: usize,
    pub(super) depth: usize,
    /// Elements that a parser would add.
    pub(super) n_reopened: usize,
    /// Cost of serializing the page: each character to be escaped scans its whole text.
    pub(super) escape_cost: usize,
    /// Maximum number of attributes in one tag: a parser compares each with those before it.
    pub(super) n_attributes: usize,
}

pub(super) type TagName = [u8; NAME_BYTES_MAX];

/// Measures a page.
pub(super) fn measure_html(html: &str) -> HtmlShape {
    let bytes = html.as_bytes();
    let mut scan = HtmlScan::default();
    let mut at = 0_usize;
    while let Some(next) = find_bytes(bytes, at, b"<") {
        scan.count_text(&bytes[at..next]);
        at = next + 1;
        match bytes.get(at) {
            Some(b'!') if bytes[at..].starts_with(b"!--") => at = skip_comment(bytes, at + 1),
            Some(b'!' | b'?') => at = skip_past(bytes, at, b">"),
            Some(b'/') => {
                let (name, length) = read_tag_name(&bytes[at + 1..]);
                let tag = read_attributes(bytes, at + 1 + length);
                at = tag.end;
                scan.count_attributes(&tag);
                scan.close_element(&name);
            }
            Some(first) if first.is_ascii_alphabetic() => {
                let (name, length) = read_tag_name(&bytes[at..]);
                let tag = read_attributes(bytes, at + length);
                scan.count_tag(&bytes[at..tag.end]);
                scan.count_attributes(&tag);
                at = tag.end;
                if scan.is_raw_text(&name) {
                    let begin = at;
                    at = skip_raw_text(bytes, at, &name);
                    scan.count_text(&bytes[begin..at]);
                    scan.count_element();
                    // A script in a comment in a script continues after its end.
                    scan.is_malformed |= find_bytes(&bytes[..at], begin, b"<!--").is_some();
                } else if tag.is_self_closing && scan.is_drawing() {
                    scan.count_element();
                } else {
                    scan.open_element(name);
                }
            }
            _ => scan.count_text(b"<"),
        }
    }
    scan.count_text(bytes.get(at..).unwrap_or_default());
    // Texts that are separate in the page may be one for a parser.
    let escape_cost = scan.n_escaped.saturating_mul(scan.n_text_bytes);
    HtmlShape { escape_cost: escape_cost.saturating_add(scan.shape.escape_cost), ..scan.shape }
}

/// The open elements at a position of a page.
#[derive(Default)]
struct HtmlScan {
    shape: HtmlShape,
    stack: Vec<TagName>,
    n_open: HashMap<TagName, usize>,
    depth: usize,
    n_to_reopen: usize,
    n_escaped: usize,
    n_text_bytes: usize,
    /// Whether the nesting does not match the tags, so that nothing is skipped from here on: a parser may read elements
    /// in what looks like text.
    is_malformed: bool,
}

impl HtmlScan {
    fn is_open(&self, name: &[u8]) -> bool {
        let mut key = TagName::default();
        key.iter_mut().zip(name).for_each(|(letter, byte)| *letter = *byte);
        self.n_open.get(&key).is_some_and(|n_open| *n_open > 0)
    }

    fn is_raw_text(&self, name: &TagName) -> bool {
        is_one_of(&RAW_TEXT_ELEMENTS, name)
            && !self.is_malformed
            && !self.is_open(b"svg")
            && !self.is_open(b"select")
    }

    /// Whether elements may be self-closing here, as only in drawings.
    fn is_drawing(&self) -> bool {
        let is_inside = self.is_open(b"svg") && !self.is_open(b"title") && !self.is_open(b"desc");
        is_inside && !self.is_malformed
    }

    fn count_text(&mut self, text: &[u8]) {
        self.n_escaped += count_escapable(text);
        self.n_text_bytes += text.len();
    }

    fn count_tag(&mut self, tag: &[u8]) {
        let values = tag.strip_suffix(b">").unwrap_or(tag);
        let n_quotes = values.iter().filter(|byte| **byte == b'"').count();
        // The two quotes around each value are not part of it, but they are few or the values are short.
        let cost = (count_escapable(values) + n_quotes).saturating_mul(values.len());
        self.shape.escape_cost = self.shape.escape_cost.saturating_add(cost);
    }

    fn count_attributes(&mut self, tag: &TagAttributes) {
        self.shape.n_attributes = self.shape.n_attributes.max(tag.n_attributes);
    }

    fn count_element(&mut self) {
        self.shape.n_elements += 1;
        self.shape.n_reopened = self.shape.n_reopened.saturating_add(self.n_to_reopen);
    }

    fn open_element(&mut self, name: TagName) {
        self.count_element();
        let leaves_drawing = self.is_open(b"svg") && !is_one_of(&SVG_ELEMENTS, &name);
        self.is_malformed |= leaves_drawing || is_one_of(&[b"math"], &name);
        if is_one_of(&VOID_ELEMENTS, &name) || is_one_of(&IMPLIED_END_ELEMENTS, &name) {
            return;
        }
        *self.n_open.entry(name).or_default() += 1;
        self.stack.push(name);
        self.depth += 1;
        self.n_to_reopen += usize::from(is_one_of(&FORMATTING_ELEMENTS, &name));
        self.shape.depth = self.shape.depth.max(self.depth);
    }

    fn close_element(&mut self, name: &TagName) {
        // An end tag without a start tag closes nothing.
        let Some(n_open) = self.n_open.get_mut(name).filter(|n_open| **n_open > 0) else { return };
        *n_open -= 1;
        self.depth -= 1;
        self.n_to_reopen -= usize::from(is_one_of(&FORMATTING_ELEMENTS, name));
        self.is_malformed |= self.stack.pop() != Some(*name);
    }
}

/// Counts characters that may be escaped; the last of them begins a non-breaking space.
fn count_escapable(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| matches!(byte, b'&' | b'<' | b'>' | 0xC2)).count()
}

pub(super) fn is_one_of(names: &[&[u8]], name: &TagName) -> bool {
    let length = name.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES_MAX);
    names.contains(&&name[..length])
}

/// Reads an element's name and returns its length.
pub(super) fn read_tag_name(bytes: &[u8]) -> (TagName, usize) {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'>' | b'/');
    let length = bytes.iter().position(ends).unwrap_or(bytes.len());
    let mut name = TagName::default();
    for (letter, byte) in name.iter_mut().zip(&bytes[..length]) {
        *letter = byte.to_ascii_lowercase();
    }
    (name, length)
}

/// The position of the parser within a tag.
enum TagPosition {
    BeforeName,
    Name,
    AfterName,
    BeforeValue,
    Value,
}

/// The part of a tag behind its name.
struct TagAttributes {
    /// The index behind the tag.
    end: usize,
    is_self_closing: bool,
    n_attributes: usize,
}

/// Returns the end of a tag.
pub(super) fn skip_attributes(bytes: &[u8], from: usize) -> usize {
    read_attributes(bytes, from).end
}

/// Reads a tag from behind its name; a `>` in quotes does not end it.
fn read_attributes(bytes: &[u8], from: usize) -> TagAttributes {
    let (mut at, mut n_attributes) = (from, 0);
    let mut position = TagPosition::BeforeName;
    while let Some(byte) = bytes.get(at) {
        at += 1;
        if *byte == b'>' {
            return TagAttributes { end: at, is_self_closing: false, n_attributes };
        }
        position = match (position, byte) {
            (TagPosition::BeforeName | TagPosition::Name | TagPosition::AfterName, b'/') => {
                if bytes.get(at) == Some(&b'>') {
                    return TagAttributes { end: at + 1, is_self_closing: true, n_attributes };
                }
                TagPosition::BeforeName
            }
            (TagPosition::Name | TagPosition::AfterName, b'=') => TagPosition::BeforeValue,
            (TagPosition::BeforeValue, b'"' | b'\'') => {
                at = skip_past(bytes, at, &[*byte]);
                TagPosition::BeforeName
            }
            (TagPosition::BeforeName | TagPosition::Value, blank) if blank.is_ascii_whitespace() => {
                TagPosition::BeforeName
            }
            (TagPosition::Name | TagPosition::AfterName, blank) if blank.is_ascii_whitespace() => {
                TagPosition::AfterName
            }
            (TagPosition::BeforeValue, blank) if blank.is_ascii_whitespace() => TagPosition::BeforeValue,
            (TagPosition::BeforeValue | TagPosition::Value, _) => TagPosition::Value,
            (TagPosition::Name, _) => TagPosition::Name,
            (TagPosition::BeforeName | TagPosition::AfterName, _) => {
                n_attributes += 1;
                TagPosition::Name
            }
        };
    }
    TagAttributes { end: at, is_self_closing: false, n_attributes }
}

/// Returns the end of a comment, which may be as soon as it begins.
pub(super) fn skip_comment(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(next) = find_bytes(bytes, at, b"--") {
        let rest = &bytes[next + 2..];
        match rest {
            [b'>', ..] => return next + 3,
            [b'!', b'>', ..] => return next + 4,
            _ => at = next + 1,
        }
    }
    bytes.len()
}

/// Returns the end of the end tag of an element whose content is text.
pub(super) fn skip_raw_text(bytes: &[u8], from: usize, element: &TagName) -> usize {
    let mut at = from;
    while let Some(next) = find_bytes(bytes, at, b"</") {
        let (name, length) = read_tag_name(&bytes[next + 2..]);
        at = next + 2 + length;
        if name == *element {
            return skip_past(bytes, at, b">");
        }
    }
    bytes.len()
}

pub(super) fn skip_past(bytes: &[u8], from: usize, pattern: &[u8]) -> usize {
    find_bytes(bytes, from, pattern).map_or(bytes.len(), |at| at + pattern.len())
}

pub(super) fn find_bytes(bytes: &[u8], from: usize, pattern: &[u8]) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.windows(pattern.len()).position(|window| window == pattern).map(|at| from + at)
}

#[cfg(test)]
mod tests;
