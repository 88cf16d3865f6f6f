//! Parses the options that an agent offers when a client opens a session.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the protocol's enums are open: what is new is passed over"
)]

use agent_client_protocol as sdk;
use sdk::v1::schema as wire;

use crate::config_option::{ConfigChoice, ConfigOption};

/// The ID of the option that represents the modes of an agent without an option for them.
pub(crate) const MODES_OPTION: &str = "_crow_modes";

/// Parses the configuration options of a session.
pub(crate) fn session_options(options: Option<Vec<wire::SessionConfigOption>>) -> Vec<ConfigOption> {
    options.unwrap_or_default().into_iter().filter_map(session_option).collect()
}

/// Parses the options of a session that was opened; the older session modes are an option too.
pub(crate) fn opened_options(
    options: Option<Vec<wire::SessionConfigOption>>,
    modes: Option<wire::SessionModeState>,
) -> Vec<ConfigOption> {
    let mut options = session_options(options);
    if let Some(modes) = modes.filter(|_| !options.iter().any(|option| option.is_about("mode"))) {
        options.push(modes_option(modes));
    }
    options
}

fn modes_option(modes: wire::SessionModeState) -> ConfigOption {
    let choices = modes.available_modes.into_iter().map(|mode| ConfigChoice {
        value: mode.id.0.to_string(),
        name: mode.name,
        description: mode.description,
    });
    ConfigOption {
        id: MODES_OPTION.to_owned(),
        category: Some("mode"),
        name: "Mode".to_owned(),
        current: modes.current_mode_id.0.to_string(),
        choices: choices.collect(),
    }
}

fn session_option(option: wire::SessionConfigOption) -> Option<ConfigOption> {
    let wire::SessionConfigKind::Select(select) = option.kind else { return None };
    let choices = match select.options {
        wire::SessionConfigSelectOptions::Ungrouped(choices) => choices,
        wire::SessionConfigSelectOptions::Grouped(groups) => {
            groups.into_iter().flat_map(|group| group.options).collect()
        }
        _ => Vec::new(),
    };
    let category = option.category.and_then(|category| match category {
        wire::SessionConfigOptionCategory::Mode => Some("mode"),
        wire::SessionConfigOptionCategory::Model => Some("model"),
        wire::SessionConfigOptionCategory::ThoughtLevel => Some("thought_level"),
        _ => None,
    });
    let choices = choices.into_iter().map(|choice| ConfigChoice {
        value: choice.value.0.to_string(),
        name: choice.name,
        description: choice.description,
    });
    Some(ConfigOption {
        id: option.id.0.to_string(),
        category,
        name: option.name,
        current: select.current_value.0.to_string(),
        choices: choices.collect(),
    })
}
