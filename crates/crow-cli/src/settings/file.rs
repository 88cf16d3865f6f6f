//! Parses a configuration file into a tree with line numbers. Knows YAML and `${VAR}`, but no key.

#[cfg(test)]
mod tests;

use std::{fmt, ops::Range, path::Path};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number};
use serde_saphyr::Spanned;

use super::{ConfigError, Environment};

// YAML reads the braces of `${VAR}` as its own inside `{…}`. During parsing, these private-use characters replace them.
const OPEN_MARK: char = '\u{E0C0}';
const CLOSE_MARK: char = '\u{E0C1}';

/// Nesting limit of lists and maps. A group of hooks needs six; the parser is recursive, and a thread's stack is small.
const LEVELS_MAX: usize = 32;

/// Limit for values in one file, including those repeated by aliases; far more than a configuration needs.
const VALUES_MAX: usize = 20_000;

/// Limit for aliases in one file; each may repeat a long value.
const ALIASES_MAX: usize = 200;

/// Beginnings of the parser's messages for an exceeded limit; the rest of them describes its code.
const LIMIT_ERRORS: [&str; 4] = ["budget breached", "recursion limit", "alias replay", "alias expansion"];

/// A value and its line.
#[derive(Debug)]
pub(super) struct ConfigNode {
    pub(super) line: u64,
    /// Its bytes in the marked text; empty if the parser does not report them.
    pub(super) span: Range<usize>,
    pub(super) value: ConfigValue,
}

#[derive(Debug)]
pub(super) enum ConfigValue {
    Null,
    Scalar(ConfigScalar),
    List(Vec<ConfigNode>),
    Map(Vec<ConfigField>),
}

/// A scalar as written, before variables are expanded, and its YAML type.
#[derive(Debug)]
pub(super) struct ConfigScalar {
    raw: String,
    kind: ScalarType,
}

#[derive(Debug)]
enum ScalarType {
    Text,
    Bool(bool),
    Number(Number),
}

/// A key of a map with its value.
#[derive(Debug)]
pub(super) struct ConfigField {
    pub(super) line: u64,
    pub(super) key: String,
    pub(super) node: ConfigNode,
}

/// Parses a file.
pub(super) fn parse_config(path: &Path, text: &str) -> Result<ConfigNode, ConfigError> {
    parse_marked(path, &mark_variables(text))
}

/// Parses a text with marked variables, to which the spans refer.
pub(super) fn parse_marked(path: &Path, marked: &str) -> Result<ConfigNode, ConfigError> {
    let tree: Spanned<RawNode> =
        serde_saphyr::from_str_with_options(marked, parser_options()).map_err(|error| {
            let line = error.location().map_or(1, |location| location.line());
            let message = error.without_snippet().to_string();
            let problem = message.rsplit_once(" at line ").map_or(message.as_str(), |(problem, _)| problem);
            // The rest is advice to callers of the parser.
            let problem = [", set ", "; use "]
                .iter()
                .fold(problem, |problem, advice| problem.split(advice).next().unwrap_or_default());
            let is_limit = LIMIT_ERRORS.iter().any(|prefix| problem.starts_with(prefix));
            let problem = if is_limit { "it is nested too deeply or too large" } else { problem };
            ConfigError::Invalid { path: path.to_owned(), line, problem: unmark_variables(problem) }
        })?;
    // Spans refer to the parsed text, not to the file.
    Ok(convert_node(tree, marked))
}

/// Limits for files that may come from a repository.
fn parser_options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: LEVELS_MAX,
            flow_nesting_limit: LEVELS_MAX,
            max_nodes: VALUES_MAX,
            max_events: 3 * VALUES_MAX,
            max_aliases: ALIASES_MAX,
            max_anchors: ALIASES_MAX,
        },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: VALUES_MAX },
    }
}

