//! A request of an MCP server to the session's model (sampling), and its result. Pure.

use std::fmt::Write as _;

use crate::replace_control_chars;

/// A request to the model. Its texts are those of a server, so untrusted.
#[derive(Debug, Clone, PartialEq)]
pub struct SamplingRequest {
    /// The server's name in the configuration.
    pub server: String,
    pub system: String,
    /// The texts of user and assistant in turn; the first and the last are the user's.
    pub messages: Vec<String>,
    /// Maximum tokens of the reply.
    pub tokens_max: u64,
    pub temperature: Option<f64>,
    /// Texts at which the reply ends; the provider does not know them.
    pub stop_sequences: Vec<String>,
}

/// A message of a conversation that a server wants continued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamplingTurn {
    pub is_user: bool,
    pub text: String,
}

/// The result of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SamplingReply {
    /// The provider's name of the model.
    pub model: String,
    pub text: String,
    pub end: SamplingEnd,
}

/// Reason why a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SamplingEnd {
    Complete,
    TokensMax,
    StopSequence,
}

/// Joins messages of one role, so that user and assistant take turns. The error is a clause that says why the model
/// cannot continue.
pub fn alternate_messages(turns: Vec<SamplingTurn>) -> Result<Vec<String>, &'static str> {
    let mut messages: Vec<String> = Vec::new();
    for SamplingTurn { is_user, text } in turns {
        if text.trim().is_empty() {
            continue;
        }
        // The user's messages have even positions.
        let is_next = is_user == messages.len().is_multiple_of(2);
        match messages.last_mut() {
            None if !is_user => return Err("its first message is not the user's"),
            Some(last) if !is_next => {
                last.push_str("\n\n");
                last.push_str(&text);
            }
            Some(_) | None => messages.push(text),
        }
    }
    if messages.len() % 2 == 1 { Ok(messages) } else { Err("its last message is not the user's") }
}

impl SamplingRequest {
    /// Renders the whole request for the user who approves it.
    pub fn description(&self) -> String {
        let mut text = String::new();
        if !self.system.is_empty() {
            let _ = writeln!(text, "System: {}\n", self.system);
        }
        for (index, message) in self.messages.iter().enumerate() {
            let role = if index % 2 == 0 { "User" } else { "Assistant" };
            let _ = writeln!(text, "{role}: {message}\n");
        }
        let _ = write!(text, "At most {} tokens of reply.", self.tokens_max);
        replace_control_chars(&text)
    }

    /// Ends a reply at the first stop sequence in it; returns whether there is one.
    pub fn truncate_at_stop(&self, text: &mut String) -> bool {
        let stops = self.stop_sequences.iter().filter(|stop| !stop.is_empty());
        match stops.filter_map(|stop| text.find(stop.as_str())).min() {
            Some(position) => {
                text.truncate(position);
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    /// Joins messages such as `u hello`, `a yes`.
    #[track_caller]
    fn check(turns: &[&str], expected: &Expect) {
        let turns = turns.iter().map(|turn| {
            let (role, text) = turn.split_once(' ').expect("role and text");
            SamplingTurn { is_user: role == "u", text: text.to_owned() }
        });
        expected.assert_eq(&format!("{:?}", alternate_messages(turns.collect())));
    }

    #[test]
    fn messages_of_one_role_are_joined() {
        check(&["u one"], &expect![[r#"Ok(["one"])"#]]);
        check(
            &["u one", "u two", "a three", "a four", "u five"],
            &expect![[r#"Ok(["one\n\ntwo", "three\n\nfour", "five"])"#]],
        );
        check(&["u one", "a  ", "u two"], &expect![[r#"Ok(["one\n\ntwo"])"#]]);
        check(&["a one", "u two"], &expect![[r#"Err("its first message is not the user's")"#]]);
        check(&["u one", "a two"], &expect![[r#"Err("its last message is not the user's")"#]]);
        check(&["u  "], &expect![[r#"Err("its last message is not the user's")"#]]);
        check(&[], &expect![[r#"Err("its last message is not the user's")"#]]);
    }

    fn request() -> SamplingRequest {
        SamplingRequest {
            server: "box".to_owned(),
            system: "Be brief.\u{1b}[31m".to_owned(),
            messages: vec!["One?".to_owned(), "Two.".to_owned(), "Three?".to_owned()],
            tokens_max: 10,
            temperature: None,
            stop_sequences: vec![String::new(), "END".to_owned(), "stop".to_owned()],
        }
    }

    #[test]
    fn description_is_the_whole_request() {
        expect![[r#"
            System: Be brief.�[31m

            User: One?

            Assistant: Two.

            User: Three?

            At most 10 tokens of reply."#]]
        .assert_eq(&request().description());
    }

    #[test]
    fn reply_ends_at_the_first_stop_sequence() {
        for (reply, expected) in [("a stop b END", "a "), ("a", "a"), ("END", "")] {
            let mut text = reply.to_owned();
            assert_eq!(request().truncate_at_stop(&mut text), reply != expected);
            assert_eq!(text, expected);
        }
    }
}
