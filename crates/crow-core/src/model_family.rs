//! Defaults of families of models, as they were trained, by the ID that a provider uses. The only table of it; its
//! sources are in `docs/dev/model-families.md`.

/// The tool by which a model changes files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EditToolKind {
    /// `edit`, besides `read` and `write`.
    #[default]
    Edit,
    /// `apply_patch`, in place of `edit` and `write`.
    ApplyPatch,
    /// Anthropic's `str_replace_based_edit_tool`, in place of `read`, `edit` and `write`.
    StrReplace,
}

impl EditToolKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Edit, Self::ApplyPatch, Self::StrReplace];

    /// Returns the name of the tool.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Edit => "edit",
            Self::ApplyPatch => "apply_patch",
            Self::StrReplace => "str_replace_based_edit_tool",
        }
    }

    /// Parses the result of [`EditToolKind::as_str`].
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Whether the tool is offered in place of another one.
    pub fn replaces(self, tool: &str) -> bool {
        match self {
            Self::Edit => false,
            Self::ApplyPatch => matches!(tool, "edit" | "write"),
            Self::StrReplace => matches!(tool, "edit" | "write" | "read"),
        }
    }
}

/// The defaults of a family of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelFamily {
    /// The reasoning effort to request; `None` leaves it to the provider.
    pub reasoning_effort: Option<&'static str>,
    /// Whether several calls in one reply are asked for.
    pub parallel_calls: bool,
    /// The tool by which its models change files.
    pub edit_tool: EditToolKind,
}

/// The family of all models that no row describes.
const OTHERS: ModelFamily =
    ModelFamily { reasoning_effort: None, parallel_calls: true, edit_tool: EditToolKind::Edit };

const PATCHING: ModelFamily = ModelFamily { edit_tool: EditToolKind::ApplyPatch, ..OTHERS };

/// Families by the start of the ID; the first row that fits counts.
const FAMILIES: [(&str, ModelFamily); 8] = [
    // OpenAI's Codex asks these for one call at a time.
    ("gpt-5-codex", ModelFamily { parallel_calls: false, ..PATCHING }),
    ("gpt-5.1-codex", ModelFamily { parallel_calls: false, ..PATCHING }),
    // Their API does not reason unless it is asked to; Codex asks for `medium`.
    ("gpt-5.1", ModelFamily { reasoning_effort: Some("medium"), ..PATCHING }),
    ("gpt-5.2", ModelFamily { reasoning_effort: Some("medium"), ..PATCHING }),
    ("gpt-5.", PATCHING),
    ("gpt-6", PATCHING),
    ("codex-", ModelFamily { parallel_calls: false, ..PATCHING }),
    // Its tool template is for one call at a time.
    ("qwen2.5", ModelFamily { parallel_calls: false, ..OTHERS }),
];

/// Returns the family of a model. An ID may begin with a vendor: `openai/gpt-5.1`.
pub fn model_family(model_id: &str) -> ModelFamily {
    let id = model_id.rsplit('/').next().unwrap_or(model_id).to_ascii_lowercase();
    FAMILIES.iter().find(|(start, _)| id.starts_with(start)).map_or(OTHERS, |(_, family)| *family)
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::model_family;

    #[test]
    fn families_are_known_by_the_model_id() {
        let ids = [
            "gpt-5.1",
            "openai/gpt-5.2-2025-12-11",
            "openrouter/OpenAI/GPT-5.1-Codex-Max",
            "gpt-5-codex",
            "gpt-5.2-codex",
            "gpt-5.4-mini",
            "codex-mini-latest",
            "gpt-5",
            "gpt-4.1",
            "openai/gpt-oss-20b",
            "claude-sonnet-4-5",
            "google/gemini-3-pro",
            "qwen2.5-coder:7b",
            "qwen3-coder",
        ];
        let shown = ids.map(|id| {
            let family = model_family(id);
            let effort = family.reasoning_effort.unwrap_or("-");
            let calls = if family.parallel_calls { "parallel" } else { "single" };
            format!("{id}: {} {calls} {effort}", family.edit_tool.as_str())
        });
        expect![[r#"
            gpt-5.1: apply_patch parallel medium
            openai/gpt-5.2-2025-12-11: apply_patch parallel medium
            openrouter/OpenAI/GPT-5.1-Codex-Max: apply_patch single -
            gpt-5-codex: apply_patch single -
            gpt-5.2-codex: apply_patch parallel medium
            gpt-5.4-mini: apply_patch parallel -
            codex-mini-latest: apply_patch single -
            gpt-5: edit parallel -
            gpt-4.1: edit parallel -
            openai/gpt-oss-20b: edit parallel -
            claude-sonnet-4-5: edit parallel -
            google/gemini-3-pro: edit parallel -
            qwen2.5-coder:7b: edit single -
            qwen3-coder: edit parallel -"#]]
        .assert_eq(&shown.join("\n"));
    }
}
