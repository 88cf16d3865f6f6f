//! Which environment variables hold secrets. A name is read word by word, whichever way its words are told apart; of some names
//! only the value tells.

/// Model providers, forges, registries and clouds: a key of theirs is a secret. Elsewhere that word says little: `GPG_KEY` in the
/// official Python images is a fingerprint, and a keyboard has keys as well.
const OWNERS: &str = "\
    AI21 ALGOLIA ALIBABA ANTHROPIC ASSEMBLYAI AWS AZURE BASETEN BITBUCKET BRAVE CEREBRAS CLAUDE CLOUDFLARE \
    CODESTRAL COHERE CONTEXT7 DASHSCOPE DATADOG DD DEEPGRAM DEEPINFRA DEEPL DEEPSEEK DIGITALOCEAN DISCORD \
    ELEVENLABS EXA FIREBASE FIRECRAWL FIREWORKS GCP GEMINI GH GITHUB GITLAB GOOGLE GROK GROQ HEROKU HETZNER \
    HF HUGGINGFACE HYPERBOLIC JINA KAGI KIMI LANGCHAIN LANGFUSE LANGSMITH LINEAR LITELLM LLM MAILGUN \
    MINIMAX MISTRAL MOONSHOT NEBIUS NETLIFY NOTION NOVITA NPM NVIDIA OPENAI OPENROUTER PERPLEXITY PINECONE \
    PYPI QWEN REPLICATE SAMBANOVA SENDGRID SENTRY SERPAPI SERPER SLACK STRIPE SUPABASE TAVILY TELEGRAM \
    TOGETHER TWILIO VERCEL VOYAGE WANDB XAI ZAI ZHIPU";

/// What stands before `KEY` in the name of a secret.
const KEY_KINDS: &str = "\
    ACCESS ACCOUNT ADMIN API APP APPLICATION AUTH DECRYPTION DEPLOY ENCRYPTION FERNET HMAC INTEGRATION JWT \
    LICENSE MASTER PRIVATE RECOVERY ROLE ROOT SERVICE SIGNING SSH SUBSCRIPTION UNSEAL WEBHOOK";

/// What stands before `TOKENS`: a model counts tokens, too.
const TOKEN_KINDS: &str = "\
    ACCESS ADMIN API APP AUTH BEARER BOT DEPLOY PERSONAL REFRESH REGISTRY SERVICE SESSION USER";

/// What stands before `PASS` and `PWD`, which have other meanings as well.
const ACCOUNTS: &str = "\
    ADMIN DATABASE DB EMAIL FTP LDAP MAIL MONGO MONGODB MSSQL MYSQL ORACLE PG POSTGRES POSTGRESQL PROXY \
    RABBITMQ REDIS ROOT SMTP SSH SUDO USER";

/// What stands before `PAT` where that is a pattern.
const PATTERNS: &str = "\
    EXCLUDE FILE GLOB IGNORE INCLUDE MATCH NAME PATH REGEX SEARCH TEST";

/// Which of several secrets of one kind, behind its name.
const QUALIFIERS: &str = "\
    A ADMIN ALT B B64 BACKUP BAK BASE64 C CI CURRENT DEFAULT DEV DEVELOPMENT ENCODED FALLBACK HEX JSON LIVE \
    LOCAL MAIN NEW NEXT OLD ORG PEM PERSONAL PREV PREVIOUS PRIMARY PROD PRODUCTION READ READONLY RO RW \
    SANDBOX SECONDARY STAGE STAGING TEAM TEMP TEST TESTING TMP USER V VALUE WORK WRITE";

/// Words that make of a secret's name that of a setting: `API_KEY_HEADER`.
const SETTINGS: &str = "\
    ALG ALGORITHM AUDIENCE BACKEND BUCKET CMD COMMAND COUNT DIR DIRECTORY DISABLED ENABLED ENDPOINT ENV \
    EXPIRATION EXPIRES EXPIRY FILE FILES FOLDER FORMAT HEADER HEADERS HELPER HOST ID IDS ISSUER KIND LENGTH \
    LIMIT MANAGER MAX MIN MODE NAME NAMES OPTIONAL OPTIONS OPTS PATH PATHS PATTERN PERMISSIONS POLICY \
    PREFIX PROGRAM PROVIDER REGEX REQUIRED ROTATION SCOPE SCOPES SCRIPT SIZE SOURCE STORAGE STORE SUFFIX \
    TIMEOUT TTL TYPE URI URL VALIDATION VAR VARIABLE";

