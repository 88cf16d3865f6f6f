//! The table of model APIs. No other module names one: the rest of the crate works with any row.

use crate::api::ModelApi;
use crate::{chat, messages, responses};

impl ModelApi {
    /// Every API; the first is the default.
    pub const ALL: [Self; 3] =
        [Self::new(&chat::DEFINITION), Self::new(&messages::DEFINITION), Self::new(&responses::DEFINITION)];

    /// `chat/completions`, which most servers support.
    pub const CHAT: Self = Self::ALL[0];
    /// Anthropic's.
    pub const MESSAGES: Self = Self::ALL[1];
    /// OpenAI's newer one.
    pub const RESPONSES: Self = Self::ALL[2];
}

impl Default for ModelApi {
    fn default() -> Self {
        Self::CHAT
    }
}

#[cfg(test)]
mod tests {
    use crate::ModelApi;

    #[test]
    fn names_are_unique_and_parsed() {
        for api in ModelApi::ALL {
            assert_eq!(ModelApi::parse(api.as_str()), Some(api));
            assert_eq!(ModelApi::ALL.iter().filter(|other| **other == api).count(), 1, "{api:?}");
        }
        assert_eq!(ModelApi::parse("completions"), None);
    }
}
