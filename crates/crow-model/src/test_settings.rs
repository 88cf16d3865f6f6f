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
        context_window: 100_000,
        ..ModelSettings::new(provider, "acme-9")
    }
}