/// Words that are a secret by themselves, at the end of a name or of a word: `PGPASSWORD`.
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
const NAMES: [&str; 12] = [
    "AZURE STORAGE SAS",
    "DISCORD WEBHOOK",
    "DISCORD WEBHOOK URL",
    "DOCKER AUTH CONFIG",
    "GOOGLE SERVICE ACCOUNT JSON",
    "NPM AUTH",
    "NPM CONFIG AUTH",
    "SLACK WEBHOOK",
    "SLACK WEBHOOK URL",
    "TEAMS WEBHOOK URL",
    "VAULT UNSEAL",
    "PAT",
];

/// The path of a file, by a name that looks like more.
const CREDENTIALS_FILE: &str = "GOOGLE APPLICATION CREDENTIALS";

/// Whether a variable holds a secret as far as its name tells, in any case of letters.
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
            let (phrase, behind) = words.split_at(end);
            match secret_strength(phrase) {
                Some(SecretStrength::Plain) => {
                    behind.iter().all(|word| is_number(word) || is_in(QUALIFIERS, word))
                }
                Some(SecretStrength::Certain) => !behind.iter().any(|word| is_in(SETTINGS, word)),
                None => false,
            }
        })
}

/// Whether a variable is a secret by its name, or by a value that has a password in it. The path of a file with credentials is
/// none.
pub fn is_secret_value(name: &str, value: &str) -> bool {
    let words = split_name_words(name);
    let last = words.last().map(String::as_str);
    match last {
        Some("CREDENTIALS" | "CREDENTIAL" | "CREDS") => !is_path(value),
        Some("URL" | "URLS" | "URI" | "URIS") => is_secret_variable(name) || has_password(value),
        Some(_) | None => is_secret_variable(name),
    }
}

/// How much the end of some words says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SecretStrength {
    /// A secret with nothing behind it but which one it is.
    Plain,
    /// A secret with anything behind it that makes no setting of it.
    Certain,
}

/// Tells whether words end in the name of a secret.
fn secret_strength(words: &[&str]) -> Option<SecretStrength> {
    let (last, before) = words.split_last()?;
    let kind = before.last().copied().unwrap_or_default();
    let first = before.first().copied().unwrap_or_default();
    let is_owned = is_in(OWNERS, kind) || is_in(OWNERS, first);
    let last = strip_number(last);
    let one = last.strip_suffix('S').filter(|one| !one.ends_with('S')).unwrap_or(last);
    if SECRET_WORDS.iter().any(|word| one.ends_with(word)) {
        return Some(if one.ends_with("KEY") { SecretStrength::Certain } else { SecretStrength::Plain });
    }
    match one {
        "KEY" if is_in(KEY_KINDS, kind) => Some(SecretStrength::Certain),
        "KEY" if is_owned => Some(SecretStrength::Plain),
        "ID" if before.ends_with(&["ACCESS", "KEY"]) => Some(SecretStrength::Plain),
        "TOKEN" if is_in(TOKEN_KINDS, kind) || is_in(OWNERS, kind) => Some(SecretStrength::Certain),
        "TOKEN" if one == last && !kind.is_empty() => Some(SecretStrength::Plain),
        "CREDENTIAL" | "CRED" if !kind.is_empty() => Some(SecretStrength::Plain),
        "STRING" if kind == "CONNECTION" => Some(SecretStrength::Plain),
        "PAS" | "PASS" | "PWD" if is_in(ACCOUNTS, kind) => Some(SecretStrength::Plain),
        "PAT" if !kind.is_empty() && !is_in(PATTERNS, kind) => Some(SecretStrength::Plain),
        "DSN" | "BEARER" | "JWT" if !kind.is_empty() => Some(SecretStrength::Plain),
        _ => one.strip_suffix("KEY").filter(|owner| is_in(OWNERS, owner)).map(|_| SecretStrength::Plain),
    }
}

/// Takes a name apart: at what is no letter or digit, and where a small letter is followed by a capital one.
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

/// A word without the digits behind it.
fn strip_number(word: &str) -> &str {
    word.trim_end_matches(|char: char| char.is_ascii_digit())
}

fn is_path(value: &str) -> bool {
    let is_of_path = |char: char| !char.is_control() && !"{}\"=".contains(char);
    let begins = ["/", "./", "../", "~/"].iter().any(|start| value.starts_with(start));
    begins && value.chars().all(is_of_path)
}

/// Whether an address names a password: `postgres://me:word@host/`.
fn has_password(value: &str) -> bool {
    value.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let Some((person, _)) = authority.rsplit_once('@') else { return false };
        person.split_once(':').is_some_and(|(_, password)| !password.is_empty())
    })
}

#[cfg(test)]
mod tests;
