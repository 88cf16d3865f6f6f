//! `crow-cli config`: shows and changes the configuration file. Comments stay, and nothing invalid is saved.

use std::{
    fs,
    io::{self, IsTerminal, Write},
    path::Path,
};

use crow_core::is_secret_value;
use serde_json::Value;

use crate::{
    agent,
    cli::ConfigSubcommand,
    failure::{CliError, CliExitCode},
    sessions::{ConfirmAnswer, ask_confirmation},
    settings::{
        self, CONFIG_FILE, ConfigEditError, ConfigError, ConfigWarning, ConfigWarningKind, Environment,
        Settings, find_value, set_value,
    },
};

/// The previous configuration.
pub(crate) const BACKUP_FILE: &str = "config.yaml.bak";

/// The editor if neither `VISUAL` nor `EDITOR` is set.
const DEFAULT_EDITOR: &str = "vi";

/// Shown in place of a key or password.
const HIDDEN: &str = "(hidden)";

/// Keys and options whose values, or all values below them, may be secrets although their names are too short for
/// [`is_secret_value`].
const SECRET_KEYS: [&str; 5] = ["token", "key", "headers", "header", "env"];

pub(crate) fn run(
    command: &ConfigSubcommand,
    dir: &Path,
    env: &Environment,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let path = dir.join(CONFIG_FILE);
    match command {
        ConfigSubcommand::Schema => Ok(writeln!(out, "{:#}", settings::config_schema())?),
        ConfigSubcommand::Path => Ok(writeln!(out, "{}", path.display())?),
        ConfigSubcommand::Get { key } => {
            let found = find_value(&path, &settings::read_config_text(dir)?, key)?;
            let Some(mut value) = found else {
                let message = format!("{key} is not set in {}", path.display());
                return Err(CliError::new(CliExitCode::Failed, message));
            };
            let is_secret = key.split('.').any(is_secret_name);
            hide_secrets(&mut value, is_secret);
            match value {
                Value::String(text) => writeln!(out, "{text}")?,
                Value::Object(_) | Value::Array(_) => writeln!(out, "{value:#}")?,
                Value::Null | Value::Bool(_) | Value::Number(_) => writeln!(out, "{value}")?,
            }
            Ok(())
        }
        ConfigSubcommand::Set { key, value } => {
            let text = settings::read_config_text(dir)?;
            let edited = set_value(&path, &text, key, value).map_err(|error| edit_error(&error))?;
            check_text(dir, env, &text, &edited).map_err(|problem| {
                CliError::new(CliExitCode::Usage, format!("{key} is not changed: {}", problem.text))
            })?;
            replace_config(dir, &edited)
        }
        ConfigSubcommand::Edit => edit(dir, env),
    }
}

fn edit_error(error: &ConfigEditError) -> CliError {
    let code = match error {
        ConfigEditError::Invalid(_) => CliExitCode::Config,
        ConfigEditError::Unusual { .. } => CliExitCode::Failed,
    };
    CliError::new(code, error.to_string()).with_hint("change it with `crow-cli config edit`")
}

/// Why a changed configuration cannot be used.
struct ConfigProblem {
    /// Line number, from 1; 0 if it concerns the whole file.
    line: u64,
    text: String,
}

/// Checks a changed configuration; problems it had before do not count.
fn check_text(dir: &Path, env: &Environment, before: &str, text: &str) -> Result<(), ConfigProblem> {
    let (_, warnings) = Settings::load_text(dir, env, text).map_err(|error| match error {
        ConfigError::Invalid { line, problem, .. } => ConfigProblem { line, text: problem },
        ConfigError::Unreadable { .. }
        | ConfigError::NotConfigured { .. }
        | ConfigError::UnknownModel { .. }
        | ConfigError::NoHome
        | ConfigError::NotUtf8 { .. } => ConfigProblem { line: 0, text: error.to_string() },
    })?;
    let known = Settings::load_text(dir, env, before).map(|(_, warnings)| warnings).unwrap_or_default();
    let is_new = |warning: &ConfigWarning| {
        warning.kind == ConfigWarningKind::Suspicious && known.iter().all(|known| known.text != warning.text)
    };
    match warnings.into_iter().find(is_new) {
        Some(ConfigWarning { line, text, .. }) => Err(ConfigProblem { line, text }),
        None => Ok(()),
    }
}

