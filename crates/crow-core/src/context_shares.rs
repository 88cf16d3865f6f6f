//! The parts of a request by their tokens, and their rendering as bars.

use crate::compaction::{estimate_part_tokens, estimate_text_tokens};
use crate::{ContentPart, CrowPart, Transcript, code_fence, format_tokens, render_bar};

/// Columns of a full bar: with the other columns, a line has 60 at most.
const BAR_COLUMNS: usize = 24;

/// The tokens of a request by its parts, which are estimates. Their sum is the provider's last count, if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextShares {
    system: u64,
    tools: u64,
    instructions: u64,
    environment: u64,
    conversation: u64,
    is_counted: bool,
}

impl ContextShares {
    /// Divides the context of a conversation. `unsent` are parts about the session that the next prompt begins with.
    pub fn new(transcript: &Transcript, unsent: &[ContentPart]) -> Self {
        let sent = transcript.prompts().flat_map(|prompt| &prompt.parts);
        let (mut instructions, mut environment) = (0, 0);
        for part in sent.chain(unsent) {
            let n_tokens = estimate_part_tokens(std::slice::from_ref(part));
            match part.crow_part() {
                Some(CrowPart::Instructions | CrowPart::Skills) => instructions += n_tokens,
                Some(CrowPart::Environment | CrowPart::NewTools) => environment += n_tokens,
                Some(_) | None => {}
            }
        }
        let context = transcript.context_tokens();
        let unsent_tokens = estimate_part_tokens(unsent);
        let system = estimate_text_tokens(transcript.system());
        let tools = transcript.overhead_tokens() - system;
        let others = system + tools + instructions + environment;
        Self {
            system,
            tools,
            instructions,
            environment,
            conversation: (context.tokens + unsent_tokens).saturating_sub(others),
            is_counted: context.tokens != context.measured,
        }
    }

    fn total(&self) -> u64 {
        self.rows().into_iter().map(|(_, n_tokens)| n_tokens).sum()
    }

    fn rows(&self) -> [(&'static str, u64); 5] {
        [
            ("system prompt", self.system),
            ("tools", self.tools),
            ("instructions", self.instructions),
            ("environment", self.environment),
            ("conversation", self.conversation),
        ]
    }
}

/// Renders the parts as a block of Markdown code with a bar for each. `window` is the context window, 0 if it is not
/// known; beyond `limit` tokens the conversation is compacted.
pub fn render_context_shares(shares: &ContextShares, window: u64, limit: u64) -> String {
    let total = shares.total();
    let free = (window > 0).then(|| ("free", window.saturating_sub(total)));
    let whole = window.max(total).max(1);
    let percent = |n_tokens: u64| u128::from(n_tokens) * 100 / u128::from(whole);
    let about = if shares.is_counted { "" } else { "about " };
    let mut lines = vec![match window {
        0 => format!("{about}{} tokens in the context", format_tokens(total)),
        _ => {
            let (used, size) = (format_tokens(total), format_tokens(window));
            let percent = u128::from(total) * 100 / u128::from(window);
            format!("{about}{used} of {size} tokens in the context ({percent} %)")
        }
    }];
    lines.push(String::new());
    for (name, n_tokens) in shares.rows().into_iter().chain(free) {
        let bar = render_bar(n_tokens, whole, BAR_COLUMNS);
        let row = format!("{name:<13} {:>6} {:>3} %  {bar}", format_tokens(n_tokens), percent(n_tokens));
        lines.push(row.trim_end().to_owned());
    }
    lines.extend([String::new(), format!("it is compacted beyond {} tokens", format_tokens(limit))]);
    let text = lines.join("\n");
    let fence = code_fence(&text);
    format!("{fence}text\n{text}\n{fence}\n")
}

#[cfg(test)]
mod tests;
