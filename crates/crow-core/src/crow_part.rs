//! The parts that Crow adds to a prompt, by kind. The code that adds the text sets the kind, which is stored with it;
//! it is never derived from a URI or another external string.

use std::fmt;

/// The scheme of the URIs of Crow's parts in the model's view.
const SCHEME: &str = "crow:";

const COMMAND: &str = "command/";
const INSTRUCTIONS: &str = "instructions";
const ENVIRONMENT: &str = "environment";
const NEW_TOOLS: &str = "tools";
const SKILLS: &str = "skills";
const UNDO: &str = "undone";
const INTERRUPTED_REPLY: &str = "turn/broke_off";
const TRUNCATED_REPLY: &str = "turn/too_large";
const ANNOUNCED_WORK: &str = "turn/announced";
const FILE: &str = "file:";
const IMAGE: &str = "image:";
const PROMPT_HOOK: &str = "hook/UserPromptSubmit";
const SPECKIT: &str = "speckit/";

/// The kind of a text that Crow adds to a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CrowPart {
    /// The text of a slash command, by the command's name: a prompt file or a skill.
    Command(String),
    /// Skills that the system prompt does not list.
    Skills,
    /// Instructions of the user and the project.
    Instructions,
    /// Facts about the environment.
    Environment,
    /// Tools that were added after the first request.
    NewTools,
    /// Files that the user restored with `/undo`.
    Undo,
    /// The request to continue an interrupted reply.
    InterruptedReply,
    /// The reason why Crow truncated a reply.
    TruncatedReply,
    /// The request to do what the model announced.
    AnnouncedWork,
    /// The text of a file that the prompt links to, by what follows `file:` in the link.
    LinkedFile(String),
    /// The reason why the image at an address is missing, by that address.
    MissingImage(String),
    /// The output of a prompt hook.
    PromptHook,
    /// A text of the Spec Kit workflow.
    Speckit(SpeckitPart),
}

/// The kind of a text that the Spec Kit workflow adds to a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SpeckitPart {
    /// The instructions of a step, by the step's name.
    Step(String),
    /// The user's answer to a question of the step.
    Answer,
    /// The next task of `implement`.
    Task,
    /// The results of tasks that child agents did.
    Children,
    /// The problems that the model has to fix.
    Repair,
    /// The instructions of a hook.
    Hook,
    /// The instructions of an extension's command.
    Command,
    /// The state of the feature, after a compaction.
    Reminder,
    /// The result of a step. The only kind that is shown to users.
    Report,
}

impl CrowPart {
    /// Parses the output of `to_string`; `None` for an unknown name.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            SKILLS => Self::Skills,
            INSTRUCTIONS => Self::Instructions,
            ENVIRONMENT => Self::Environment,
            NEW_TOOLS => Self::NewTools,
            UNDO => Self::Undo,
            INTERRUPTED_REPLY => Self::InterruptedReply,
            TRUNCATED_REPLY => Self::TruncatedReply,
            ANNOUNCED_WORK => Self::AnnouncedWork,
            PROMPT_HOOK => Self::PromptHook,
            name => {
                let after_prefix = |prefix| name.strip_prefix(prefix).filter(|rest: &&str| !rest.is_empty());
                match (after_prefix(COMMAND), after_prefix(SPECKIT), after_prefix(FILE), after_prefix(IMAGE))
                {
                    (Some(command), ..) => Self::Command(command.to_owned()),
                    (_, Some(part), ..) => Self::Speckit(SpeckitPart::parse(part)?),
                    (.., Some(file), _) => Self::LinkedFile(file.to_owned()),
                    (.., Some(address)) => Self::MissingImage(address.to_owned()),
                    (None, None, None, None) => return None,
                }
            }
        })
    }

    /// Whether the part is about the session and not about what is said in it. Such parts are told again where they are
    /// missing, and no summary needs them.
    pub fn is_session_context(&self) -> bool {
        matches!(self, Self::Instructions | Self::Environment | Self::NewTools)
    }

    /// Returns the URI in the model's view.
    pub fn uri(&self) -> String {
        format!("{SCHEME}{self}")
    }

    /// Parses the output of [`CrowPart::uri`]. Only for text that Crow stored: a client may send any URI.
    pub fn parse_uri(uri: &str) -> Option<Self> {
        Self::parse(uri.strip_prefix(SCHEME)?)
    }
}

