//! The fake editor's log: updates as lines of text.

use serde_json::Value;

/// The number of characters of a result in the log.
const SHOWN_CHARS: usize = 160;

/// Joins the chunks of a message and sorts calls that end in any order.
pub(crate) fn render_log(lines_received: &[String]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in lines_received {
        let chunk_prefix = |line: &str| line.split_once("] ").map(|(head, _)| head.to_owned());
        let is_chunk = line.starts_with("< text[") || line.starts_with("< thought[");
        match lines.last_mut() {
            Some(last) if is_chunk && chunk_prefix(last) == chunk_prefix(line) => {
                last.push_str(line.split_once("] ").map_or("", |(_, text)| text));
            }
            _ => lines.push(line.clone()),
        }
    }
    // Parallel calls end in any order.
    let may_move = |line: &str| is_settled_call(line) || is_progress(line);
    for group in lines.chunk_by_mut(|a, b| may_move(a) && may_move(b)) {
        // News of one call may come between the ends of two others.
        group.sort_by(|a, b| match (is_progress(a), is_progress(b)) {
            (false, false) => a.cmp(b),
            (a, b) => a.cmp(&b),
        });
    }
    lines.join("\n") + "\n"
}

/// Renders an update; `None` if transcripts do not show it.
pub(crate) fn render_update(update: &Value) -> Option<String> {
    let text = |field: &str| update[field].as_str().unwrap_or_default();
    let line = match text("sessionUpdate") {
        "agent_message_chunk" => render_chunk("text", update),
        "agent_thought_chunk" => render_chunk("thought", update),
        "user_message_chunk" => render_chunk("prompt", update),
        "tool_call" => format!(
            "< call {} {} {:?} {} {}{}{}",
            text("toolCallId"),
            text("name"),
            text("title"),
            update["status"].as_str().unwrap_or("pending"),
            update["rawInput"],
            render_content(&update["content"]),
            render_terminal_meta(&update["_meta"]),
        ),
        "tool_call_update" => render_call_update(update),
        "plan" => {
            let entries = update["entries"].as_array().into_iter().flatten();
            let entries = entries.map(|entry| {
                let text = |field: &str| entry[field].as_str().unwrap_or_default();
                format!("{} {}", text("status"), text("content"))
            });
            format!("< plan {}", entries.collect::<Vec<_>>().join(", "))
        }
        // The modification time varies.
        "session_info_update" if update.get("title").is_none() => return None,
        // The modification time varies.
        "session_info_update" if update.get("title").is_none() => return None,
        "session_info_update" => format!("< title {}", text("title")),
        // The estimate depends on where the test runs.
        "usage_update" if update["_meta"]["crow"]["estimated"] == true => return None,
        "usage_update" => {
            let cost = &update["cost"];
            let cost = cost.as_object().map(|_| format!(" {} {}", cost["amount"], cost["currency"]));
            format!("< usage {}/{}{}", update["used"], update["size"], cost.unwrap_or_default())
        }
        "current_mode_update" => format!("< mode {}", text("currentModeId")),
        "notice" => format!("< notice {} {:?} {:?}", text("severity"), text("title"), text("description")),
        "compaction_update" => format!(
            "< compaction {} {}{}",
            text("status"),
            text("error"),
            render_content(&update["summary"]),
        )
        .trim_end()
        .to_owned(),
        "available_commands_update" => return None,
        other => format!("< {other}"),
    };
    Some(line)
}

fn render_chunk(name: &str, update: &Value) -> String {
    let text = update["content"]["text"].as_str().unwrap_or_default().replace('\n', "⏎");
    format!("< {name}[{}] {text}", update["messageId"].as_str().unwrap_or_default())
}

fn render_call_update(update: &Value) -> String {
    let text = |field: &str| update[field].as_str().unwrap_or_default();
    if let Some(data) = update["_meta"]["terminal_output"]["data"].as_str() {
        // Where the output of a running program is split is random.
        return format!("~ {} {data:?}", text("toolCallId"));
    }
    let items = update["content"].as_array().into_iter().flatten();
    let mut terminals = items.filter(|item| item["type"] == "terminal").peekable();
    if update["status"] == "in_progress" && update.get("content").is_some() && terminals.peek().is_none() {
        // How often a running program is polled is random.
        return format!("~ {}", render_content(&update["content"]));
    }
    format!(
        "< call {} {}{}{}",
        text("toolCallId"),
        text("status"),
        render_content(&update["content"]),
        render_terminal_meta(&update["_meta"]),
    )
}

/// Renders the start and the end of the agent's own terminal.
fn render_terminal_meta(meta: &Value) -> String {
    let info = &meta["terminal_info"];
    let mut line = match info["terminal_id"].as_str() {
        Some(id) => format!(" [terminal {id} in {}]", info["cwd"].as_str().unwrap_or_default()),
        None => String::new(),
    };
    if let Some(exit) = meta.get("terminal_exit") {
        line += &format!(" [exit {} {}]", exit["exit_code"], exit["signal"]);
    }
    line
}

/// Whether a line is about a running call; how many there are is random.
fn is_progress(line: &str) -> bool {
    line.starts_with("~ ")
}

fn is_settled_call(line: &str) -> bool {
    line.starts_with("< call ")
        && (line.contains(" completed") || line.contains(" failed"))
        && !line.contains('{')
}

fn render_content(content: &Value) -> String {
    let items = content.as_array().into_iter().flatten();
    let rendered = items.map(|item| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match item["type"].as_str() {
            Some("diff") => {
                format!(" diff {} {} -> {}", text(&item["path"]), item["oldText"], item["newText"])
            }
            Some("terminal") => format!(" terminal {}", text(&item["terminalId"])),
            Some("text") => {
                format!(" {:?}", text(&item["text"]).chars().take(SHOWN_CHARS).collect::<String>())
            }
            _ => {
                format!(" {:?}", text(&item["content"]["text"]).chars().take(SHOWN_CHARS).collect::<String>())
            }
        }
    });
    rendered.collect()
}
