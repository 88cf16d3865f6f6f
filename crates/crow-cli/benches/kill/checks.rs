//! The rules that must hold after a kill.

use crow_testkit::client::{FakeClient, RpcResult};
use crow_testkit::{ModelServer, ShownContent, replay};

/// The rule that was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ViolationKind {
    /// Something that was shown is not in the history.
    Lost,
    /// A model rejects the history.
    Invalid,
    /// A replay differs from what was shown.
    Replay,
    /// A session or an agent does not go on.
    Stuck,
    /// A process is left.
    Left,
    /// A database is damaged.
    Damaged,
}

impl ViolationKind {
    pub(crate) const ALL: [Self; 6] =
        [Self::Lost, Self::Invalid, Self::Replay, Self::Stuck, Self::Left, Self::Damaged];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lost => "lost",
            Self::Invalid => "invalid_histories",
            Self::Replay => "replay_differs",
            Self::Stuck => "stuck",
            Self::Left => "processes_left",
            Self::Damaged => "damaged",
        }
    }
}

/// A broken rule, with what was seen.
#[derive(Debug, Clone)]
pub(crate) struct Violation {
    pub(crate) kind: ViolationKind,
    pub(crate) text: String,
}

impl Violation {
    pub(crate) fn new(kind: ViolationKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }
}

/// Returns what a client was shown of a session.
pub(crate) fn shown_content(client: &FakeClient, session: &str) -> ShownContent {
    let updates = client.updates.iter().filter(|(other_session, _)| other_session == session);
    ShownContent::from_updates(updates.map(|(_, update)| update))
}

/// Checks that a loaded session begins with what was shown of it, and that nothing in it runs.
pub(crate) fn check_loaded(shown: &ShownContent, loaded: &ShownContent) -> Vec<Violation> {
    let mut violations: Vec<_> =
        shown.missing_in(loaded).into_iter().map(|text| Violation::new(ViolationKind::Lost, text)).collect();
    if let Some(text) = shown.order_changed_in(loaded) {
        violations.push(Violation::new(ViolationKind::Replay, text));
    }
    if !loaded.open_calls().is_empty() {
        let text = format!("calls are loaded as running: {:?}", loaded.open_calls());
        violations.push(Violation::new(ViolationKind::Stuck, text));
    }
    violations
}

/// Checks that a client receives what an earlier one received.
pub(crate) fn check_replay(session: &str, live: &FakeClient, loaded: &FakeClient) -> Option<Violation> {
    replay::difference(session, live, loaded).map(|text| Violation::new(ViolationKind::Replay, text))
}

/// Checks that a turn has come to its end.
pub(crate) fn check_turn_end(moment: &str, ended: &RpcResult) -> Option<Violation> {
    let is_end = ended.as_ref().is_ok_and(|result| result["stopReason"] == "end_turn");
    (!is_end).then(|| Violation::new(ViolationKind::Stuck, format!("{moment}: {ended:?}")))
}

/// Checks that the model has rejected no request.
pub(crate) fn check_requests(model: &ModelServer) -> Vec<Violation> {
    let rejections = model.rejections().into_iter();
    rejections.map(|text| Violation::new(ViolationKind::Invalid, text)).collect()
}
