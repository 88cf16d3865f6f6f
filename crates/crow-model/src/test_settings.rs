//! A sample model for tests.

use crate::{ApiKey, ModelSettings, ProviderSettings};

/// A key that must not appear in any output.
pub(crate) const SECRET_KEY: &str = "sk-secret-0123456789";

/// Settings of a model of provider `acme`.
pub(crate) fn sample_settings() -> ModelSettings {
    let provider = ProviderSettings {
        name: "acme".to_owned(),
        base_url: "https://user:word@api.acme.test/v1?token=abc".to_owned(),
        api: crate::ModelApi::CHAT,
        api_key: Some(ApiKey::new(SECRET_KEY)),
        key_variable: Some("ACME_API_KEY".to_owned()),
        headers: vec![("x-tenant".to_owned(), "tenant-secret".to_owned())],
    };
    ModelSettings {
        name: "big".to_owned(),
        provider,
        model: "acme-9".to_owned(),
        context_window: 100_000,
        reads_images: true,
        compact_tokens_max: None,
        max_tokens: None,
        temperature: None,
        reasoning_effort: None,
        thought_levels: std::collections::BTreeMap::new(),
        send_reasoning: None,
        tool_calls: crate::ToolCallMode::default(),
        tools: crow_core::ToolSelection::default(),
        price: None,
        extra_body: serde_json::Map::new(),
        retries_max: 3,
        fallbacks: Vec::new(),
    }
}