/// Replaces the braces of each well-formed `${NAME}`.
pub(super) fn mark_variables(text: &str) -> String {
    let mut marked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        marked.push_str(before);
        match after.split_once('}') {
            Some((name, tail)) if is_variable(name) => {
                marked.extend([OPEN_MARK]);
                marked.push_str(name);
                marked.extend([CLOSE_MARK]);
                rest = tail;
            }
            _ => {
                marked.push_str("${");
                rest = after;
            }
        }
    }
    marked.push_str(rest);
    marked
}

/// Writes the braces again.
pub(super) fn unmark_variables(marked: &str) -> String {
    marked.replace(OPEN_MARK, "${").replace(CLOSE_MARK, "}")
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

fn convert_node(spanned: Spanned<RawNode>, text: &str) -> ConfigNode {
    let line = spanned.referenced.line();
    let source = spanned.defined.span();
    let start = source.byte_offset().and_then(|start| usize::try_from(start).ok());
    let len = source.byte_len().and_then(|len| usize::try_from(len).ok());
    let span = start.zip(len).map_or(0..0, |(start, len)| start..start + len);
    let source_text = || text.get(span.clone()).unwrap_or_default().trim().to_owned();
    let value = match spanned.value {
        RawNode::Null => ConfigValue::Null,
        RawNode::Bool(value) => {
            ConfigValue::Scalar(ConfigScalar { raw: source_text(), kind: ScalarType::Bool(value) })
        }
        RawNode::Number(value) => {
            ConfigValue::Scalar(ConfigScalar { raw: source_text(), kind: ScalarType::Number(value) })
        }
        RawNode::Text(raw) => ConfigValue::Scalar(ConfigScalar { raw, kind: ScalarType::Text }),
        RawNode::List(items) => {
            ConfigValue::List(items.into_iter().map(|item| convert_node(item, text)).collect())
        }
        RawNode::Map(fields) => {
            ConfigValue::Map(fields.into_iter().map(|(key, value)| convert_field(key, value, text)).collect())
        }
    };
    ConfigNode { line, span, value }
}

fn convert_field(key: Spanned<String>, value: Spanned<RawNode>, text: &str) -> ConfigField {
    ConfigField { line: key.referenced.line(), key: key.value, node: convert_node(value, text) }
}

impl ConfigValue {
    /// Names the type of the value for messages.
    pub(super) fn kind_name(&self) -> &'static str {
        match self {
            Self::Null => "no value",
            Self::Scalar(ConfigScalar { kind: ScalarType::Text, .. }) => "a string",
            Self::Scalar(ConfigScalar { kind: ScalarType::Bool(_), .. }) => "true or false",
            Self::Scalar(ConfigScalar { kind: ScalarType::Number(number), .. }) => {
                match (number.as_u64(), number.as_i64()) {
                    (Some(0), _) => "zero",
                    (Some(_), _) => "a number",
                    (None, Some(_)) => "a negative number",
                    (None, None) => "a number that is not whole",
                }
            }
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
        }
    }
}

/// A text with variables expanded, and the names of unset variables.
#[derive(Debug, Default)]
pub(super) struct ExpandedText {
    pub(super) text: String,
    pub(super) unset: Vec<String>,
}

impl ConfigScalar {
    /// Expands variables; an unset one becomes empty.
    pub(super) fn expand(&self, env: &Environment) -> ExpandedText {
        let mut expanded = ExpandedText::default();
        let mut rest = self.raw.as_str();
        while let Some((before, name, tail)) = next_variable(rest) {
            expanded.text.push_str(before);
            match env.get(name) {
                Some(value) => expanded.text.push_str(value),
                None => expanded.unset.push(name.to_owned()),
            }
            rest = tail;
        }
        expanded.text.push_str(rest);
        expanded
    }

    /// Returns a boolean or a number as Rust writes it: a file may have `yes` or `128_000`. `None` for a text.
    pub(super) fn canonical_text(&self) -> Option<String> {
        match &self.kind {
            ScalarType::Text => None,
            ScalarType::Bool(value) => Some(value.to_string()),
            ScalarType::Number(value) => Some(value.to_string()),
        }
    }

    /// Returns the text as written, without expanding variables.
    pub(super) fn literal_text(&self) -> String {
        unmark_variables(&self.raw)
    }

