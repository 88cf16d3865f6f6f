//! Changes one value in the text of a configuration and keeps everything else as it is. Pure.
//!
//! Values are replaced by their spans and entries are inserted as whole lines. The result is parsed again: if it says
//! anything else than was asked for, the text was too unusual, and the change is refused.

#[cfg(test)]
mod tests;

use std::path::Path;

use serde_json::{Map, Value};

use super::{
    ConfigError,
    file::{self, ConfigField, ConfigNode, ConfigValue},
};

/// Maps from names to settings; a name may contain dots.
const NAMED_MAPS: [&str; 4] = ["providers", "models", "mcpServers", "agent_servers"];

/// Spaces of a new level.
const INDENT: usize = 2;

#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigEditError {
    #[error(transparent)]
    Invalid(#[from] ConfigError),
    #[error("{key} cannot be changed without changing other lines")]
    Unusual { key: String },
}

/// Returns the value of a key, such as `models.NAME.context_window`, as written in a configuration.
pub(crate) fn find_value(path: &Path, text: &str, key: &str) -> Result<Option<Value>, ConfigError> {
    let root = file::parse_config(path, text)?;
    let place = locate(&root, key);
    Ok(if place.missing.is_empty() { Some(place.node.to_literal_json()) } else { None })
}

/// Sets the value of a key. The value is YAML on one line, or a plain text.
pub(crate) fn set_value(path: &Path, text: &str, key: &str, value: &str) -> Result<String, ConfigEditError> {
    let marked = file::mark_variables(text);
    let root = file::parse_marked(path, &marked)?;
    let place = locate(&root, key);
    let value = to_yaml(path, value);
    let edited = match place.missing.as_slice() {
        [] => replace_value(&marked, place.node, &value),
        missing => {
            let lines = nested_lines(missing, &value);
            let inline = nested_inline(missing, &value);
            insert(&marked, &place, &lines, &inline)
        }
    };
    let wanted = file::parse_config(path, &format!("value: {value}\n"))?.to_literal_json();
    let value = wanted.get("value").cloned().unwrap_or_default();
    WantedChange { root: &root, place, value, key }.verify(path, edited)
}

/// Inserts an entry into a map of the top level, such as `models`. The lines are indented by 2 spaces, and the first is
/// the key of the entry.
pub(crate) fn insert_entry(
    path: &Path,
    text: &str,
    section: &str,
    lines: &str,
) -> Result<String, ConfigEditError> {
    let entry = file::parse_config(path, &format!("{section}:\n{lines}"))?.to_literal_json();
    let entry = entry.get(section).and_then(Value::as_object).and_then(|map| map.iter().next());
    let unusual = || ConfigEditError::Unusual { key: section.to_owned() };
    let (name, wanted) = entry.map(|(name, value)| (name.clone(), value.clone())).ok_or_else(unusual)?;
    let marked = file::mark_variables(text);
    let root = file::parse_marked(path, &marked)?;
    let mut place = locate(&root, section);
    let dedented: Vec<String> =
        lines.lines().map(|line| line.get(INDENT..).unwrap_or(line).to_owned()).collect();
    let lines = if place.missing.is_empty() {
        dedented
    } else {
        let section_line = format!("{section}:");
        [section_line].into_iter().chain(lines.lines().map(str::to_owned)).collect()
    };
    place.missing.push(name);
    let edited = insert(&marked, &place, &lines, "");
    WantedChange { root: &root, place, value: wanted, key: section }.verify(path, edited)
}

/// The place of a key in a configuration.
struct Place<'n> {
    /// The keys that exist.
    found: Vec<String>,
    /// The value of the last of them.
    node: &'n ConfigNode,
    /// The keys below it that do not exist yet.
    missing: Vec<String>,
}

