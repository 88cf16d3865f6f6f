//! Renders the answer of `/sessions`.

use std::path::Path;

use crow_core::{SessionId, to_sentence};
use crow_store::{CreatorFilter, ListQuery, Store};

use crate::time_text;

/// A screenful; `crow-cli sessions list` shows more.
const SESSIONS_MAX: u32 = 10;

/// Lists the newest sessions in a directory, for one of them.
pub async fn render_sessions(store: &Store, cwd: &Path, current: &SessionId) -> String {
    let cwd = Some(cwd.display().to_string());
    let rows = match store
        .list_sessions(ListQuery { cwd, creator: CreatorFilter::User, before: None, limit: SESSIONS_MAX })
        .await
    {
        Ok(rows) => rows,
        Err(error) => return format!("{}\n", to_sentence(&error.to_string())),
    };
    if rows.is_empty() {
        return "No sessions in this directory yet.\n".into();
    }
    let lines = rows.iter().map(|row| {
        let marker = if row.id == *current { " (this one)" } else { "" };
        let title = row.title.as_deref().unwrap_or("no title");
        format!("- `{}`{marker}, {} UTC: {title}\n", row.id, time_text::format_minute(row.updated))
    });
    let lines: String = lines.collect();
    format!("{lines}\nContinue one with `crow-cli run -s ID`, or open it in your editor.\n")
}
