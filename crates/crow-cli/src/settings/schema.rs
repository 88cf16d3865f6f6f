//! The JSON Schema of the configuration, for editors. Made from the table of known keys.

use crow_core::HookEvent;
use serde_json::{Map, Value, json};

use super::known_keys::{ConfigKey, ConfigShape, HOOK, TOP, TOP_LEGACY, TOP_RETIRED};

/// The most that the YAML plugins of editors know.
const DRAFT: &str = "http://json-schema.org/draft-07/schema#";

/// Returns the schema.
pub(crate) fn config_schema() -> Value {
    let mut schema = map_schema(TOP);
    add_properties(&mut schema, TOP_LEGACY.iter().map(|key| (key.name, key_schema(key))));
    add_properties(&mut schema, TOP_RETIRED.iter().map(|name| (*name, retired_schema())));
    let mut root = json!({
        "$schema": DRAFT,
        "title": "Configuration of crow-cli",
    });
    if let (Some(root), Value::Object(schema)) = (root.as_object_mut(), schema) {
        root.extend(schema);
    }
    root
}

fn map_schema(keys: &[ConfigKey]) -> Value {
    let properties: Map<String, Value> =
        keys.iter().map(|key| (key.name.to_owned(), key_schema(key))).collect();
    json!({"type": "object", "properties": properties, "additionalProperties": false})
}

fn add_properties<'a>(schema: &mut Value, properties: impl Iterator<Item = (&'a str, Value)>) {
    if let Some(known) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        known.extend(properties.map(|(name, schema)| (name.to_owned(), schema)));
    }
}

/// The schema of a key that only other programs or earlier versions use.
fn retired_schema() -> Value {
    json!({"description": "Without effect in this version."})
}

fn key_schema(key: &ConfigKey) -> Value {
    let mut schema = shape_schema(key.shape);
    if let Some(fields) = schema.as_object_mut() {
        fields.insert("description".to_owned(), format!("{}.", key.about).into());
    }
    schema
}

fn shape_schema(shape: ConfigShape) -> Value {
    let text = || json!({"type": ["string", "number", "boolean"]});
    match shape {
        // A number is read as text as well.
        ConfigShape::Text => text(),
        ConfigShape::Number => or_variable(&json!({"type": "number"})),
        ConfigShape::Count => or_variable(&json!({"type": "integer", "minimum": 1})),
        ConfigShape::WholeNumber => or_variable(&json!({"type": "integer", "minimum": 0})),
        ConfigShape::Flag => or_variable(&json!({"type": "boolean"})),
        ConfigShape::OneOf(words) => or_variable(&json!({"enum": words})),
        ConfigShape::Names(words) => {
            let name = if words.is_empty() { json!({"type": "string"}) } else { json!({"enum": words}) };
            json!({"anyOf": [name, {"type": "array", "items": name}]})
        }
        ConfigShape::Texts => json!({"type": "array", "items": text()}),
        ConfigShape::TextMap => json!({"type": "object", "additionalProperties": text()}),
        ConfigShape::AnyMap => json!({"type": "object"}),
        ConfigShape::Map(keys) => map_schema(keys),
        ConfigShape::NamedMaps(keys, retired) => {
            let mut schema = map_schema(keys);
            add_properties(&mut schema, retired.iter().map(|name| (*name, retired_schema())));
            json!({"type": "object", "additionalProperties": schema})
        }
        ConfigShape::Hooks => {
            let mut group = map_schema(HOOK);
            let inner = json!({"type": "array", "items": map_schema(HOOK)});
            add_properties(&mut group, [("hooks", inner)].into_iter());
            let list = json!({"type": "array", "items": group});
            let events = HookEvent::ALL.map(|event| (event.as_str().to_owned(), list.clone()));
            json!({"type": "object", "properties": Map::from_iter(events)})
        }
    }
}

/// Allows a variable in place of a value.
fn or_variable(schema: &Value) -> Value {
    json!({"anyOf": [schema, {"type": "string", "pattern": "^\\$\\{[A-Za-z0-9_]+\\}$"}]})
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use expect_test::expect_file;
    use serde_json::Value;

    use super::{super::file, config_schema};

    fn problems(yaml: &str) -> Vec<String> {
        let config = file::parse_config(Path::new("config.yaml"), yaml).unwrap().to_literal_json();
        let schema = jsonschema::validator_for(&config_schema()).unwrap();
        schema.iter_errors(&config).map(|error| error.instance_path().to_string()).collect()
    }

    #[test]
    fn schema_is_published() {
        expect_file!["../../../../docs/config.schema.json"].assert_eq(&format!("{:#}\n", config_schema()));
    }

    #[test]
    fn documented_configuration_is_valid() {
        let page = include_str!("../../../../docs/user/reference/configuration.md");
        let guide = include_str!("../../../../docs/user/guides/models.md");
        let examples: Vec<&str> = [page, guide]
            .iter()
            .flat_map(|text| text.split("```yaml\n").skip(1))
            .filter_map(|rest| rest.split("```").next())
            .collect();
        assert!(examples.len() > 3, "{}", examples.len());
        for example in examples {
            assert_eq!(problems(example), [""; 0], "{example}");
        }
    }

    #[test]
    fn mistakes_are_found() {
        for (yaml, place) in [
            ("max_tool: 3\n", ""),
            ("max_tools: many\n", "/max_tools"),
            ("max_tools: 0\n", "/max_tools"),
            ("models:\n  m: { provider: p, context_size: 1 }\n", "/models/m"),
            ("permissions: { mode: sometimes }\n", "/permissions/mode"),
        ] {
            assert_eq!(problems(yaml), [place], "{yaml}");
        }
        let fine = "max_tools: ${N}\nN_STEPS_BACK_COMPACT: 1\nmcpServers:\n  a: { command: b, icon: c }\n";
        assert_eq!(problems(fine), [""; 0]);
    }

    #[test]
    fn keys_are_documented() {
        let page = include_str!("../../../../docs/user/reference/configuration.md");
        let Value::Object(schema) = config_schema() else { panic!("a schema is an object") };
        for name in schema["properties"].as_object().unwrap().keys() {
            let is_retired = schema["properties"][name].get("type").is_none()
                && schema["properties"][name].get("anyOf").is_none();
            assert!(is_retired || page.contains(name.as_str()), "{name}");
        }
    }
}
