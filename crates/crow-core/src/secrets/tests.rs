use super::*;

#[track_caller]
fn check(names: &str, expected: bool) {
    let wrong: Vec<&str> =
        names.split_whitespace().filter(|name| is_secret_variable(name) != expected).collect();
    assert!(wrong.is_empty(), "not {expected}: {wrong:?}");
}

#[test]
fn names_of_credentials_are_secret() {
    check(
        "OPENAI_API_KEY openai_api_key LLM_WORK_API_KEY API_KEY ANTHROPIC_AUTH_TOKEN DEEPSEEK_KEY HF_TOKEN \
         HUGGING_FACE_HUB_TOKEN GITHUB_TOKEN GH_TOKEN GH_ENTERPRISE_TOKEN GITLAB_TOKEN NPM_TOKEN CARGO_REGISTRY_TOKEN \
         CARGO_REGISTRIES_MINE_TOKEN AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AZURE_CLIENT_SECRET \
         AZURE_OPENAI_KEY AZURE_STORAGE_KEY AZURE_STORAGE_CONNECTION_STRING GOOGLE_CLIENT_SECRET DJANGO_SECRET_KEY \
         SECRET_KEY VAULT_TOKEN MINIO_ACCESS_KEY SLACK_BOT_TOKEN DEPLOY_SECRETS AZURE_STORAGE_SAS DOCKER_AUTH_CONFIG \
         OTEL_EXPORTER_OTLP_HEADERS GITHUB_PAT GH_PAT GOOGLE_CREDENTIALS GOOGLE_SERVICE_ACCOUNT_JSON NPM_AUTH SECRET VAULT_UNSEAL_KEY",
        true,
    );
}

/// Numbered names, plurals, joined words, and other cases.
#[test]
fn spellings_of_credentials_are_secret() {
    check(
        "OPENAI_API_KEY_1 OPENAI_API_KEY2 OPENAI_API_KEY_BACKUP OPENAI_API_KEY_OLD OPENAI_API_KEY_PROD OPENAI_API_KEY_ALICE \
         ANTHROPIC_API_KEY_EU_WEST API_KEYS GEMINI_API_KEYS OPENAI_API_KEYS_JSON APIKEY OPENAI_APIKEY OPENAIAPIKEY MYAPIKEY \
         apiKey openaiApiKey APIKEY_1 OPENAIKEY VITE_OPENAI_KEY GITHUB_TOKEN_2 GITHUB_TOKEN_ACME TOKEN_1_TOKEN MY_TOKEN_2 \
         DEPLOY_TOKEN_STAGING AUTH_TOKENS GITHUB_TOKENS SLACK_BOT_TOKENS npm_config__authToken npm_config__auth \
         npm_config_//registry.npmjs.org/:_authToken YARN_NPM_AUTH_TOKEN accessToken ACCESSTOKEN MY_ACCESSTOKEN \
         AZURE_DEVOPS_EXT_PAT GITLAB_PAT_2 SUPABASE_SERVICE_ROLE_KEY SERVICE_ROLE_KEY DB_CREDENTIALS GCP_CREDENTIALS \
         FIREBASE_CREDENTIALS_JSON AWS_CREDS REGISTRY_CREDENTIAL SENTRY_DSN POSTGRES_DSN DATABASE_DSN_TEST DB_PASSWORD \
         PGPASSWORD MYSQL_PWD MYSQL_ROOT_PASSWORD DB_PASS SMTP_PASS REDIS_PASSWORD_1 GPG_PASSPHRASE SSH_KEY_PASSPHRASE \
         HTPASSWD ENCRYPTION_KEY JWT_SIGNING_KEY APP_KEY SSH_PRIVATE_KEY PRIVATE_KEY_PEM TWILIO_KEY clientSecret CLIENTSECRET \
         SLACK_WEBHOOK_URL ALIBABA_CLOUD_ACCESS_KEY_ID B2_APPLICATION_KEY SERVICE_JWT DD_APP_KEY CONTEXT7_KEY \
         OPENAI-API-KEY openai.api.key",
        true,
    );
}

