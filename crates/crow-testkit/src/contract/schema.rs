//! The stable v1 schema of the protocol with two changes: the drafts of `session/fork` and of the usage at the end of a
//! turn are added, and unknown fields are rejected.
#![expect(clippy::expect_used, clippy::panic, reason = "a schema that cannot be read fails every test")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jsonschema::error::ValidationErrorKind;
use jsonschema::{ValidationError, Validator};
use serde_json::{Map, Value, json};

/// The published schema; the file next to it gives the source.
const PUBLISHED: &str = include_str!("../../schema/acp-v1.json");

/// The message part that a definition describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// The parameters of a request.
    Request,
    /// The result of a request.
    Response,
    /// The parameters of a notification.
    Notification,
}

/// The side that serves a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The agent.
    Agent,
    /// The client.
    Client,
    /// Both.
    Protocol,
}

pub(crate) struct Schema {
    definitions: Map<String, Value>,
    compiled: Mutex<BTreeMap<String, Arc<Validator>>>,
}

/// Returns the schema, parsed once.
pub(crate) fn schema() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let mut document: Value = serde_json::from_str(PUBLISHED).expect("the schema is JSON");
        add_fork(&mut document["$defs"]);
        add_usage(&mut document["$defs"]);
        forbid_unknown_fields(&mut document["$defs"]);
        let Value::Object(definitions) = document["$defs"].take() else { panic!("it has definitions") };
        Schema { definitions, compiled: Mutex::default() }
    })
}

impl Schema {
    /// Returns the name of the definition for a part of a method; `None` for an unknown method.
    pub(crate) fn definition(&self, part: Part, side: Side, method: &str) -> Option<&str> {
        let suffix = format!("{part:?}");
        let side = format!("{side:?}").to_lowercase();
        let mut matching = self.definitions.iter().filter(|(name, definition)| {
            name.ends_with(&suffix) && definition["x-side"] == *side && definition["x-method"] == *method
        });
        matching.next().map(|(name, _)| name.as_str())
    }

    /// Lists where and why a value does not match a definition.
    pub(crate) fn violations(&self, definition: &str, value: &Value) -> Vec<String> {
        let validator = self.validator(definition);
        // Much faster than to look for errors.
        if validator.is_valid(value) {
            return Vec::new();
        }
        // If there are other errors, unknown fields are only a consequence.
        let (unknown, other): (Vec<_>, Vec<_>) = validator
            .iter_errors(value)
            .partition(|error| matches!(error.kind(), ValidationErrorKind::UnevaluatedProperties { .. }));
        let errors = if other.is_empty() { unknown } else { other };
        errors.iter().flat_map(render_causes).collect()
    }

    fn validator(&self, name: &str) -> Arc<Validator> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        let validator = compiled.entry(name.to_owned()).or_insert_with(|| {
            let root = json!({
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "$ref": format!("#/$defs/{name}"),
                "unevaluatedProperties": false,
                "$defs": self.required_definitions(name),
            });
            let options = jsonschema::options().should_ignore_unknown_formats(true);
            Arc::new(options.build(&root).expect("the schema can be compiled"))
        });
        Arc::clone(validator)
    }

    /// Returns a definition with all definitions that it references.
    fn required_definitions(&self, name: &str) -> Map<String, Value> {
        let mut required = BTreeSet::new();
        let mut queued = vec![name.to_owned()];
        while let Some(name) = queued.pop() {
            if required.insert(name.clone()) {
                collect_references(&self.definitions[&name], &mut queued);
            }
        }
        required.into_iter().map(|name| (name.clone(), self.definitions[&name].clone())).collect()
    }
}

fn collect_references(schema: &Value, names: &mut Vec<String>) {
    if let Some(name) = referenced_definition(schema) {
        names.push(name.to_owned());
    }
    match schema {
        Value::Object(fields) => fields.values().for_each(|field| collect_references(field, names)),
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, names)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn referenced_definition(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")
}

/// Adds the draft method that the agent serves, modelled on a stable one.
fn add_fork(definitions: &mut Value) {
    for (template, name) in [
        ("SessionResumeCapabilities", "SessionForkCapabilities"),
        ("NewSessionResponse", "ForkSessionResponse"),
        ("ResumeSessionRequest", "ForkSessionRequest"),
    ] {
        let mut definition = definitions[template].clone();
        if definition.get("x-method").is_some() {
            definition["x-method"] = json!("session/fork");
        }
        definitions[name] = definition;
    }
    definitions["SessionCapabilities"]["properties"]["fork"] =
        json!({"anyOf": [{"$ref": "#/$defs/SessionForkCapabilities"}, {"type": "null"}]});
}

/// Adds the draft field of a prompt's answer.
fn add_usage(definitions: &mut Value) {
    let names = [
        "totalTokens",
        "inputTokens",
        "outputTokens",
        "thoughtTokens",
        "cachedReadTokens",
        "cachedWriteTokens",
    ];
    let properties: Map<String, Value> =
        names.iter().map(|name| ((*name).to_owned(), json!({"type": "integer", "minimum": 0}))).collect();
    definitions["Usage"] = json!({"type": "object", "required": names[..3], "properties": properties});
    definitions["PromptResponse"]["properties"]["usage"] =
        json!({"anyOf": [{"$ref": "#/$defs/Usage"}, {"type": "null"}]});
}

/// Makes every object in a field or a list reject unknown fields.
///
/// New fields of the protocol are added to the schema; ours belong in `_meta`.
fn forbid_unknown_fields(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            for (name, field) in &mut *fields {
                match name.as_str() {
                    "properties" => {
                        field
                            .as_object_mut()
                            .into_iter()
                            .flatten()
                            .for_each(|(_, site)| forbid_unknown_in(site));
                    }
                    "items" => forbid_unknown_in(field),
                    _ => {}
                }
                forbid_unknown_fields(field);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(forbid_unknown_fields),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn forbid_unknown_in(site: &mut Value) {
    let alternatives = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|key| site.get(key)?.as_array());
    let is_described = referenced_definition(site).is_some()
        || alternatives.flatten().any(|part| referenced_definition(part).is_some());
    if is_described && let Some(fields) = site.as_object_mut() {
        fields.insert("unevaluatedProperties".to_owned(), Value::Bool(false));
    }
}

/// Renders an error; of alternatives, only those with a matching tag.
fn render_causes(error: &ValidationError<'_>) -> Vec<String> {
    let own_message =
        || vec![format!("at {:?}: {}", error.instance_path().as_str(), error.masked_with("it"))];
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) =
        error.kind()
    else {
        return own_message();
    };
    let has_other_tag = |branch: &&Vec<ValidationError<'_>>| {
        branch.iter().any(|error| matches!(error.kind(), ValidationErrorKind::Constant { .. }))
    };
    let mut causes: Vec<String> =
        context.iter().filter(|branch| !has_other_tag(branch)).flatten().flat_map(render_causes).collect();
    if causes.is_empty() {
        causes = own_message();
    }
    causes
}