/// Replaces the configuration and keeps the existing one as a backup.
pub(crate) fn replace_config(dir: &Path, text: &str) -> Result<(), CliError> {
    let path = dir.join(CONFIG_FILE);
    let failed = |name: &str, error: &io::Error| {
        CliError::new(CliExitCode::Failed, format!("could not write {}: {error}", dir.join(name).display()))
    };
    crow_files::create_private_dir(dir).map_err(|error| failed(CONFIG_FILE, &error))?;
    match fs::read_to_string(&path) {
        Ok(text_before) => write_atomically(dir, BACKUP_FILE, &text_before),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
    .map_err(|error| failed(BACKUP_FILE, &error))?;
    write_atomically(dir, CONFIG_FILE, text).map_err(|error| failed(CONFIG_FILE, &error))
}

/// Replaces a file with one that only its owner can read.
pub(crate) fn write_atomically(dir: &Path, name: &str, text: &str) -> io::Result<()> {
    let mut file = tempfile::NamedTempFile::new_in(dir)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(dir.join(name))?;
    Ok(())
}

/// Lets the user edit a copy, which replaces the configuration once it is valid.
fn edit(dir: &Path, env: &Environment) -> Result<(), CliError> {
    if !io::stdin().is_terminal() {
        let message = "an editor needs a terminal";
        return Err(CliError::new(CliExitCode::Usage, message)
            .with_hint("`crow-cli config path` prints the path of the file"));
    }
    let failed = |error: &dyn std::fmt::Display| {
        CliError::new(CliExitCode::Failed, format!("could not edit: {error}"))
    };
    let variable = |name: &str| env.get(name).filter(|value| !value.is_empty());
    let editor = variable("VISUAL").or(variable("EDITOR")).map_or(DEFAULT_EDITOR, String::as_str);
    let before = settings::read_config_text(dir)?;
    crow_files::create_private_dir(dir).map_err(|error| failed(&error))?;
    let copy = tempfile::Builder::new().prefix("config-").suffix(".yaml").tempfile_in(dir);
    let copy = copy.map_err(|error| failed(&error))?;
    fs::write(copy.path(), &before).map_err(|error| failed(&error))?;
    loop {
        let stop = crow_process::wait_for_stop_signal();
        let editing = crow_process::run_in_foreground(editor, copy.path(), dir, stop);
        if !agent::tokio_runtime()?.block_on(editing).map_err(|error| failed(&error))? {
            return Err(failed(&format!("{editor} failed; nothing is changed")));
        }
        let text = fs::read_to_string(copy.path()).map_err(|error| failed(&error))?;
        if text == before {
            writeln!(io::stderr(), "nothing is changed")?;
            return Ok(());
        }
        match check_text(dir, env, &before, &text) {
            Ok(()) => return replace_config(dir, &text),
            Err(ConfigProblem { line, text }) => writeln!(io::stderr(), "line {line}: {text}")?,
        }
        if ask_confirmation("Edit it again? Otherwise the changes are lost.")? != ConfirmAnswer::Yes {
            return Err(CliError::new(CliExitCode::Failed, "the configuration is not changed"));
        }
    }
}

/// Hides text that may be a secret; the name of a variable is none.
fn hide_secrets(value: &mut Value, is_secret: bool) {
    match value {
        Value::String(text) if is_secret => *text = hide_text(text),
        Value::String(text) => *text = hide_in_words(text),
        Value::Array(items) => {
            let mut follows_option = false;
            for item in items {
                let option = item.as_str().filter(|word| word.starts_with('-')).map(str::to_owned);
                hide_secrets(item, is_secret || (follows_option && option.is_none()));
                follows_option = option.is_some_and(|option| is_secret_name(&option));
            }
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                hide_secrets(value, is_secret || is_secret_name(key));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether a key, an option or a variable has a secret as its value.
fn is_secret_name(name: &str) -> bool {
    let name = name.trim_start_matches('-');
    SECRET_KEYS.contains(&name) || is_secret_value(name, "")
}

/// Hides secrets in a text such as a command: those of addresses, and the values of options and variables.
fn hide_in_words(text: &str) -> String {
    let mut follows_option = false;
    let words = text.split(' ').map(|word| {
        let is_option = word.starts_with('-');
        let is_secret = follows_option && !is_option;
        follows_option = is_option && is_secret_name(word);
        if is_secret { hide_text(word) } else { hide_in_word(word) }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn hide_in_word(word: &str) -> String {
    match word.split_once('=') {
        Some((name, value)) if !name.contains("://") && is_secret_name(name) => {
            format!("{name}={}", hide_text(value))
        }
        Some(_) | None => {
            // A list of NATS servers has several addresses in one word.
            let mut parts = word.split("://");
            let scheme = parts.next().unwrap_or_default().to_owned();
            parts.fold(scheme, |text, rest| format!("{text}://{}", hide_in_address(rest)))
        }
    }
}

/// Hides the name, the password and the query of an address, which is given without its scheme.
fn hide_in_address(rest: &str) -> String {
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let authority = match authority.rsplit_once('@') {
        Some((user, host)) => format!("{}@{host}", hide_text(user)),
        None => authority.to_owned(),
    };
    let Some((path, query)) = path.split_once('?') else { return format!("{authority}{path}") };
    let fields = query.split('&').map(|field| match field.split_once('=') {
        Some((name, value)) => format!("{name}={}", hide_text(value)),
        None => hide_text(field),
    });
    format!("{authority}{path}?{}", fields.collect::<Vec<_>>().join("&"))
}

fn hide_text(text: &str) -> String {
    if is_variable_only(text) { text.to_owned() } else { HIDDEN.to_owned() }
}

fn is_variable_only(text: &str) -> bool {
    text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')).is_some_and(|name| !name.contains('$'))
}
