//! What Crow itself adds to a prompt, by kind. A kind is set by the code that adds the text and stored with it; it is
//! never derived from a URI or from any other string that comes from outside.

use std::fmt;

/// The scheme of the URI under which models see what Crow adds.
const SCHEME: &str = "crow:";

const COMMAND: &str = "command/";
const SKILLS: &str = "skills";
const UNDONE: &str = "undone";
const BROKEN_REPLY: &str = "turn/broke_off";
const CUT_REPLY: &str = "turn/too_large";
const FILE: &str = "file:";
const IMAGE: &str = "image:";
const PROMPT_HOOK: &str = "hook/UserPromptSubmit";
const SPECKIT: &str = "speckit/";

/// The kind of a text that Crow adds to a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CrowPart {
    /// What a slash command stands for, by the command's name: a prompt file or a skill.
    Command(String),
    /// Skills that the system prompt does not list.
    Skills,
    /// Files that the person restored with `/undo`.
    Undone,
    /// The request to continue a reply that broke off.
    BrokenReply,
    /// The reason why Crow cut a reply.
    CutReply,
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
    /// The person's answer to a question of the step.
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
    /// The result of a step. The only kind that people see.
    Report,
}

impl CrowPart {
    /// Parses what `to_string` returned; `None` for a name that Crow never gave.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            SKILLS => Self::Skills,
            UNDONE => Self::Undone,
            BROKEN_REPLY => Self::BrokenReply,
            CUT_REPLY => Self::CutReply,
            PROMPT_HOOK => Self::PromptHook,
            name => {
                let after = |prefix| name.strip_prefix(prefix).filter(|rest: &&str| !rest.is_empty());
                match (after(COMMAND), after(SPECKIT), after(FILE), after(IMAGE)) {
                    (Some(command), ..) => Self::Command(command.to_owned()),
                    (_, Some(part), ..) => Self::Speckit(SpeckitPart::parse(part)?),
                    (.., Some(file), _) => Self::LinkedFile(file.to_owned()),
                    (.., Some(address)) => Self::MissingImage(address.to_owned()),
                    (None, None, None, None) => return None,
                }
            }
        })
    }

    /// Returns the URI under which models see it.
    pub fn uri(&self) -> String {
        format!("{SCHEME}{self}")
    }

    /// Parses what [`CrowPart::uri`] returned. Only for text that Crow itself stored: a client may send any URI.
    pub fn parse_uri(uri: &str) -> Option<Self> {
        Self::parse(uri.strip_prefix(SCHEME)?)
    }
}

impl fmt::Display for CrowPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(name) => write!(f, "{COMMAND}{name}"),
            Self::Skills => f.write_str(SKILLS),
            Self::Undone => f.write_str(UNDONE),
            Self::BrokenReply => f.write_str(BROKEN_REPLY),
            Self::CutReply => f.write_str(CUT_REPLY),
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
    fn every_kind_is_read_back_from_its_name() {
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
            CrowPart::Undone,
            CrowPart::BrokenReply,
            CrowPart::CutReply,
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
    fn other_names_are_no_kind() {
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
