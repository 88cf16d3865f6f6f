//! The parts of a message that decide its way.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// A longer ID is not used for routing; the longest in use are UUIDs with a prefix.
const ID_BYTES_MAX: usize = 1024;

/// The fields that identify a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct MessageHead {
    /// The ID as it is written, with the quotes of a string.
    pub(super) id: Option<String>,
    pub(super) method: Option<String>,
    /// The session of a request or notification.
    pub(super) session: Option<String>,
    /// The session in a result: a new one.
    pub(super) result_session: Option<String>,
}

/// The reason why a text is not one message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InvalidMessage {
    Batch,
    NotAnObject,
    Json,
}

#[derive(Deserialize)]
struct RoutingEnvelope<'m> {
    #[serde(borrow, default)]
    id: Option<&'m RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'m, str>>,
    #[serde(borrow, default)]
    params: Option<&'m RawValue>,
    #[serde(borrow, default)]
    result: Option<&'m RawValue>,
}

#[derive(Deserialize)]
struct SessionReference<'m> {
    #[serde(borrow, rename = "sessionId")]
    session: Cow<'m, str>,
}

impl MessageHead {
    pub(super) fn parse(text: &str) -> Result<Self, InvalidMessage> {
        match text.trim_start().bytes().next() {
            Some(b'{') => {}
            Some(b'[') => return Err(InvalidMessage::Batch),
            Some(_) | None => return Err(InvalidMessage::NotAnObject),
        }
        let envelope: RoutingEnvelope<'_> = serde_json::from_str(text).map_err(|_| InvalidMessage::Json)?;
        Ok(Self {
            id: envelope.id.map(|id| id.get().to_owned()).filter(|id| id.len() <= ID_BYTES_MAX),
            method: envelope.method.map(Cow::into_owned),
            session: envelope.params.and_then(find_session),
            result_session: envelope.result.and_then(find_session),
        })
    }

    pub(super) fn is_method(&self, name: &str) -> bool {
        self.method.as_deref() == Some(name)
    }
}

/// Returns the session that an object names.
fn find_session(object: &RawValue) -> Option<String> {
    // Lists and objects of other shapes name none.
    let text = object.get().starts_with('{').then_some(object.get())?;
    let reference: SessionReference<'_> = serde_json::from_str(text).ok()?;
    (reference.session.len() <= ID_BYTES_MAX).then(|| reference.session.into_owned())
}
