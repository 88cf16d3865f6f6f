//! What bundled extensions do, as calls that Crow makes in the model's place: judged, shown and stored like any other, and no
//! model has to be asked for them.

use std::path::Path;

use crate::calls::run_calls;
use crate::clock;
use crate::run_turn::{Conversation, TurnCx};
use crate::speckit::hooking::{Moment, approved_text};
use crate::supplies::Approved;
use crow_core::{Arguments, Call, CallId, Ended, Entry, Failure, MessageId, Reply, Status};
use crow_speckit::{
    BranchFacts, BranchNumber, BranchNumbering, BranchWish, CommitStyle, Feature, GitConfig, Hook,
    SpeckitError, branch, branches, exact_branch, features, is_repository,
};

const INITIALIZE: &str = "speckit.git.initialize";
const FEATURE: &str = "speckit.git.feature";
pub(super) const COMMIT: &str = "speckit.git.commit";

/// How Crow does what a hook asks.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By these calls, one after the other.
    Calls(Vec<OwnCall>),
    /// There is nothing to do.
    Nothing,
    /// By the model.
    Model,
}

/// A call that Crow makes in the model's place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OwnCall {
    tool: &'static str,
    arguments: Vec<(&'static str, String)>,
}

impl OwnCall {
    /// Writes a file.
    pub(super) fn write(path: &Path, text: String) -> Self {
        Self { tool: "write", arguments: vec![("file_path", path.display().to_string()), ("content", text)] }
    }

    fn command(line: String) -> Self {
        Self { tool: "terminal", arguments: vec![("command", line)] }
    }
}

/// Finds the commands for a hook. Blocks.
pub(super) fn way(moment: &Moment<'_>, hook: &Hook, approved: &Approved) -> Result<Way, SpeckitError> {
    let project = &moment.ground.project;
    let (is_there, git) = (is_repository(project.root()), git_in(moment));
    if ![INITIALIZE, FEATURE, COMMIT].contains(&hook.command.as_str()) {
        return Ok(Way::Model);
    }
    // Without the file there are the usual settings.
    let settings = approved_text(project, approved, &GitConfig::file(project))?.unwrap_or_default();
    let config = GitConfig::parse(&settings)?;
    Ok(match hook.command.as_str() {
        INITIALIZE if is_there => Way::Nothing,
        INITIALIZE => commands([
            format!("{git} init --quiet"),
            format!("{git} add ."),
            format!("{git} commit --quiet --message {}", quoted(&config.init_commit_message)),
        ]),
        FEATURE if !is_there => Way::Nothing,
        FEATURE => new_branch(moment, &config)?,
        _ => match config.commit_message(moment.when, moment.command) {
            Some(_) if is_there && config.commit_style == CommitStyle::Conventional => Way::Model,
            Some(message) if is_there => commands([
                format!("{git} add ."),
                // Where nothing changed there is nothing to commit.
                format!("{git} diff --cached --quiet || {git} commit --quiet --message {}", quoted(&message)),
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
    Ok(commands([format!("{} checkout --quiet -b {}", git_in(moment), quoted(&named.name))]))
}

fn commands<const N: usize>(lines: [String; N]) -> Way {
    Way::Calls(lines.map(OwnCall::command).into())
}

/// How git is called from the session's folder for the project.
fn git_in(moment: &Moment<'_>) -> String {
    let root = moment.ground.project.root();
    match root == moment.ground.cwd {
        true => "git".to_owned(),
        false => format!("git -C {}", quoted(&root.display().to_string())),
    }
}

/// Spells a word for a shell.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Runs a call as one that the model might have made; tells whether it was done.
pub(super) async fn run(cx: &TurnCx<'_>, talk: &mut Conversation, own: OwnCall) -> Result<bool, Failure> {
    let seq = talk.transcript.next_seq();
    let call = Call {
        id: CallId::at(seq, 0),
        provider_id: format!("crow_{seq}"),
        name: own.tool.to_owned(),
        arguments: Arguments::Valid(
            own.arguments.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect(),
        ),
    };
    let reply = Reply {
        id: MessageId::at(seq),
        thought: String::new(),
        text: String::new(),
        calls: vec![call.clone()],
        ended: Ended::Normally,
        usage: None,
        sealed: None,
        answered_by: None,
    };
    cx.append(talk, Entry::Reply(reply)).await?;
    run_calls(cx, &cx.tools().tools, &[call], talk).await?;
    let is_done =
        |entry: &Entry| matches!(entry, Entry::Result { outcome, .. } if outcome.status == Status::Done);
    Ok(talk.transcript.entries().last().is_some_and(is_done))
}