fn locate<'n>(root: &'n ConfigNode, key: &str) -> Place<'n> {
    let (mut node, mut found, mut rest) = (root, Vec::new(), key);
    while let ConfigValue::Map(fields) = &node.value {
        let is_next = |field: &&ConfigField| {
            rest.strip_prefix(field.key.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let Some(field) = fields.iter().filter(is_next).max_by_key(|field| field.key.len()) else { break };
        node = &field.node;
        found.push(field.key.clone());
        match rest.get(field.key.len() + 1..) {
            Some(remaining) => rest = remaining,
            None => return Place { found, node, missing: Vec::new() },
        }
    }
    let missing = split_missing(&found, rest);
    Place { found, node, missing }
}

/// Splits the keys that do not exist. The name of a model may contain dots; its settings do not.
fn split_missing(found: &[String], rest: &str) -> Vec<String> {
    let is_named = |name: &str| NAMED_MAPS.contains(&name);
    let own = str::to_owned;
    match (found, rest.split_once('.')) {
        ([], Some((section, rest))) if is_named(section) => match rest.rsplit_once('.') {
            Some((name, key)) => vec![own(section), own(name), own(key)],
            None => vec![own(section), own(rest)],
        },
        ([section], Some(_)) if is_named(section) => {
            rest.rsplit_once('.').map(|(name, key)| vec![own(name), own(key)]).unwrap_or_default()
        }
        _ => rest.split('.').map(own).collect(),
    }
}

/// Quotes a value unless it is YAML for itself or for something other than text.
fn to_yaml(path: &Path, value: &str) -> String {
    let value = value.trim();
    let parsed = file::parse_config(path, &format!("value: {value}\n")).map(|root| root.to_literal_json());
    let is_yaml = match parsed.as_ref().map(|root| root.get("value")) {
        Ok(Some(Value::String(text))) => text == value,
        Ok(Some(Value::Null)) | Ok(None) | Err(_) => false,
        Ok(Some(_)) => true,
    };
    let is_one_line = !value.contains('\n') && !value.is_empty();
    if is_yaml && is_one_line { value.to_owned() } else { Value::from(value).to_string() }
}

fn to_yaml_key(key: &str) -> String {
    let is_plain = key.starts_with(|first: char| first.is_ascii_alphabetic())
        && key.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_./".contains(letter));
    if is_plain { key.to_owned() } else { Value::from(key).to_string() }
}

fn nested_lines(keys: &[String], value: &str) -> Vec<String> {
    let line = |(level, key): (usize, &String)| {
        let value = if level + 1 == keys.len() { format!(" {value}") } else { String::new() };
        format!("{:1$}{key}:{value}", "", level * INDENT, key = to_yaml_key(key))
    };
    keys.iter().enumerate().map(line).collect()
}

fn nested_inline(keys: &[String], value: &str) -> String {
    keys.iter().rev().fold(String::new(), |nested, key| {
        let key = to_yaml_key(key);
        if nested.is_empty() { format!("{key}: {value}") } else { format!("{key}: {{ {nested} }}") }
    })
}

fn replace_value(marked: &str, node: &ConfigNode, value: &str) -> Option<String> {
    let span = node.span.clone();
    if matches!(node.value, ConfigValue::Map(_) | ConfigValue::List(_)) {
        return splice(marked, span.start, find_flow_end(marked, node)?, value);
    }
    let source = marked.get(span.clone())?;
    if span.is_empty() {
        // A key without a value.
        let line_end = line_ends(marked).nth(line_index(node.line))?;
        let line = marked.get(..line_end)?.rsplit('\n').next()?;
        let after_key = line_end - line.len() + line.trim_end().len();
        return line
            .trim_end()
            .ends_with(':')
            .then(|| splice(marked, after_key, after_key, &format!(" {value}")))?;
    }
    // The span of a plain scalar may reach to the end of the line.
    splice(marked, span.start, span.start + source.trim_end().len(), value)
}

/// Returns the end of a list or map in brackets on one line: the parser reports its beginning only.
fn find_flow_end(marked: &str, node: &ConfigNode) -> Option<usize> {
    let start = node.span.start;
    let line = marked.get(start..)?.lines().next()?;
    let closing = match line.chars().next()? {
        '[' => ']',
        '{' => '}',
        _ => return None,
    };
    let written = node.to_literal_json();
    let is_whole = |end: &usize| {
        let flow = line.get(..*end).unwrap_or_default();
        let root = file::parse_marked(Path::new(""), &format!("value: {flow}\n"));
        root.is_ok_and(|root| root.to_literal_json().get("value") == Some(&written))
    };
    line.match_indices(closing).map(|(index, _)| index + 1).find(is_whole).map(|end| start + end)
}

/// Inserts lines at the end of a block, or text into a map in braces.
fn insert(marked: &str, place: &Place<'_>, lines: &[String], inline: &str) -> Option<String> {
    let fields = match &place.node.value {
        ConfigValue::Map(fields) => fields.as_slice(),
        ConfigValue::Null => &[],
        ConfigValue::Scalar(_) | ConfigValue::List(_) => return None,
    };
    let Some((first, last)) = fields.first().zip(fields.last()) else {
        if place.found.is_empty() {
            return Some(append_lines(marked, lines));
        }
        let index = line_index(place.node.line);
        let (line, end) = (marked.lines().nth(index)?, line_ends(marked).nth(index)?);
        if let Some(start) = line.find("{}").filter(|_| !inline.is_empty()) {
            let start = end - line.trim_end_matches('\r').len() + start;
            return splice(marked, start, start + "{}".len(), &format!("{{ {inline} }}"));
        }
        // A key without a value: its line is that of the node.
        return insert_after_line(marked, index, lines, line_indent(line) + INDENT);
    };
    if place.found.is_empty() {
        return Some(append_lines(marked, lines));
    }
    let first_line = marked.lines().nth(line_index(first.line))?;
    let is_block =
        [first.key.as_str(), "\"", "'"].iter().any(|start| first_line.trim_start().starts_with(start))
            && !first_line.contains('{')
            || first_line.trim_end().ends_with(':')
            || first_line.trim_start().starts_with(&format!("{}:", to_yaml_key(&first.key)));
    if !is_block {
        let span = &last.node.span;
        let end = span.start + marked.get(span.clone())?.trim_end().len();
        return if span.is_empty() || inline.is_empty() {
            None
        } else {
            splice(marked, end, end, &format!(", {inline}"))
        };
    }
    let indent = line_indent(first_line);
    insert_after_line(marked, block_end(marked, last, indent), lines, indent)
}

/// Returns the index of the last line of a block whose keys have this indentation.
fn block_end(marked: &str, last: &ConfigField, indent: usize) -> usize {
    let is_list = matches!(last.node.value, ConfigValue::List(_));
    let start = line_index(last.line);
    let mut end = start;
    for (index, line) in marked.lines().enumerate().skip(start + 1) {
        if line.trim().is_empty() {
            continue;
        }
        let is_item = is_list && line_indent(line) == indent && line.trim_start().starts_with('-');
        if line_indent(line) <= indent && !is_item {
            break;
        }
        end = index;
    }
    end
}

fn insert_after_line(marked: &str, line: usize, lines: &[String], indent: usize) -> Option<String> {
    let end = line_ends(marked).nth(line)?;
    let text: String = lines.iter().map(|line| format!("\n{:indent$}{line}", "")).collect();
    splice(marked, end, end, &text)
}

fn append_lines(marked: &str, lines: &[String]) -> String {
    let separator = if marked.is_empty() || marked.ends_with('\n') { "" } else { "\n" };
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    format!("{marked}{separator}{lines}")
}

/// Returns the offsets of the line ends.
fn line_ends(marked: &str) -> impl Iterator<Item = usize> {
    marked.split_inclusive('\n').scan(0, |offset, line| {
        *offset += line.len();
        let ending = line.len() - line.trim_end_matches(['\n', '\r']).len();
        Some(*offset - ending)
    })
}

fn line_index(line: u64) -> usize {
    usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX)
}

