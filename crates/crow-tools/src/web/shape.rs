//! How deep and how large a page of HTML is, in one pass that costs little whatever is in it.
//!
//! Engines that build trees of pages need time in the square of some of this. Counts too much rather than too little
//! where a page leaves its elements open.

use std::collections::HashMap;

/// Longer names are no elements that anybody knows; they count together.
const NAME_BYTES_MAX: usize = 16;

/// Elements that have no end.
const VOID: [&[u8]; 14] = [
    b"area", b"base", b"br", b"col", b"embed", b"hr", b"img", b"input", b"link", b"meta", b"param",
    b"source", b"track", b"wbr",
];

/// Elements that the next one of their kind ends.
const ENDED_BY_THE_NEXT: [&[u8]; 16] = [
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

/// Elements that a parser opens again in every block that follows, until they are ended.
const REOPENED: [&[u8]; 14] = [
    b"a", b"b", b"big", b"code", b"em", b"font", b"i", b"nobr", b"s", b"small", b"strike", b"strong", b"tt",
    b"u",
];

/// Elements whose inside is text.
const RAW: [&[u8]; 8] =
    [b"iframe", b"noembed", b"noframes", b"script", b"style", b"textarea", b"title", b"xmp"];

/// Elements of drawings that leave the parser in the drawing.
const DRAWN: [&[u8]; 24] = [
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

/// What there is to a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) n_elements: usize,
    pub(super) depth: usize,
    /// The elements that a parser would make more than are written.
    pub(super) n_reopened: usize,
    /// What writing the page down again may cost: each character that has to be escaped looks through its whole text.
    pub(super) escaping: usize,
    /// The most attributes in one tag: a parser compares each with those before it.
    pub(super) n_attributes: usize,
}

pub(super) type Name = [u8; NAME_BYTES_MAX];

/// Measures a page.
pub(super) fn measure(html: &str) -> Shape {
    let bytes = html.as_bytes();
    let mut scan = Scan::default();
    let mut at = 0_usize;
    while let Some(next) = find(bytes, at, b"<") {
        scan.text(&bytes[at..next]);
        at = next + 1;
        match bytes.get(at) {
            Some(b'!') if bytes[at..].starts_with(b"!--") => at = past_comment(bytes, at + 1),
            Some(b'!' | b'?') => at = past(bytes, at, b">"),
            Some(b'/') => {
                let (name, length) = name(&bytes[at + 1..]);
                let tag = attributes(bytes, at + 1 + length);
                at = tag.end;
                scan.attributes(&tag);
                scan.end(&name);
            }
            Some(first) if first.is_ascii_alphabetic() => {
                let (name, length) = name(&bytes[at..]);
                let tag = attributes(bytes, at + length);
                scan.tag(&bytes[at..tag.end]);
                scan.attributes(&tag);
                at = tag.end;
                if scan.is_text(&name) {
                    let begin = at;
                    at = past_text(bytes, at, &name);
                    scan.text(&bytes[begin..at]);
                    scan.count();
                    // A script in a comment in a script goes on behind its end.
                    scan.is_muddled |= find(&bytes[..at], begin, b"<!--").is_some();
                } else if tag.ends_itself && scan.is_drawing() {
                    scan.count();
                } else {
                    scan.begin(name);
                }
            }
            _ => scan.text(b"<"),
        }
    }
    scan.text(bytes.get(at..).unwrap_or_default());
    // Texts that are apart in the page may be one for a parser.
    let escaping = scan.n_escaped.saturating_mul(scan.n_text_bytes);
    Shape { escaping: escaping.saturating_add(scan.shape.escaping), ..scan.shape }
}

/// What is open at a place of a page.
#[derive(Default)]
struct Scan {
    shape: Shape,
    stack: Vec<Name>,
    n_open: HashMap<Name, usize>,
    depth: usize,
    n_to_reopen: usize,
    n_escaped: usize,
    n_text_bytes: usize,
    /// The page's nesting is not what its tags say, so that nothing is left out from here on: a parser may read as
    /// elements what looks like text.
    is_muddled: bool,
}

impl Scan {
    fn is_open(&self, name: &[u8]) -> bool {
        let mut key = Name::default();
        key.iter_mut().zip(name).for_each(|(letter, byte)| *letter = *byte);
        self.n_open.get(&key).is_some_and(|n_open| *n_open > 0)
    }

    fn is_text(&self, name: &Name) -> bool {
        is_one_of(&RAW, name) && !self.is_muddled && !self.is_open(b"svg") && !self.is_open(b"select")
    }

    /// Tells whether elements may end themselves here, which they do in drawings only.
    fn is_drawing(&self) -> bool {
        let is_inside = self.is_open(b"svg") && !self.is_open(b"title") && !self.is_open(b"desc");
        is_inside && !self.is_muddled
    }

    fn text(&mut self, text: &[u8]) {
        self.n_escaped += n_escaped(text);
        self.n_text_bytes += text.len();
    }

    fn tag(&mut self, tag: &[u8]) {
        let values = tag.strip_suffix(b">").unwrap_or(tag);
        let n_quotes = values.iter().filter(|byte| **byte == b'"').count();
        // Two of them around each value are no part of it, but they are few or the values are short.
        let cost = (n_escaped(values) + n_quotes).saturating_mul(values.len());
        self.shape.escaping = self.shape.escaping.saturating_add(cost);
    }

    fn attributes(&mut self, tag: &Attributes) {
        self.shape.n_attributes = self.shape.n_attributes.max(tag.n_names);
    }

    fn count(&mut self) {
        self.shape.n_elements += 1;
        self.shape.n_reopened = self.shape.n_reopened.saturating_add(self.n_to_reopen);
    }

    fn begin(&mut self, name: Name) {
        self.count();
        let leaves_drawing = self.is_open(b"svg") && !is_one_of(&DRAWN, &name);
        self.is_muddled |= leaves_drawing || is_one_of(&[b"math"], &name);
        if is_one_of(&VOID, &name) || is_one_of(&ENDED_BY_THE_NEXT, &name) {
            return;
        }
        *self.n_open.entry(name).or_default() += 1;
        self.stack.push(name);
        self.depth += 1;
        self.n_to_reopen += usize::from(is_one_of(&REOPENED, &name));
        self.shape.depth = self.shape.depth.max(self.depth);
    }

    fn end(&mut self, name: &Name) {
        // An end without a beginning ends nothing.
        let Some(n_open) = self.n_open.get_mut(name).filter(|n_open| **n_open > 0) else { return };
        *n_open -= 1;
        self.depth -= 1;
        self.n_to_reopen -= usize::from(is_one_of(&REOPENED, name));
        self.is_muddled |= self.stack.pop() != Some(*name);
    }
}

/// Counts what may have to be escaped; the last of them begins a space that does not break.
fn n_escaped(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| matches!(byte, b'&' | b'<' | b'>' | 0xC2)).count()
}

