//! Answers to permission requests: a fixed choice or a callback. Options are found by their kind, never by position.

use std::fmt;
use std::sync::Arc;

use crow_acp::{AgentPermissionRequest, PermissionAnswer, PermissionOption, PermissionSubject};
use futures_util::future::BoxFuture;

/// An answer to a permission request, by the kind of its option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PermissionChoice {
    /// Allows this call only.
    AllowOnce,
    /// Allows it from now on, as far as the agent offers that; else once.
    AllowAlways,
    /// Rejects this call, if possible this call only.
    #[default]
    RejectOnce,
    /// Rejects it from now on, as far as the agent offers that; else once.
    RejectAlways,
}

type PermissionCallback =
    dyn Fn(AgentPermissionRequest) -> BoxFuture<'static, PermissionChoice> + Send + Sync;

/// The source of the answers.
#[derive(Clone)]
pub(crate) enum PermissionHandler {
    Fixed(PermissionChoice),
    Callback(Arc<PermissionCallback>),
}

impl fmt::Debug for PermissionHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(choice) => f.debug_tuple("Fixed").field(choice).finish(),
            Self::Callback(_) => f.write_str("Callback"),
        }
    }
}

impl PermissionHandler {
    /// Answers a request; `None` if no option fits, which the agent receives as for a cancelled turn.
    pub(crate) async fn decide(&self, request: AgentPermissionRequest) -> Option<PermissionAnswer> {
        let choice = match self {
            // A model that repeats itself must not run on because no user looks.
            Self::Fixed(_) if request.subject == PermissionSubject::Continue => PermissionChoice::RejectOnce,
            Self::Fixed(choice) => *choice,
            Self::Callback(callback) => callback(request.clone()).await,
        };
        find_answer(&request, choice)
    }
}

/// Finds the option of a choice. Two options with one ID are ambiguous: neither is chosen.
fn find_answer(request: &AgentPermissionRequest, choice: PermissionChoice) -> Option<PermissionAnswer> {
    let find = |allows: bool, always: bool| {
        request.options.iter().find(|option| option.allows == allows && option.always == always)
    };
    let option: &PermissionOption = match choice {
        PermissionChoice::AllowOnce => find(true, false),
        PermissionChoice::AllowAlways => find(true, true).or_else(|| find(true, false)),
        PermissionChoice::RejectOnce => find(false, false).or_else(|| find(false, true)),
        PermissionChoice::RejectAlways => find(false, true).or_else(|| find(false, false)),
    }?;
    let is_unique = request.options.iter().filter(|other| other.id == option.id).count() == 1;
    is_unique.then(|| PermissionAnswer::Selected(option.id.clone()))
}

#[cfg(test)]
mod tests;