#[test]
fn other_names_are_not_secret() {
    check(
        "PATH HOME SSH_AUTH_SOCK GPG_KEY GPG_AGENT_INFO KEYBOARD_KEY XKB_DEFAULT_LAYOUT MAX_TOKENS TOKENIZERS_PARALLELISM \
         GOOGLE_APPLICATION_CREDENTIALS AWS_PROFILE AWS_REGION KUBECONFIG SECRETARY MONKEY TURKEY SORT_KEY CACHE_KEY \
         DATABASE_URL _ KEYBOARD_LAYOUT KEYMAP KEYTIMEOUT MY_SECRETARY PWD OLDPWD INIT_CWD OLD_PWD SSH_ASKPASS SUDO_ASKPASS \
         GIT_ASKPASS BYPASS COMPASS NUM_PASS MULTI_PASS API_KEY_HEADER API_KEY_NAME OPENAI_API_KEY_PATH OPENAI_API_KEY_FILE \
         API_KEY_REQUIRED API_KEYS_ENABLED AUTH_TOKEN_TTL TOKEN_URL TOKEN_COUNT TOKEN_LIMIT OPENAI_MAX_TOKENS \
         MAX_OUTPUT_TOKENS CLAUDE_CODE_MAX_OUTPUT_TOKENS N_TOKENS TOKENS TOKENIZER_PATH PASSWORD_STORE_DIR \
         POSTGRES_PASSWORD_FILE PASSWORD_MIN_LENGTH PASSWORD_HASHERS CREDENTIALS_DIRECTORY AWS_SHARED_CREDENTIALS_FILE \
         GIT_CREDENTIAL_HELPER FILE_PAT GLOB_PAT PATTERN PATCH DSNX SENTRY_ENVIRONMENT PRIMARY_KEY PARTITION_KEY FOREIGN_KEY \
         PUBLIC_KEY KEY KEYS DONKEY HOTKEY XDG_RUNTIME_DIR LANG TERM DISPLAY XAUTHORITY DBUS_SESSION_BUS_ADDRESS \
         GITHUB_ACTIONS GITHUB_REPOSITORY GITHUB_PATH GITHUB_ENV CI OPENAI_BASE_URL OPENAI_API_BASE AZURE_TENANT_ID \
         AZURE_CLIENT_ID AWS_SECURITY_GROUP NODE_PATH npm_config_registry npm_config_cache CARGO_HOME RUSTFLAGS AUTHOR \
         GIT_AUTHOR_NAME SESSION_MANAGER SSH_AGENT_PID SSH_CONNECTION GPG_TTY KEYCHAIN_PATH API_VERSION SSH_KEY_PATH",
        false,
    );
    assert!(!is_secret_variable(""));
}

#[track_caller]
fn check_value(name: &str, value: &str, expected: bool) {
    assert_eq!(is_secret_value(name, value), expected, "{name}={value}");
}

#[test]
fn url_with_password_is_secret() {
    for (value, expected) in [
        ("postgres://me:word@host/db", true),
        ("postgresql+asyncpg://me:w@rd@host:5432/db?sslmode=require", true),
        ("redis://:word@host:6379/0", true),
        ("https://x-access-token:ghp_1@github.com/a/b.git", true),
        ("mongodb://me:word@one,two/db", true),
        ("jdbc:postgresql://me:word@host/db", true),
        ("postgres://host/db", false),
        ("postgres://me@host/db", false),
        ("postgres://me:@host/db", false),
        ("https://example.com/a:b@c", false),
        ("sqlite:///a/b.db", false),
        ("", false),
    ] {
        for name in ["DATABASE_URL", "REDIS_URI", "PIP_INDEX_URL", "databaseUrl"] {
            check_value(name, value, expected);
        }
        check_value("HTTPS_PROXY", value, false);
    }
}

#[test]
fn credentials_are_secret_unless_a_path() {
    check_value("GOOGLE_APPLICATION_CREDENTIALS", "/home/me/key.json", false);
    check_value("GOOGLE_APPLICATION_CREDENTIALS", r#"{"type":"service_account"}"#, true);
    check_value("DB_CREDENTIALS", "~/.db", false);
    check_value("DB_CREDENTIALS", "me:word", true);
    check_value("OPENAI_API_KEY", "/looks/like/a/path", true);
    check_value("PATH", "/bin", false);
}