impl fmt::Display for CrowPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(name) => write!(f, "{COMMAND}{name}"),
            Self::Skills => f.write_str(SKILLS),
            Self::Instructions => f.write_str(INSTRUCTIONS),
            Self::Environment => f.write_str(ENVIRONMENT),
            Self::NewTools => f.write_str(NEW_TOOLS),
            Self::Undo => f.write_str(UNDO),
            Self::InterruptedReply => f.write_str(INTERRUPTED_REPLY),
            Self::TruncatedReply => f.write_str(TRUNCATED_REPLY),
            Self::AnnouncedWork => f.write_str(ANNOUNCED_WORK),
            Self::LinkedFile(file) => write!(f, "{FILE}{file}"),
            Self::MissingImage(address) => write!(f, "{IMAGE}{address}"),
            Self::PromptHook => f.write_str(PROMPT_HOOK),
            Self::Speckit(part) => write!(f, "{SPECKIT}{}", part.as_str()),
        }
    }
}

impl SpeckitPart {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "answer" => Self::Answer,
            "task" => Self::Task,
            "children" => Self::Children,
            "repair" => Self::Repair,
            "hook" => Self::Hook,
            "command" => Self::Command,
            "reminder" => Self::Reminder,
            "report" => Self::Report,
            step if !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_lowercase()) => {
                Self::Step(step.to_owned())
            }
            _ => return None,
        })
    }

    fn as_str(&self) -> &str {
        match self {
            Self::Step(step) => step,
            Self::Answer => "answer",
            Self::Task => "task",
            Self::Children => "children",
            Self::Repair => "repair",
            Self::Hook => "hook",
            Self::Command => "command",
            Self::Reminder => "reminder",
            Self::Report => "report",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_round_trips_through_name_and_uri() {
        let workflow = [
            SpeckitPart::Step("plan".to_owned()),
            SpeckitPart::Answer,
            SpeckitPart::Task,
            SpeckitPart::Children,
            SpeckitPart::Repair,
            SpeckitPart::Hook,
            SpeckitPart::Command,
            SpeckitPart::Reminder,
            SpeckitPart::Report,
        ];
        let others = [
            CrowPart::Command("review".to_owned()),
            CrowPart::Command("a:b/c d".to_owned()),
            CrowPart::Skills,
            CrowPart::Instructions,
            CrowPart::Environment,
            CrowPart::NewTools,
            CrowPart::Undo,
            CrowPart::InterruptedReply,
            CrowPart::TruncatedReply,
            CrowPart::AnnouncedWork,
            CrowPart::LinkedFile("///p/a.rs#L1".to_owned()),
            CrowPart::MissingImage("https://a.test/b.png".to_owned()),
            CrowPart::PromptHook,
        ];
        for kind in others.into_iter().chain(workflow.map(CrowPart::Speckit)) {
            assert_eq!(CrowPart::parse(&kind.to_string()).as_ref(), Some(&kind));
            assert_eq!(CrowPart::parse_uri(&kind.uri()), Some(kind));
        }
    }

    #[test]
    fn kind_is_none_for_unknown_names() {
        for name in [
            "",
            "command/",
            "file:",
            "image:",
            "speckit/",
            "speckit/../report",
            "speckit/Report",
            "Skills",
            "crow:skills",
        ] {
            assert_eq!(CrowPart::parse(name), None, "{name}");
        }
        assert_eq!(CrowPart::parse_uri("CROW:skills"), None);
        assert_eq!(CrowPart::parse_uri("file:///skills"), None);
    }
}
