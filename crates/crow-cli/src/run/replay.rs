//! Replays earlier messages when a session is continued.

use std::{
    collections::VecDeque,
    io::{self, IsTerminal as _},
};

use crow_acp::{AgentUpdate, ClientEvent};

use super::output::RunOutput;
use crate::cli::{ReplaySpan, RunArgs};

impl ReplaySpan {
    /// Returns the default: a user needs the context, a script does not.
    fn default_for(is_json: bool, is_terminal: bool) -> Self {
        if is_terminal && !is_json { Self::Last(1) } else { Self::NONE }
    }
}

impl RunArgs {
    /// Returns the part of the session to replay.
    pub(super) fn replay_span(&self) -> ReplaySpan {
        if self.session.is_none() {
            return ReplaySpan::NONE;
        }
        self.replay.unwrap_or_else(|| ReplaySpan::default_for(self.json, io::stdout().is_terminal()))
    }
}

/// An update and the ID of its message.
type Event = (Option<String>, AgentUpdate);

/// Collects replayed updates, as many as requested.
#[derive(Debug)]
pub(super) struct ReplayBuffer {
    span: ReplaySpan,
    /// One prompt each, with what followed.
    exchanges: VecDeque<Vec<Event>>,
    n_omitted: usize,
}

impl ReplayBuffer {
    pub(super) fn new(span: ReplaySpan) -> Self {
        Self { span, exchanges: VecDeque::new(), n_omitted: 0 }
    }

    pub(super) fn push(&mut self, event: ClientEvent) {
        match event {
            ClientEvent::Update {
                message,
                update:
                    update @ (AgentUpdate::Prompt(_)
                    | AgentUpdate::Text(_)
                    | AgentUpdate::Thought(_)
                    | AgentUpdate::Call { .. }
                    | AgentUpdate::Plan(_)),
                ..
            } => self.record((message, update)),
            ClientEvent::Update { .. }
            | ClientEvent::RawUpdate { .. }
            | ClientEvent::Permission { .. }
            | ClientEvent::Form { .. }
            | ClientEvent::AccessRequest(_)
            | ClientEvent::Claim { .. }
            | ClientEvent::Release { .. } => {}
        }
    }

    fn record(&mut self, event: Event) {
        if self.span == ReplaySpan::NONE {
            return;
        }
        let is_prompt = matches!(event.1, AgentUpdate::Prompt(_));
        let last = self.exchanges.back().and_then(|exchange| exchange.last());
        // A prompt may have several parts.
        let is_continued = last.is_some_and(|(_, last)| matches!(last, AgentUpdate::Prompt(_)) || !is_prompt);
        match self.exchanges.back_mut().filter(|_| is_continued) {
            Some(exchange) => exchange.push(event),
            None => self.exchanges.push_back(vec![event]),
        }
        if let ReplaySpan::Last(n_exchanges) = self.span
            && self.exchanges.len() > n_exchanges
        {
            self.exchanges.pop_front();
            self.n_omitted += 1;
        }
    }

    /// Sends the collected updates to an output.
    pub(super) fn replay_to(self, output: &mut dyn RunOutput) -> io::Result<()> {
        if self.exchanges.is_empty() {
            return Ok(());
        }
        output.on_replay_start(self.n_omitted)?;
        let mut last = None;
        for (message, update) in self.exchanges.into_iter().flatten() {
            if message.is_some() && message != last {
                output.on_new_message()?;
                last = message;
            }
            output.on_update(update)?;
        }
        output.on_replay_end()
    }
}

#[cfg(test)]
mod tests {
    use crow_core::SessionId;
    use expect_test::{Expect, expect};

    use super::*;
    use crate::run::json::{JsonEventFilter, JsonLines};

    /// Replays `p` prompts, `t` texts and other updates, and compares the JSON lines.
    #[track_caller]
    fn check(span: &str, events: &[&str], expected: &Expect) {
        let mut replay = ReplayBuffer::new(span.parse().unwrap());
        for event in events {
            let update = match event.split_at(1) {
                ("p", text) => AgentUpdate::Prompt(text.to_owned()),
                ("t", text) => AgentUpdate::Text(text.to_owned()),
                (_, text) => AgentUpdate::Title(text.to_owned()),
            };
            replay.push(ClientEvent::Update { session: SessionId::new("s"), message: None, update });
        }
        let mut written = Vec::new();
        replay
            .replay_to(&mut JsonLines::new(&mut written, JsonEventFilter::Events, std::sync::Arc::default()))
            .unwrap();
        expected.assert_eq(&String::from_utf8(written).unwrap());
    }

    const EVENTS: [&str; 8] = ["pone", "tOne.", "ptwo", "tTwo", "t.", "-title", "pthree", "p and four"];

    #[test]
    fn last_prompts_are_replayed_with_their_replies() {
        check("none", &EVENTS, &expect![[""]]);
        check(
            "1",
            &EVENTS,
            &expect![[r#"
            {"type":"prompt","text":"three","replay":true}
            {"type":"prompt","text":" and four","replay":true}
        "#]],
        );
        check(
            "2",
            &EVENTS,
            &expect![[r#"
            {"type":"prompt","text":"two","replay":true}
            {"type":"message","text":"Two","replay":true}
            {"type":"message","text":".","replay":true}
            {"type":"prompt","text":"three","replay":true}
            {"type":"prompt","text":" and four","replay":true}
        "#]],
        );
        check(
            "all",
            &EVENTS,
            &expect![[r#"
            {"type":"prompt","text":"one","replay":true}
            {"type":"message","text":"One.","replay":true}
            {"type":"prompt","text":"two","replay":true}
            {"type":"message","text":"Two","replay":true}
            {"type":"message","text":".","replay":true}
            {"type":"prompt","text":"three","replay":true}
            {"type":"prompt","text":" and four","replay":true}
        "#]],
        );
        check("all", &[], &expect![[""]]);
    }

    #[test]
    fn default_is_one_exchange_on_a_terminal_and_none_for_scripts() {
        let usual = [(false, true), (false, false), (true, true)]
            .map(|(is_json, is_terminal)| ReplaySpan::default_for(is_json, is_terminal));
        assert_eq!(usual, [ReplaySpan::Last(1), ReplaySpan::NONE, ReplaySpan::NONE]);
        assert_eq!("some".parse::<ReplaySpan>(), Err("expected all, none or a number"));
    }
}
