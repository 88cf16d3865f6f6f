//! `crow-cli report`: what an issue about Crow needs, as Markdown that the user can read before sending it. Without keys,
//! prompts, replies or contents of files. Only reads.

#[cfg(test)]
mod tests;

use std::{
    fmt::Write as _,
    io::{Read as _, Seek as _, SeekFrom, Write},
    path::{Path, PathBuf},
};

use crow_core::{ContentPart, NetworkAccess, ReplyEnd, SessionId, ToolCallStatus, TranscriptEntry};
use crow_store::{DatabaseAddress, MessageRange, StoredMessage};
use crow_tools::TerminalPreference;

use crate::{
    cli::{DoctorArgs, ReportArgs},
    database::store_options,
    doctor,
    failure::{CliError, CliExitCode},
    inspect, log,
    settings::{Environment, Settings},
    table,
};

/// The end of the log in a report: some hundred lines, which a reader can still check.
const LOG_BYTES_MAX: u64 = 32 * 1024;

/// Messages of a session that are described, from the end.
const MESSAGES_MAX: u32 = 500;

/// Writes the report.
pub(crate) async fn run(
    args: &ReportArgs,
    dir: &Path,
    env: &Environment,
    cwd: PathBuf,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let mut text = "# Crow report\n\nRead it before you send it. It has no keys, prompts, replies or contents of files, but \
                    names of models, servers and directories.\n"
        .to_owned();
    write_program_section(&mut text);
    if !args.offline {
        let mut checks = Vec::new();
        // What is wrong is in the lines of the checks; here the exit code says nothing more.
        if let Err(error) =
            doctor::run(&DoctorArgs { salvage: false, json: false }, dir, env, cwd, &mut checks).await
        {
            let _ = error.report(&mut checks);
        }
        write_section(&mut text, "Checks", &String::from_utf8_lossy(&checks));
    }
    let settings = Settings::load(dir, env).map(|(settings, _)| settings);
    match &settings {
        Ok(settings) => write_section(&mut text, "Settings", &describe_settings(settings)),
        Err(error) => write_section(&mut text, "Settings", &error.to_string()),
    }
    if let Some(id) = &args.session {
        let database = settings
            .as_ref()
            .map(|settings| &settings.database)
            .map_err(|error| CliError::new(CliExitCode::Config, error.to_string()))?;
        write_section(&mut text, "Session", &describe_session(&SessionId::new(id.as_str()), database).await?);
    }
    write_section(&mut text, "Log", &read_log_end(&log::default_log_file(dir)));
    let providers = settings.iter().flat_map(|settings| &settings.models).map(|model| &model.provider);
    let text = crow_model::redact_provider_secrets(&text, providers);
    let home = settings.as_ref().ok().and_then(|settings| settings.home.as_deref());
    out.write_all(hide_home(&table::sanitize_text(&text), home).as_bytes())?;
    Ok(())
}

fn write_program_section(text: &mut String) {
    let (version, system, machine) =
        (env!("CARGO_PKG_VERSION"), std::env::consts::OS, std::env::consts::ARCH);
    let library = if cfg!(target_env = "musl") { "musl" } else { "gnu" };
    let build = if cfg!(debug_assertions) { "debug" } else { "release" };
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let body = format!("crow-cli {version} ({build})\n{system} {machine} {library} {}", kernel.trim());
    write_section(text, "Program", &body);
}

/// Adds a section whose body is shown as it is: no line of it can end the fence.
fn write_section(text: &mut String, title: &str, body: &str) {
    let fence = crow_core::code_fence(body);
    // Writing to a string cannot fail.
    let _ = write!(text, "\n## {title}\n\n{fence}text\n{}\n{fence}\n", body.trim_end());
}

fn describe_settings(settings: &Settings) -> String {
    let mut lines = vec![
        format!(
            "mode {}, sandbox {}, network {}",
            settings.mode.as_str(),
            settings.sandbox.as_str(),
            match settings.network {
                NetworkAccess::Allowed => "allowed",
                NetworkAccess::Denied => "denied",
            }
        ),
        format!(
            "terminals {}, shell {}",
            match settings.terminals {
                TerminalPreference::ClientFirst => "of the client if it has some",
                TerminalPreference::ClientOnly => "of the client only",
                TerminalPreference::Local => "of Crow",
                TerminalPreference::Never => "off",
            },
            settings.shell.name()
        ),
        format!(
            "{} MCP servers, {} agents, {} allow rules, {} deny rules",
            settings.mcp_servers.len(),
            settings.agent_servers.len(),
            settings.rules.allow.len(),
            settings.rules.deny.len()
        ),
    ];
    lines.extend(settings.models.iter().map(|model| {
        format!(
            "model {}: {} by {}, window {}",
            model.name,
            model.model,
            model.provider.api.as_str(),
            model.context_window
        )
    }));
    lines.join("\n")
}

