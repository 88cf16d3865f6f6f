//! Which environment variables hold secrets, by their names. Knows no value.

/// Endings that make any name a secret's. A registry, a forge, a package index: each calls its credential so.
const ENDINGS: [&str; 5] = ["_API_KEY", "_TOKEN", "_ACCESS_KEY", "_PRIVATE_KEY", "_MASTER_KEY"];

/// Model providers, search services and clouds: a name of theirs that ends in `_KEY` is a secret. Elsewhere that ending says
/// little: `GPG_KEY` in the official Python images is a fingerprint, and a keyboard has keys as well.
const OWNERS: [&str; 58] = [
    "AI21",
    "ALGOLIA",
    "ALIBABA",
    "ANTHROPIC",
    "AWS",
    "AZURE",
    "BASETEN",
    "BRAVE",
    "CEREBRAS",
    "CLAUDE",
    "CLOUDFLARE",
    "COHERE",
    "DASHSCOPE",
    "DATADOG",
    "DD",
    "DEEPINFRA",
    "DEEPSEEK",
    "ELEVENLABS",
    "EXA",
    "FIRECRAWL",
    "FIREWORKS",
    "GCP",
    "GEMINI",
    "GOOGLE",
    "GROQ",
    "HF",
    "HUGGINGFACE",
    "HYPERBOLIC",
    "JINA",
    "KAGI",
    "KIMI",
    "LANGCHAIN",
    "LANGFUSE",
    "LANGSMITH",
    "LITELLM",
    "LLM",
    "MINIMAX",
    "MISTRAL",
    "MOONSHOT",
    "NEBIUS",
    "NOVITA",
    "NVIDIA",
    "OPENAI",
    "OPENROUTER",
    "PERPLEXITY",
    "QWEN",
    "REPLICATE",
    "SAMBANOVA",
    "SENDGRID",
    "SERPAPI",
    "SERPER",
    "STRIPE",
    "TAVILY",
    "TOGETHER",
    "VOYAGE",
    "XAI",
    "ZAI",
    "ZHIPU",
];

/// Names that no rule above covers.
const NAMES: [&str; 12] = [
    "API_KEY",
    "AWS_ACCESS_KEY_ID",
    "AZURE_STORAGE_CONNECTION_STRING",
    "AZURE_STORAGE_SAS",
    "DOCKER_AUTH_CONFIG",
    "GITHUB_PAT",
    "GH_PAT",
    "GOOGLE_CREDENTIALS",
    "GOOGLE_SERVICE_ACCOUNT_JSON",
    "NPM_AUTH",
    "SECRET",
    "VAULT_UNSEAL_KEY",
];

/// Whether a variable holds a secret as far as its name tells, in any case of letters.
pub fn is_secret_variable(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let ends_in_one = ENDINGS.iter().any(|ending| name.ends_with(ending));
    let is_owners_key = name.ends_with("_KEY")
        && name.split('_').next().is_some_and(|owner| OWNERS.binary_search(&owner).is_ok());
    let names_secret = name.contains("_SECRET") || name.starts_with("SECRET_");
    ends_in_one || is_owners_key || names_secret || NAMES.contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_can_be_searched() {
        assert!(OWNERS.is_sorted());
    }

    #[test]
    fn names_of_credentials_are_secret() {
        for name in [
            "OPENAI_API_KEY",
            "openai_api_key",
            "LLM_WORK_API_KEY",
            "API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "DEEPSEEK_KEY",
            "HF_TOKEN",
            "HUGGING_FACE_HUB_TOKEN",
            "GITHUB_TOKEN",
            "GH_TOKEN",
            "GH_ENTERPRISE_TOKEN",
            "GITLAB_TOKEN",
            "NPM_TOKEN",
            "CARGO_REGISTRY_TOKEN",
            "CARGO_REGISTRIES_MINE_TOKEN",
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "AZURE_CLIENT_SECRET",
            "AZURE_OPENAI_KEY",
            "AZURE_STORAGE_KEY",
            "AZURE_STORAGE_CONNECTION_STRING",
            "GOOGLE_CLIENT_SECRET",
            "DJANGO_SECRET_KEY",
            "SECRET_KEY",
            "VAULT_TOKEN",
            "MINIO_ACCESS_KEY",
            "SLACK_BOT_TOKEN",
            "DEPLOY_SECRETS",
        ] {
            assert!(is_secret_variable(name), "{name}");
        }
    }

    #[test]
    fn other_names_are_not() {
        for name in [
            "PATH",
            "HOME",
            "SSH_AUTH_SOCK",
            "GPG_KEY",
            "GPG_AGENT_INFO",
            "KEYBOARD_KEY",
            "XKB_DEFAULT_LAYOUT",
            "MAX_TOKENS",
            "TOKENIZERS_PARALLELISM",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "AWS_PROFILE",
            "AWS_REGION",
            "KUBECONFIG",
            "SECRETARY",
            "MONKEY",
            "TURKEY",
            "SORT_KEY",
            "CACHE_KEY",
            "DATABASE_URL",
            "",
            "_",
        ] {
            assert!(!is_secret_variable(name), "{name}");
        }
    }
}