pub(super) fn is_one_of(names: &[&[u8]], name: &Name) -> bool {
    let length = name.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES_MAX);
    names.contains(&&name[..length])
}

/// Reads an element's name, and how long it was.
pub(super) fn name(bytes: &[u8]) -> (Name, usize) {
    let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'>' | b'/');
    let length = bytes.iter().position(ends).unwrap_or(bytes.len());
    let mut name = Name::default();
    for (letter, byte) in name.iter_mut().zip(&bytes[..length]) {
        *letter = byte.to_ascii_lowercase();
    }
    (name, length)
}

/// Where in a tag its reader is.
enum Place {
    BeforeName,
    Name,
    AfterName,
    BeforeValue,
    Value,
}

/// What stands in a tag behind its name.
struct Attributes {
    /// Where the tag ends.
    end: usize,
    /// The tag ends its element.
    ends_itself: bool,
    n_names: usize,
}

/// Goes to the end of a tag; tells as well whether the tag ends its element.
pub(super) fn past_attributes(bytes: &[u8], from: usize) -> (usize, bool) {
    let Attributes { end, ends_itself, .. } = attributes(bytes, from);
    (end, ends_itself)
}

/// Reads a tag from behind its name, where a `>` in quotes is no end.
fn attributes(bytes: &[u8], from: usize) -> Attributes {
    let (mut at, mut n_names) = (from, 0);
    let mut place = Place::BeforeName;
    while let Some(byte) = bytes.get(at) {
        at += 1;
        if *byte == b'>' {
            return Attributes { end: at, ends_itself: false, n_names };
        }
        place = match (place, byte) {
            (Place::BeforeName | Place::Name | Place::AfterName, b'/') => {
                if bytes.get(at) == Some(&b'>') {
                    return Attributes { end: at + 1, ends_itself: true, n_names };
                }
                Place::BeforeName
            }
            (Place::Name | Place::AfterName, b'=') => Place::BeforeValue,
            (Place::BeforeValue, b'"' | b'\'') => {
                at = past(bytes, at, &[*byte]);
                Place::BeforeName
            }
            (Place::BeforeName | Place::Value, blank) if blank.is_ascii_whitespace() => Place::BeforeName,
            (Place::Name | Place::AfterName, blank) if blank.is_ascii_whitespace() => Place::AfterName,
            (Place::BeforeValue, blank) if blank.is_ascii_whitespace() => Place::BeforeValue,
            (Place::BeforeValue | Place::Value, _) => Place::Value,
            (Place::Name, _) => Place::Name,
            (Place::BeforeName | Place::AfterName, _) => {
                n_names += 1;
                Place::Name
            }
        };
    }
    Attributes { end: at, ends_itself: false, n_names }
}

/// Goes past the end of a comment, which may be as soon as it begins.
pub(super) fn past_comment(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(next) = find(bytes, at, b"--") {
        let rest = &bytes[next + 2..];
        match rest {
            [b'>', ..] => return next + 3,
            [b'!', b'>', ..] => return next + 4,
            _ => at = next + 1,
        }
    }
    bytes.len()
}

/// Goes past the end tag of an element whose inside is text.
pub(super) fn past_text(bytes: &[u8], from: usize, raw: &Name) -> usize {
    let mut at = from;
    while let Some(next) = find(bytes, at, b"</") {
        let (name, length) = name(&bytes[next + 2..]);
        at = next + 2 + length;
        if name == *raw {
            return past(bytes, at, b">");
        }
    }
    bytes.len()
}

pub(super) fn past(bytes: &[u8], from: usize, what: &[u8]) -> usize {
    find(bytes, from, what).map_or(bytes.len(), |at| at + what.len())
}

pub(super) fn find(bytes: &[u8], from: usize, what: &[u8]) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.windows(what.len()).position(|window| window == what).map(|at| from + at)
}

#[cfg(test)]
mod tests;
