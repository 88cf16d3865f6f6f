//! Keys of earlier versions that apply to all models; now each model has its own.

use crow_model::{ModelApi, ModelSettings};
use serde_json::Value;

/// The values of those keys.
#[derive(Debug, Default)]
pub(super) struct LegacyModelSettings {
    pub(super) temperature: Option<f64>,
    pub(super) reasoning_effort: Option<String>,
    pub(super) parallel_tool_calls: Option<bool>,
}

impl LegacyModelSettings {
    /// Fills in what a model does not set itself.
    pub(super) fn apply_to(&self, mut model: ModelSettings) -> ModelSettings {
        model.temperature = model.temperature.or(self.temperature);
        model.reasoning_effort = model.reasoning_effort.take().or_else(|| self.reasoning_effort.clone());
        let is_chat = model.provider.api == ModelApi::CHAT;
        if let Some(parallel) = self.parallel_tool_calls.filter(|_| is_chat) {
            model.extra_body.entry("parallel_tool_calls").or_insert(Value::Bool(parallel));
        }
        model
    }
}