    /// Returns the names of the variables in the text.
    pub(super) fn variables(&self) -> Vec<&str> {
        let mut names = Vec::new();
        let mut rest = self.raw.as_str();
        while let Some((_, name, tail)) = next_variable(rest) {
            names.push(name);
            rest = tail;
        }
        names
    }

    /// Converts the scalar to JSON; text stays text even if its variables contain numbers.
    pub(super) fn to_json(&self, env: &Environment) -> serde_json::Value {
        match &self.kind {
            ScalarType::Text => serde_json::Value::String(self.expand(env).text),
            ScalarType::Bool(value) => serde_json::Value::Bool(*value),
            ScalarType::Number(value) => serde_json::Value::Number(value.clone()),
        }
    }
}

impl ConfigNode {
    /// Returns the names of the variables in all texts of the tree.
    pub(super) fn variables(&self) -> Vec<&str> {
        match &self.value {
            ConfigValue::Null => Vec::new(),
            ConfigValue::Scalar(scalar) => {
                scalar.variables().into_iter().filter(|name| is_variable(name)).collect()
            }
            ConfigValue::List(items) => items.iter().flat_map(Self::variables).collect(),
            ConfigValue::Map(fields) => fields.iter().flat_map(|field| field.node.variables()).collect(),
        }
    }

    /// Converts the tree to JSON as written, without expanding variables.
    pub(super) fn to_literal_json(&self) -> serde_json::Value {
        match &self.value {
            ConfigValue::Null => serde_json::Value::Null,
            ConfigValue::Scalar(scalar) => match &scalar.kind {
                ScalarType::Text => serde_json::Value::String(scalar.literal_text()),
                ScalarType::Bool(value) => serde_json::Value::Bool(*value),
                ScalarType::Number(value) => serde_json::Value::Number(value.clone()),
            },
            ConfigValue::List(items) => items.iter().map(Self::to_literal_json).collect(),
            ConfigValue::Map(fields) => {
                let fields = fields.iter().map(|field| (field.key.clone(), field.node.to_literal_json()));
                serde_json::Value::Object(fields.collect::<Map<_, _>>())
            }
        }
    }

    /// Converts the tree to JSON.
    pub(super) fn to_json(&self, env: &Environment) -> serde_json::Value {
        match &self.value {
            ConfigValue::Null => serde_json::Value::Null,
            ConfigValue::Scalar(scalar) => scalar.to_json(env),
            ConfigValue::List(items) => items.iter().map(|item| item.to_json(env)).collect(),
            ConfigValue::Map(fields) => {
                let fields = fields.iter().map(|field| (field.key.clone(), field.node.to_json(env)));
                serde_json::Value::Object(fields.collect::<Map<_, _>>())
            }
        }
    }
}

fn next_variable(text: &str) -> Option<(&str, &str, &str)> {
    let (before, after) = text.split_once(OPEN_MARK)?;
    let (name, tail) = after.split_once(CLOSE_MARK)?;
    Some((before, name, tail))
}

/// A node as returned by the parser.
enum RawNode {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Spanned<RawNode>>),
    Map(Vec<(Spanned<String>, Spanned<RawNode>)>),
}

impl<'de> Deserialize<'de> for RawNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(RawNodeVisitor)
    }
}

struct RawNodeVisitor;

impl<'de> Visitor<'de> for RawNodeVisitor {
    type Value = RawNode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<RawNode, E> {
        Ok(RawNode::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<RawNode, E> {
        Ok(RawNode::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<RawNode, E> {
        Ok(RawNode::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<RawNode, E> {
        Ok(RawNode::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<RawNode, E> {
        Ok(Number::from_f64(value).map_or_else(|| RawNode::Text(value.to_string()), RawNode::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<RawNode, E> {
        Ok(RawNode::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<RawNode, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element()? {
            items.push(item);
        }
        Ok(RawNode::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<RawNode, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = access.next_entry()? {
            fields.push(field);
        }
        Ok(RawNode::Map(fields))
    }
}
