//! Detects environment variables with secrets, by the words of their names and, for some names, by their values.

/// Model providers, forges, registries and clouds: a key of theirs is a secret. Other keys may not be: `GPG_KEY` in
/// the official Python images is a fingerprint.
const PROVIDER_NAMES: &str = "\
    AI21 ALGOLIA ALIBABA ANTHROPIC ASSEMBLYAI AWS AZURE BASETEN BITBUCKET BRAVE CEREBRAS CLAUDE CLOUDFLARE \
    CODESTRAL COHERE CONTEXT7 DASHSCOPE DATADOG DD DEEPGRAM DEEPINFRA DEEPL DEEPSEEK DIGITALOCEAN DISCORD \
    ELEVENLABS EXA FIREBASE FIRECRAWL FIREWORKS GCP GEMINI GH GITHUB GITLAB GOOGLE GROK GROQ HEROKU HETZNER \
    HF HUGGINGFACE HYPERBOLIC JINA KAGI KIMI LANGCHAIN LANGFUSE LANGSMITH LINEAR LITELLM LLM MAILGUN \
    MINIMAX MISTRAL MOONSHOT NEBIUS NETLIFY NOTION NOVITA NPM NVIDIA OPENAI OPENROUTER PERPLEXITY PINECONE \
    PYPI QWEN REPLICATE SAMBANOVA SENDGRID SENTRY SERPAPI SERPER SLACK STRIPE SUPABASE TAVILY TELEGRAM \
    TOGETHER TWILIO VERCEL VOYAGE WANDB XAI ZAI ZHIPU";

/// Words before `KEY` in the name of a secret.
const KEY_KINDS: &str = "\
    ACCESS ACCOUNT ADMIN API APP APPLICATION AUTH DECRYPTION DEPLOY ENCRYPTION FERNET HMAC INTEGRATION JWT \
    LICENSE MASTER PRIVATE RECOVERY ROLE ROOT SERVICE SIGNING SSH SUBSCRIPTION UNSEAL WEBHOOK";

/// Words before `TOKENS`: token counts are not secret.
const TOKEN_KINDS: &str = "\
    ACCESS ADMIN API APP AUTH BEARER BOT DEPLOY PERSONAL REFRESH REGISTRY SERVICE SESSION USER";

/// Words before `PASS` and `PWD`, which have other meanings.
const ACCOUNTS: &str = "\
    ADMIN DATABASE DB EMAIL FTP LDAP MAIL MONGO MONGODB MSSQL MYSQL ORACLE PG POSTGRES POSTGRESQL PROXY \
    RABBITMQ REDIS ROOT SMTP SSH SUDO USER";

/// Words before `PAT` with the meaning of pattern.
const PATTERNS: &str = "\
    EXCLUDE FILE GLOB IGNORE INCLUDE MATCH NAME PATH REGEX SEARCH TEST";

/// Words after the name of a secret that distinguish several.
const QUALIFIERS: &str = "\
    A ADMIN ALT B B64 BACKUP BAK BASE64 C CI CURRENT DEFAULT DEV DEVELOPMENT ENCODED FALLBACK HEX JSON LIVE \
    LOCAL MAIN NEW NEXT OLD ORG PEM PERSONAL PREV PREVIOUS PRIMARY PROD PRODUCTION READ READONLY RO RW \
    SANDBOX SECONDARY STAGE STAGING TEAM TEMP TEST TESTING TMP USER V VALUE WORK WRITE";

/// Words that turn the name of a secret into a setting: `API_KEY_HEADER`.
const SETTINGS: &str = "\
    ALG ALGORITHM AUDIENCE BACKEND BUCKET CMD COMMAND COUNT DIR DIRECTORY DISABLED ENABLED ENDPOINT ENV \
    EXPIRATION EXPIRES EXPIRY FILE FILES FOLDER FORMAT HEADER HEADERS HELPER HOST ID IDS ISSUER KIND LENGTH \
    LIMIT MANAGER MAX MIN MODE NAME NAMES OPTIONAL OPTIONS OPTS PATH PATHS PATTERN PERMISSIONS POLICY \
    PREFIX PROGRAM PROVIDER REGEX REQUIRED ROTATION SCOPE SCOPES SCRIPT SIZE SOURCE STORAGE STORE SUFFIX \
    TIMEOUT TTL TYPE URI URL VALIDATION VAR VARIABLE";

/// Words that mean a secret by themselves, at the end of a name or word: `PGPASSWORD`.
const SECRET_WORDS: [&str; 13] = [
    "ACCESSKEY",
    "ACCESSTOKEN",
    "APIKEY",
    "APITOKEN",
    "AUTHTOKEN",
    "BEARERTOKEN",
    "PASSPHRASE",
    "PASSWD",
    "PASSWORD",
    "PRIVATEKEY",
    "REFRESHTOKEN",
    "SECRET",
    "SECRETKEY",
];

/// Names that no rule covers, by their words.
const NAMES: [&str; 16] = [
    "AZURE STORAGE SAS",
    "DISCORD WEBHOOK",
    "DISCORD WEBHOOK URL",
    "DOCKER AUTH CONFIG",
    "GOOGLE SERVICE ACCOUNT JSON",
    "NPM AUTH",
    "NPM CONFIG AUTH",
    "OTEL EXPORTER OTLP HEADERS",
    "OTEL EXPORTER OTLP LOGS HEADERS",
    "OTEL EXPORTER OTLP METRICS HEADERS",
    "OTEL EXPORTER OTLP TRACES HEADERS",
    "SLACK WEBHOOK",
    "SLACK WEBHOOK URL",
    "TEAMS WEBHOOK URL",
    "VAULT UNSEAL",
    "PAT",
];

