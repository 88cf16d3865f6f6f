//! Properties of the terminal that change how it is drawn on: from the environment at first, from its replies later.

/// Properties of the terminal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TerminalTraits {
    pub resizing: ResizeBehavior,
    /// Whether the kitty keyboard protocol is left off although the terminal offers it.
    pub avoids_kitty: bool,
    /// Whether the terminal is tmux, which encodes modified keys only on request.
    pub is_tmux: bool,
    /// Whether the terminal is of the VTE library, such as GNOME Terminal.
    pub is_vte: bool,
}

/// The effect of a new width on rows that are on the screen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ResizeBehavior {
    /// Rows are wrapped again.
    Reflows,
    /// Rows are cut.
    Clips,
    /// The console repaints the window by itself, and positions that it reports do not last.
    Repaints,
    #[default]
    Unknown,
}

/// The variables of the environment that name the terminal.
#[derive(Debug, Clone, Copy, Default)]
pub struct TerminalHints<'a> {
    /// `TERM`.
    pub term: Option<&'a str>,
    /// `TERM_PROGRAM`.
    pub term_program: Option<&'a str>,
    /// Whether `WT_SESSION` is set: Windows Terminal.
    pub is_windows_terminal: bool,
    /// Whether `WSL_DISTRO_NAME` is set.
    pub is_wsl: bool,
    /// Whether `TMUX` is set.
    pub is_tmux: bool,
    /// Whether `VTE_VERSION` is set.
    pub is_vte: bool,
}

impl TerminalTraits {
    /// Guesses the properties from the environment.
    pub fn from_hints(hints: &TerminalHints<'_>) -> Self {
        let is_vs_code = hints.term_program == Some("vscode");
        let resizing = if hints.is_tmux {
            ResizeBehavior::Reflows
        } else if hints.is_windows_terminal || (hints.is_wsl && hints.term_program.is_none()) {
            ResizeBehavior::Repaints
        } else if hints.term == Some("linux") {
            ResizeBehavior::Clips
        } else if is_vs_code {
            ResizeBehavior::Reflows
        } else {
            ResizeBehavior::Unknown
        };
        Self {
            resizing,
            avoids_kitty: is_vs_code && hints.is_wsl,
            is_tmux: hints.is_tmux,
            is_vte: hints.is_vte,
        }
    }

    /// Updates the properties from the terminal's name and version.
    pub fn apply_version(&mut self, version: &str) {
        const REFLOWING: [&str; 9] =
            ["tmux", "kitty", "WezTerm", "ghostty", "foot", "iTerm2", "Konsole", "VTE", "xterm.js"];
        self.is_tmux |= version.starts_with("tmux");
        self.is_vte |= version.starts_with("VTE");
        if self.resizing == ResizeBehavior::Repaints {
            return;
        }
        if REFLOWING.iter().any(|name| version.starts_with(name)) {
            self.resizing = ResizeBehavior::Reflows;
        } else if version.starts_with("XTerm") {
            self.resizing = ResizeBehavior::Clips;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traits_follow_the_environment_and_the_version() {
        let mut traits = TerminalTraits::from_hints(&TerminalHints::default());
        assert_eq!(traits.resizing, ResizeBehavior::Unknown);
        traits.apply_version("XTerm(390)");
        assert_eq!(traits.resizing, ResizeBehavior::Clips);
        traits.apply_version("tmux 3.5a");
        assert_eq!((traits.resizing, traits.is_tmux), (ResizeBehavior::Reflows, true));
        let hints = TerminalHints { is_windows_terminal: true, is_wsl: true, ..TerminalHints::default() };
        let mut traits = TerminalTraits::from_hints(&hints);
        traits.apply_version("kitty(0.40)");
        assert_eq!(traits.resizing, ResizeBehavior::Repaints);
        let hints = TerminalHints { term_program: Some("vscode"), is_wsl: true, ..TerminalHints::default() };
        assert!(TerminalTraits::from_hints(&hints).avoids_kitty);
    }
}
