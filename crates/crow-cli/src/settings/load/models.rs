//! `providers` and `models`.

use std::collections::BTreeMap;

use crow_core::{EditToolKind, ThoughtLevel, ToolProfile, ToolSelection};
use crow_model::{ApiKey, ModelApi, ModelPrice, ModelSettings, ProviderSettings, ToolCallMode};
use serde_json::{Map, Value};

use super::{
    super::{
        ConfigError,
        file::{self, ConfigField, ConfigNode},
        known_keys,
    },
    loader::ConfigLoader,
    sections::{ConfigSections, ProviderSection},
};

/// Each is retried before the next is used.
const FALLBACKS_MAX: usize = 8;

/// Values of `modality`.
const MODALITIES: [&str; 5] = ["text", "image", "audio", "video", "file"];

/// Sampling parameters that are added to each request unchanged.
const SAMPLING: [&str; 5] = ["top_p", "top_k", "min_p", "presence_penalty", "repetition_penalty"];

/// The fields of a model.
#[derive(Default)]
struct ModelFields {
    provider: Option<(u64, String)>,
    model: Option<String>,
    context_window: Option<u64>,
    reads_images: Option<bool>,
    compact_tokens_max: Option<u64>,
    max_tokens: Option<u64>,
    temperature: Option<f64>,
    reasoning_effort: Option<String>,
    thought_levels: BTreeMap<String, Map<String, Value>>,
    send_reasoning: Option<bool>,
    tool_calls: ToolCallMode,
    tools: ToolSelection,
    price: Option<ModelPrice>,
    extra_body: Map<String, Value>,
    fallbacks: Vec<String>,
}

