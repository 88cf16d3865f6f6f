//! What the bundled `git` extension does, as commands that Crow runs in the model's place: judged, shown and stored like any
//! other, and no model has to be asked for them.

use crow_core::{Arguments, Call, CallId, Ended, Entry, Failure, MessageId, Reply, Status};
use crow_speckit::{
    BranchFacts, BranchNumber, BranchNumbering, BranchWish, CommitStyle, Feature, GitConfig, Hook,
    SpeckitError, branch, branches, exact_branch, features, is_repository,
};
use serde_json::Map;

use crate::calls::run_calls;
use crate::clock;
use crate::run_turn::{Conversation, TurnCx};
use crate::speckit::hooking::Moment;

const INITIALIZE: &str = "speckit.git.initialize";
const FEATURE: &str = "speckit.git.feature";
pub(super) const COMMIT: &str = "speckit.git.commit";

/// How Crow does what a hook asks.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By these commands, one after the other.
    Commands(Vec<String>),
    /// There is nothing to do.
    Nothing,
    /// By the model.
    Model,
}

/// Finds the commands for a hook. Blocks.
pub(super) fn way(moment: &Moment<'_>, hook: &Hook) -> Result<Way, SpeckitError> {
    let (project, is_there) = (&moment.ground.project, is_repository(moment.ground.project.root()));
    if ![INITIALIZE, FEATURE, COMMIT].contains(&hook.command.as_str()) {
        return Ok(Way::Model);
    }
    let config = GitConfig::read(project)?;
    Ok(match hook.command.as_str() {
        INITIALIZE if is_there => Way::Nothing,
        INITIALIZE => Way::Commands(vec![
            "git init --quiet".to_owned(),
            "git add .".to_owned(),
            format!("git commit --quiet --message {}", quoted(&config.init_commit_message)),
        ]),
        FEATURE if !is_there => Way::Nothing,
        FEATURE => new_branch(moment, &config)?,
        _ => match config.commit_message(moment.when, moment.command) {
            Some(_) if is_there && config.commit_style == CommitStyle::Conventional => Way::Model,
            Some(message) if is_there => Way::Commands(vec![
                "git add .".to_owned(),
                // Where nothing changed there is nothing to commit.
                format!("git diff --cached --quiet || git commit --quiet --message {}", quoted(&message)),
            ]),
            Some(_) | None => Way::Nothing,
        },
    })
}

fn new_branch(moment: &Moment<'_>, config: &GitConfig) -> Result<Way, SpeckitError> {
    let Some(asked) = moment.asked else { return Ok(Way::Model) };
    // Whose name stands in it only git can tell.
    if config.branch_template.contains("{author}") {
        return Ok(Way::Model);
    }
    let (project, naming) = (&moment.ground.project, &asked.naming);
    let named = match &naming.branch {
        Some(name) => exact_branch(name)?,
        None => {
            let directories: Vec<String> = features(project, &moment.ground.settings.specs_root)?
                .into_iter()
                .map(|Feature { name, .. }| name)
                .collect();
            let known = branches(project.root());
            let app = project.root().file_name().map(|name| name.display().to_string()).unwrap_or_default();
            let facts = BranchFacts { directories: &directories, branches: &known, author: "", app: &app };
            let stamp = clock::local().strftime("%Y%m%d-%H%M%S").to_string();
            let is_timed = naming.timestamp || config.numbering == BranchNumbering::Timestamp;
            let number = match (is_timed, naming.number) {
                (true, _) => BranchNumber::Timestamp(&stamp),
                (false, Some(number)) => BranchNumber::Given(number),
                (false, None) => BranchNumber::Next,
            };
            let short_name = naming.short_name.as_deref();
            branch(config, &facts, &BranchWish { number, short_name, description: &asked.text })?
        }
    };
    Ok(Way::Commands(vec![format!("git checkout --quiet -b {}", quoted(&named.name))]))
}

/// Spells a word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Runs a command as a call that the model might have made; tells whether it was done.
pub(super) async fn run(cx: &TurnCx<'_>, talk: &mut Conversation, line: String) -> Result<bool, Failure> {
    let seq = talk.transcript.next_seq();
    let call = Call {
        id: CallId::at(seq, 0),
        provider_id: format!("crow_{seq}"),
        name: "terminal".to_owned(),
        arguments: Arguments::Valid(Map::from_iter([("command".to_owned(), line.into())])),
    };
    let reply = Reply {
        id: MessageId::at(seq),
        thought: String::new(),
        text: String::new(),
        calls: vec![call.clone()],
        ended: Ended::Normally,
        usage: None,
    };
    cx.append(talk, Entry::Reply(reply)).await?;
    run_calls(cx, &cx.tools().tools, &[call], talk).await?;
    let is_done =
        |entry: &Entry| matches!(entry, Entry::Result { outcome, .. } if outcome.status == Status::Done);
    Ok(talk.transcript.entries().last().is_some_and(is_done))
}
