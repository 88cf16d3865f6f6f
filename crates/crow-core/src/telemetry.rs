//! The names that the spans of a turn share.

#[cfg(test)]
mod tests;

/// The target of the tracing spans that are exported: turns, model requests, tool calls and turns of children. Their
/// fields are the attributes, without prompts, contents and keys.
pub const TELEMETRY_TARGET: &str = "telemetry";

/// Hosts of providers with their names in the semantic conventions of OpenTelemetry. A host also stands for those below
/// it.
const PROVIDER_HOSTS: [(&str, &str); 15] = [
    ("aiplatform.googleapis.com", "gcp.vertex_ai"),
    ("amazonaws.com", "aws.bedrock"),
    ("api.anthropic.com", "anthropic"),
    ("api.cohere.com", "cohere"),
    ("api.deepseek.com", "deepseek"),
    ("api.groq.com", "groq"),
    ("api.mistral.ai", "mistral_ai"),
    ("api.moonshot.ai", "moonshot_ai"),
    ("api.moonshot.cn", "moonshot_ai"),
    ("api.openai.com", "openai"),
    ("api.perplexity.ai", "perplexity"),
    ("api.x.ai", "x_ai"),
    ("generativelanguage.googleapis.com", "gcp.gemini"),
    ("openai.azure.com", "azure.ai.openai"),
    ("services.ai.azure.com", "azure.ai.inference"),
];

/// Returns the name of a provider in the semantic conventions, by the host of its address; `None` if they have none.
pub fn telemetry_provider(host: &str) -> Option<&'static str> {
    let is_below = |known: &str| {
        host.strip_suffix(known).is_some_and(|rest| rest.is_empty() || rest.ends_with(['.', '-']))
    };
    PROVIDER_HOSTS.iter().find(|(known, _)| is_below(known)).map(|(_, name)| *name)
}