impl ConfigLoader<'_> {
    pub(super) fn read_provider(&mut self, field: &ConfigField) -> Result<ProviderSection, ConfigError> {
        let key_path = format!("providers.{}", field.key);
        let mut settings = ProviderSettings {
            name: field.key.clone(),
            base_url: String::new(),
            api: ModelApi::default(),
            api_key: None,
            key_variable: None,
            headers: Vec::new(),
        };
        let mut variables = Vec::new();
        for field in self.read_map(&key_path, &field.node, "a map with base_url and api_key")? {
            match field.key.as_str() {
                "base_url" => {
                    let url =
                        self.read_text(&format!("{key_path}.base_url"), &field.node)?.unwrap_or_default();
                    url.trim_end_matches('/').clone_into(&mut settings.base_url);
                }
                "api_key" => {
                    let Some(scalar) = self.read_scalar(&format!("{key_path}.api_key"), &field.node)? else {
                        continue;
                    };
                    variables.extend(scalar.variables().into_iter().map(str::to_owned));
                    settings.key_variable = scalar.variables().first().map(|&name| name.to_owned());
                    let key = scalar.expand(self.merged_env);
                    let is_complete = key.unset.is_empty() && !key.text.trim().is_empty();
                    settings.api_key = is_complete.then(|| ApiKey::new(key.text.trim()));
                }
                "api" => {
                    let accepted = ModelApi::ALL.map(ModelApi::as_str);
                    let key = format!("{key_path}.api");
                    settings.api =
                        self.read_one_of(&key, &field.node, &accepted, ModelApi::parse)?.unwrap_or_default();
                }
                "headers" => {
                    for header in self.read_map(
                        &format!("{key_path}.headers"),
                        &field.node,
                        "a map from header names to strings",
                    )? {
                        let key_path = format!("{key_path}.headers.{}", header.key);
                        let Some(value) = self.read_text(&key_path, &header.node)? else { continue };
                        if let file::ConfigValue::Scalar(scalar) = &header.node.value {
                            variables.extend(scalar.variables().into_iter().map(str::to_owned));
                        }
                        settings.headers.push((header.key.clone(), value));
                    }
                }
                _ => self.check_known(&key_path, field, known_keys::PROVIDER),
            }
        }
        if !settings.base_url.starts_with("http://") && !settings.base_url.starts_with("https://") {
            return Err(self.error_at(
                field.line,
                format!("{key_path} needs a base_url that starts with https:// or http://"),
            ));
        }
        Ok(ProviderSection { settings, secret_variables: variables })
    }

    /// Reads the models; the providers must have been read before.
    pub(super) fn read_models(
        &mut self,
        sections: &ConfigSections<'_>,
    ) -> Result<Vec<ModelSettings>, ConfigError> {
        sections.models.iter().map(|field| self.read_model(field, sections)).collect()
    }

    fn read_model(
        &mut self,
        field: &ConfigField,
        sections: &ConfigSections<'_>,
    ) -> Result<ModelSettings, ConfigError> {
        let key_path = format!("models.{}", field.key);
        let (mut fields, mut sampling) = (ModelFields::default(), Map::<String, Value>::new());
        for field in self.read_map(&key_path, &field.node, "a map with provider and model")? {
            let (key, node) = (format!("{key_path}.{}", field.key), &field.node);
            match field.key.as_str() {
                "provider" => fields.provider = self.read_text(&key, node)?.map(|name| (field.line, name)),
                "model" => fields.model = self.read_text(&key, node)?,
                "context_window" => fields.context_window = self.read_positive(&key, node)?,
                "modality" | "modalities" => fields.reads_images = self.read_modality(&key, node)?,
                "max_tokens" => fields.max_tokens = self.read_positive(&key, node)?,
                "temperature" => fields.temperature = self.read_number(&key, node, "a number")?,
                "reasoning_effort" => fields.reasoning_effort = self.read_text(&key, node)?,
                "thought_levels" => fields.thought_levels = self.read_thought_levels(&key, node)?,
                "send_reasoning" => fields.send_reasoning = self.read_flag(&key, node)?,
                "tool_calls" => {
                    let accepted = ToolCallMode::ALL.map(ToolCallMode::as_str);
                    fields.tool_calls =
                        self.read_one_of(&key, node, &accepted, ToolCallMode::parse)?.unwrap_or_default();
                }
                "tools" => fields.tools.profile = self.read_tool_profile(&key, node)?,
                "exclude_tools" => fields.tools.excluded = self.read_plain_names(&key, node)?,
                "edit_tool" => fields.tools.edit_tool = self.read_edit_tool(&key, node)?,
                "max_compact_tokens" => fields.compact_tokens_max = self.read_positive(&key, node)?,
                name if SAMPLING.contains(&name) => {
                    let value = node.to_json(self.merged_env);
                    if !value.is_number() {
                        return Err(self.expected_error(&key, node, "a number"));
                    }
                    sampling.insert(name.to_owned(), value);
                }
                "fallbacks" => fields.fallbacks = self.read_fallbacks(&key, node, &key_path, sections)?,
                "price" => fields.price = Some(self.read_price(&key, field)?),
                "extra_body" => fields.extra_body = self.read_request_fields(&key, node)?,
                _ => self.check_known(&key_path, field, known_keys::MODEL),
            }
        }
        let (line, provider) = fields
            .provider
            .ok_or_else(|| self.error_at(field.line, format!("{key_path} needs a provider")))?;
        // `extra_body` overrides the sampling parameters.
        sampling.extend(fields.extra_body);
        let provider = self.find_provider(&provider, line, sections)?;
        // The default is the model's name in the configuration.
        let defaults = ModelSettings::new(provider, fields.model.unwrap_or_else(|| field.key.clone()));
        Ok(sections.legacy.apply_to(ModelSettings {
            name: field.key.clone(),
            context_window: fields.context_window.unwrap_or(defaults.context_window),
            reads_images: fields.reads_images.unwrap_or(defaults.reads_images),
            compact_tokens_max: fields.compact_tokens_max,
            max_tokens: fields.max_tokens.or(sections.max_tokens),
            temperature: fields.temperature,
            reasoning_effort: fields.reasoning_effort,
            thought_levels: fields.thought_levels,
            send_reasoning: fields.send_reasoning,
            tool_calls: fields.tool_calls,
            tools: fields.tools,
            price: fields.price,
            extra_body: sampling,
            retries_max: sections.retries_max.unwrap_or(defaults.retries_max),
            fallbacks: fields.fallbacks,
            ..defaults
        }))
    }

    /// Reads a name or a list of names.
    fn read_plain_names(&mut self, key_path: &str, node: &ConfigNode) -> Result<Vec<String>, ConfigError> {
        Ok(self.read_names(key_path, node)?.into_iter().map(|(_, name)| name).collect())
    }

    /// Reads the tools of a model: a profile, or names.
    fn read_tool_profile(&mut self, key_path: &str, node: &ConfigNode) -> Result<ToolProfile, ConfigError> {
        let names = self.read_plain_names(key_path, node)?;
        Ok(match names.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [] | ["auto"] => ToolProfile::Auto,
            ["full"] => ToolProfile::Full,
            ["core"] => ToolProfile::Core,
            _ => ToolProfile::Named(names),
        })
    }

    /// Reads the tool by which a model changes files.
    fn read_edit_tool(
        &mut self,
        key_path: &str,
        node: &ConfigNode,
    ) -> Result<Option<EditToolKind>, ConfigError> {
        let accepted = EditToolKind::ALL.map(EditToolKind::as_str);
        self.read_one_of(key_path, node, &accepted, EditToolKind::parse)
    }

    /// Reads the modalities of a model; returns whether images are among them.
    fn read_modality(&mut self, key_path: &str, node: &ConfigNode) -> Result<Option<bool>, ConfigError> {
        let modalities = self.read_names(key_path, node)?;
        if let Some((line, unknown)) =
            modalities.iter().find(|(_, name)| !MODALITIES.contains(&name.as_str()))
        {
            let problem = format!(
                "{key_path}: unknown modality {unknown:?}; known modalities: {}",
                MODALITIES.join(", ")
            );
            return Err(self.error_at(*line, problem));
        }
        Ok((!modalities.is_empty()).then(|| modalities.iter().any(|(_, name)| name == "image")))
    }

    /// Reads the names of other models; the model itself is ignored.
    fn read_fallbacks(
        &mut self,
        key: &str,
        node: &ConfigNode,
        key_path: &str,
        sections: &ConfigSections<'_>,
    ) -> Result<Vec<String>, ConfigError> {
        let models: Vec<&str> = sections.models.iter().map(|field| field.key.as_str()).collect();
        let mut fallbacks: Vec<String> = Vec::new();
        for (line, name) in self.read_names(key, node)? {
            if !models.contains(&name.as_str()) {
                let nearest = known_keys::nearest_name(&name, models.iter().copied());
                let hint = match nearest {
                    Some(nearest) => format!("did you mean {nearest}?"),
                    None => format!("configured models: {}", models.join(", ")),
                };
                return Err(self.error_at(line, format!("{key}: unknown model {name:?}; {hint}")));
            }
            if format!("models.{name}") != key_path && !fallbacks.contains(&name) {
                fallbacks.push(name);
            }
            if fallbacks.len() > FALLBACKS_MAX {
                return Err(self.error_at(line, format!("{key}: at most {FALLBACKS_MAX} models")));
            }
        }
        Ok(fallbacks)
    }

    /// Reads a name or a list of names, each with its line.
    fn read_names(&mut self, key_path: &str, node: &ConfigNode) -> Result<Vec<(u64, String)>, ConfigError> {
        let nodes = match &node.value {
            file::ConfigValue::Null => &[],
            file::ConfigValue::Scalar(_) => std::slice::from_ref(node),
            file::ConfigValue::List(nodes) => nodes.as_slice(),
            file::ConfigValue::Map(_) => {
                return Err(self.expected_error(key_path, node, "a name or a list of names"));
            }
        };
        let names =
            nodes.iter().map(|node| Ok(self.read_text(key_path, node)?.map(|name| (node.line, name))));
        names.filter_map(Result::transpose).collect()
    }

    fn read_request_fields(
        &self,
        key_path: &str,
        node: &ConfigNode,
    ) -> Result<Map<String, Value>, ConfigError> {
        let fields = self.read_map(key_path, node, "a map of request fields")?.iter();
        Ok(fields.map(|field| (field.key.clone(), field.node.to_json(self.merged_env))).collect())
    }

    fn read_thought_levels(
        &self,
        key_path: &str,
        node: &ConfigNode,
    ) -> Result<BTreeMap<String, Map<String, Value>>, ConfigError> {
        let mut levels = BTreeMap::new();
        for field in self.read_map(key_path, node, "a map from thought levels to request fields")? {
            if ThoughtLevel::parse(&field.key).is_none() {
                let accepted = ThoughtLevel::ALL.map(ThoughtLevel::as_str).join(", ");
                let problem = format!("{key_path}: unknown level {:?}; known levels: {accepted}", field.key);
                return Err(self.error_at(field.line, problem));
            }
            let fields = self.read_request_fields(&format!("{key_path}.{}", field.key), &field.node)?;
            levels.insert(field.key.clone(), fields);
        }
        Ok(levels)
    }

    fn read_price(&mut self, key_path: &str, field: &ConfigField) -> Result<ModelPrice, ConfigError> {
        let (mut input, mut output, mut cached, mut cache_written) = (None, None, None, None);
        for field in self.read_map(key_path, &field.node, "a map with input and output")? {
            let kind = match field.key.as_str() {
                "input" => &mut input,
                "output" => &mut output,
                "cached" => &mut cached,
                "cache_written" => &mut cache_written,
                _ => {
                    self.check_known(key_path, field, known_keys::PRICE);
                    continue;
                }
            };
            let (key, expected) = (format!("{key_path}.{}", field.key), "US dollars per million tokens");
            *kind = self.read_number(&key, &field.node, expected)?;
            if kind.is_some_and(|dollars: f64| !dollars.is_finite() || dollars < 0.0) {
                return Err(self.expected_error(&key, &field.node, expected));
            }
        }
        match (input, output) {
            (Some(input), Some(output)) => Ok(ModelPrice { input, output, cached, cache_written }),
            _ => Err(self.error_at(field.line, format!("{key_path} needs input and output"))),
        }
    }

    /// Reads one of a set of words.
    fn read_one_of<T>(
        &mut self,
        key_path: &str,
        node: &ConfigNode,
        accepted: &[&str],
        parse: fn(&str) -> Option<T>,
    ) -> Result<Option<T>, ConfigError> {
        let Some(text) = self.read_text(key_path, node)? else { return Ok(None) };
        let invalid = || self.error_at(node.line, format!("{key_path}: expected {}", accepted.join(", ")));
        parse(&text).map(Some).ok_or_else(invalid)
    }

    fn find_provider(
        &self,
        name: &str,
        line: u64,
        sections: &ConfigSections<'_>,
    ) -> Result<ProviderSettings, ConfigError> {
        let provider = sections.providers.get(name).map(|provider| provider.settings.clone());
        provider.ok_or_else(|| {
            let names: Vec<&str> = sections.providers.keys().map(String::as_str).collect();
            let problem = match known_keys::nearest_name(name, names.iter().copied()) {
                Some(nearest) => format!("unknown provider {name:?}; did you mean {nearest}?"),
                None if names.is_empty() => format!("unknown provider {name:?}; `providers` is empty"),
                None => format!("unknown provider {name:?}; configured providers: {}", names.join(", ")),
            };
            self.error_at(line, problem)
        })
    }
}