/// A path to a file, with a name like a secret.
const CREDENTIALS_FILE: &str = "GOOGLE APPLICATION CREDENTIALS";

/// Whether a variable is a secret by its name, in any case.
fn is_secret_variable(name: &str) -> bool {
    let words = split_name_words(name);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let joined = words.join(" ");
    if joined == CREDENTIALS_FILE {
        return false;
    }
    NAMES.contains(&joined.as_str())
        || words.iter().any(|word| matches!(*word, "SECRET" | "SECRETS"))
        || (1..=words.len()).any(|end| {
            let (phrase, suffix_words) = words.split_at(end);
            match secret_strength(phrase) {
                Some(SecretStrength::Plain) => {
                    suffix_words.iter().all(|word| is_number(word) || is_in(QUALIFIERS, word))
                }
                Some(SecretStrength::Certain) => !suffix_words.iter().any(|word| is_in(SETTINGS, word)),
                None => false,
            }
        })
}

/// Whether a variable is a secret by its name, or by a value with a password. The path of a credentials file is not.
pub fn is_secret_value(name: &str, value: &str) -> bool {
    let words = split_name_words(name);
    let last = words.last().map(String::as_str);
    match last {
        Some("CREDENTIALS" | "CREDENTIAL" | "CREDS") => !is_path(value),
        Some("URL" | "URLS" | "URI" | "URIS") => is_secret_variable(name) || has_password(value),
        Some(_) | None => is_secret_variable(name),
    }
}

/// The strength of a name's evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SecretStrength {
    /// A secret unless other words follow, except qualifiers.
    Plain,
    /// A secret unless a word for a setting follows.
    Certain,
}

/// Returns the evidence if words end in the name of a secret.
fn secret_strength(words: &[&str]) -> Option<SecretStrength> {
    let (last, before) = words.split_last()?;
    let kind = before.last().copied().unwrap_or_default();
    let first = before.first().copied().unwrap_or_default();
    let has_owner = || is_in(PROVIDER_NAMES, kind) || is_in(PROVIDER_NAMES, first);
    let last = strip_number(last);
    let singular = last.strip_suffix('S').filter(|one| !one.ends_with('S')).unwrap_or(last);
    if SECRET_WORDS.iter().any(|word| singular.ends_with(word)) {
        return Some(if singular.ends_with("KEY") { SecretStrength::Certain } else { SecretStrength::Plain });
    }
    match singular {
        "KEY" if is_in(KEY_KINDS, kind) => Some(SecretStrength::Certain),
        "KEY" if has_owner() => Some(SecretStrength::Plain),
        "ID" if before.ends_with(&["ACCESS", "KEY"]) => Some(SecretStrength::Plain),
        "TOKEN" if is_in(TOKEN_KINDS, kind) || is_in(PROVIDER_NAMES, kind) => Some(SecretStrength::Certain),
        "TOKEN" if singular == last && !kind.is_empty() => Some(SecretStrength::Plain),
        "CREDENTIAL" | "CRED" if !kind.is_empty() => Some(SecretStrength::Plain),
        "STRING" if kind == "CONNECTION" => Some(SecretStrength::Plain),
        "PAS" | "PASS" | "PWD" if is_in(ACCOUNTS, kind) => Some(SecretStrength::Plain),
        "PAT" if !kind.is_empty() && !is_in(PATTERNS, kind) => Some(SecretStrength::Plain),
        "DSN" | "BEARER" | "JWT" if !kind.is_empty() => Some(SecretStrength::Plain),
        _ => singular
            .strip_suffix("KEY")
            .filter(|owner| is_in(PROVIDER_NAMES, owner))
            .map(|_| SecretStrength::Plain),
    }
}

/// Splits a name at other characters, and before a capital after a small letter.
fn split_name_words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_small = false;
    for char in name.chars() {
        let begins = !char.is_ascii_alphanumeric() || (was_small && char.is_ascii_uppercase());
        if begins {
            words.push(String::new());
        }
        was_small = char.is_ascii_lowercase();
        if let Some(word) = words.last_mut().filter(|_| char.is_ascii_alphanumeric()) {
            word.push(char.to_ascii_uppercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn is_in(table: &str, word: &str) -> bool {
    table.split(' ').any(|entry| entry == word)
}

fn is_number(word: &str) -> bool {
    strip_number(word).is_empty()
        || matches!(word.as_bytes(), [b'V', digits @ ..] if digits.iter().all(u8::is_ascii_digit))
}

/// Removes trailing digits.
fn strip_number(word: &str) -> &str {
    word.trim_end_matches(|char: char| char.is_ascii_digit())
}

fn is_path(value: &str) -> bool {
    let is_of_path = |char: char| !char.is_control() && !"{}\"=".contains(char);
    let begins = ["/", "./", "../", "~/"].iter().any(|start| value.starts_with(start));
    begins && value.chars().all(is_of_path)
}

/// Whether a URL contains a password: `postgres://me:word@host/`.
fn has_password(value: &str) -> bool {
    value.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let Some((user_info, _)) = authority.rsplit_once('@') else { return false };
        user_info.split_once(':').is_some_and(|(_, password)| !password.is_empty())
    })
}

#[cfg(test)]
mod tests;