/// Describes the messages of a session without their text.
async fn describe_session(id: &SessionId, database: &DatabaseAddress) -> Result<String, CliError> {
    let Some(store) = store_options().open_existing(database).await? else {
        return Err(CliError::no_session(id.as_str()));
    };
    let Some(row) = store.session_tree(id).await?.into_iter().next() else {
        return Err(inspect::unknown_session_error(&store, id).await);
    };
    let from = row.n_messages.saturating_sub(u64::from(MESSAGES_MAX));
    let mut text = format!(
        "{} messages, model {}, mode {}, {}{}\n",
        row.n_messages,
        row.model,
        row.mode.as_str(),
        row.agent_type_name(),
        if row.parent.is_some() { ", a child" } else { "" },
    );
    let mut before = None;
    let mut range = MessageRange { from, limit: MESSAGES_MAX };
    while range.from < row.n_messages {
        let page = store.load_messages(id, range).await?;
        let Some(last) = page.last() else { break };
        range.from = last.seq + 1;
        for message in page {
            let seconds = before.map_or(0, |before| (message.created.0 - before) / 1000);
            before = Some(message.created.0);
            let _ = writeln!(text, "{:>5} {seconds:>6} s  {}", message.seq, describe_message(&message));
        }
    }
    Ok(text)
}

/// Describes a message by its kind, size and state.
fn describe_message(message: &StoredMessage) -> String {
    match &message.entry {
        TranscriptEntry::Prompt(prompt) => format!("prompt of {} parts", prompt.parts.len()),
        TranscriptEntry::Reply(reply) => {
            let calls: Vec<&str> = reply.calls.iter().map(|call| call.name.as_str()).collect();
            let usage = reply.usage.map_or_else(String::new, |usage| {
                format!(", {} tokens in ({} cached), {} out", usage.input, usage.cached, usage.output)
            });
            let (thought, text) = (reply.thought.len(), reply.text.len());
            let calls =
                if calls.is_empty() { String::new() } else { format!(", calls {}", calls.join(", ")) };
            format!(
                "reply of {thought} bytes of thought and {text} of text{calls}{usage}{}",
                describe_end(&reply.end)
            )
        }
        TranscriptEntry::Result { result, .. } => {
            let n_bytes: usize = result.for_model.iter().map(part_size).sum();
            let status = match result.status {
                ToolCallStatus::Completed => "completed",
                ToolCallStatus::Failed => "failed",
                ToolCallStatus::Pending | ToolCallStatus::InProgress => "unfinished",
            };
            format!("result {status}, {n_bytes} bytes")
        }
    }
}

/// Describes how a reply ended, unless the model finished. The sentence of a failure may quote the conversation.
fn describe_end(end: &ReplyEnd) -> String {
    match end {
        ReplyEnd::Complete => String::new(),
        ReplyEnd::OutputLimit => ", truncated at the output limit".to_owned(),
        ReplyEnd::SizeLimit => ", truncated at the size limit".to_owned(),
        ReplyEnd::Refused => ", withheld by the provider".to_owned(),
        ReplyEnd::Cancelled => ", cancelled".to_owned(),
        ReplyEnd::Failed(failure) => format!(", failed: {}", failure.kind.as_str()),
    }
}

/// Returns the bytes of a part's text or data.
fn part_size(part: &ContentPart) -> usize {
    match part {
        ContentPart::Text(text) | ContentPart::FromCrow { text, .. } | ContentPart::Resource { text, .. } => {
            text.len()
        }
        ContentPart::Image { data, .. } => data.len(),
        ContentPart::Link { uri, .. } => uri.len(),
    }
}

/// Reads the last whole lines of the log.
fn read_log_end(path: &Path) -> String {
    let read = || {
        let mut file = std::fs::File::open(path)?;
        let len = file.metadata()?.len();
        file.seek(SeekFrom::Start(len.saturating_sub(LOG_BYTES_MAX)))?;
        let mut bytes = Vec::new();
        file.take(LOG_BYTES_MAX).read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Ok::<_, std::io::Error>(match len > LOG_BYTES_MAX {
            true => text.split_once('\n').map_or_else(String::new, |(_, whole_lines)| whole_lines.to_owned()),
            false => text,
        })
    };
    read().unwrap_or_else(|error| format!("not read: {error}"))
}

/// Replaces the home directory, which has the user's name, by `~`.
fn hide_home(text: &str, home: Option<&Path>) -> String {
    match home.and_then(Path::to_str).filter(|home| home.len() > 1) {
        Some(home) => text.replace(home.trim_end_matches('/'), "~"),
        None => text.to_owned(),
    }
}