fn line_indent(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

fn splice(text: &str, start: usize, end: usize, replacement: &str) -> Option<String> {
    Some(format!("{}{replacement}{}", text.get(..start)?, text.get(end..)?))
}

/// A change and what the configuration says afterwards.
struct WantedChange<'n> {
    root: &'n ConfigNode,
    place: Place<'n>,
    value: Value,
    /// The key in the request.
    key: &'n str,
}

impl WantedChange<'_> {
    /// Returns the edited text if it says what it said before, and the wanted value.
    fn verify(&self, path: &Path, edited: Option<String>) -> Result<String, ConfigEditError> {
        let unusual = || ConfigEditError::Unusual { key: self.key.to_owned() };
        let text = file::unmark_variables(&edited.ok_or_else(unusual)?);
        let mut expected = self.root.to_literal_json();
        let keys: Vec<&String> = self.place.found.iter().chain(&self.place.missing).collect();
        set_in_json(&mut expected, &keys, self.value.clone());
        let is_as_expected =
            file::parse_config(path, &text).is_ok_and(|new| new.to_literal_json() == expected);
        if is_as_expected { Ok(text) } else { Err(unusual()) }
    }
}

fn set_in_json(value: &mut Value, keys: &[&String], wanted: Value) {
    let Some((key, rest)) = keys.split_first() else {
        *value = wanted;
        return;
    };
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    if let Some(map) = value.as_object_mut() {
        set_in_json(map.entry(key.as_str()).or_insert(Value::Null), rest, wanted);
    }
}
