//! Patterns that a program, not the shell, compares with file names: whether they select keys.

use super::paths::is_key_path;
use super::protected_names::may_name_key;
use crate::shell::{KnownExtent, ShellWord, WordPiece};

/// More alternatives in braces count as any name.
const ALTERNATIVES_MAX: usize = 64;

/// Whether a name pattern may match keys.
pub(super) fn finds_keys(pattern: &ShellWord) -> bool {
    pattern.known_text().is_none_or(matches_keys)
}

/// Whether a file filter, as in `--include=*.rs`, selects keys by their letters. A leading `!` excludes.
pub(super) fn selects_keys(filter: &ShellWord) -> bool {
    let is_glob = |piece: &WordPiece| matches!(piece, WordPiece::Glob | WordPiece::Known(_));
    match filter.known_text() {
        Some(text) => !text.starts_with('!') && matches_keys(text),
        // Without a match in the shell the program gets the pattern itself.
        None if filter.extent == KnownExtent::Prefix && filter.pieces.iter().all(is_glob) => {
            let open = |piece: &WordPiece| match piece {
                WordPiece::Known(text) => WordPiece::Known(text.clone()),
                WordPiece::Glob | WordPiece::Variable(_) | WordPiece::Unknown(_) => WordPiece::Unknown(None),
            };
            may_name_key(&ShellWord { pieces: filter.pieces.iter().map(open).collect(), ..filter.clone() })
        }
        None => true,
    }
}

/// Whether a path argument of Git selects keys by a pattern; without one it is a revision or a path.
pub(super) fn selects_tracked_keys(argument: &str) -> bool {
    let Some(rest) = argument.strip_prefix(':') else {
        return argument.contains(['*', '?', '[']) && matches_keys(argument);
    };
    let (magic, pattern) = match rest.strip_prefix('(').and_then(|long| long.split_once(')')) {
        Some((magic, pattern)) => (magic, pattern),
        None => rest.split_at(rest.len() - rest.trim_start_matches(['/', '!', '^', ':']).len()),
    };
    let is_excluded = magic.contains(['!', '^']) || magic.split(',').any(|word| word == "exclude");
    !is_excluded && matches_keys(pattern)
}

/// Whether a pattern may match keys, with any of its alternatives.
fn matches_keys(pattern: &str) -> bool {
    let mut patterns = vec![pattern.replace('\\', "")];
    let mut n_patterns = 1;
    while let Some(pattern) = patterns.pop() {
        let group = pattern.find('}').and_then(|end| pattern[..end].rfind('{').map(|start| (start, end)));
        let Some((start, end)) = group else {
            if is_key_path(&pattern) || may_name_key(&pattern_word(&pattern)) {
                return true;
            }
            continue;
        };
        for alternative in pattern[start + 1..end].split(',') {
            n_patterns += 1;
            patterns.push(format!("{}{alternative}{}", &pattern[..start], &pattern[end + 1..]));
        }
        if n_patterns > ALTERNATIVES_MAX {
            return true;
        }
    }
    false
}

/// Converts a pattern without braces to a word with unknown pieces.
fn pattern_word(pattern: &str) -> ShellWord {
    let mut pieces = Vec::new();
    let mut rest = pattern;
    while let Some(at) = rest.find(['*', '?', '[']) {
        pieces.extend([WordPiece::Known(rest[..at].to_owned()), WordPiece::Unknown(None)]);
        let after = &rest[at + 1..];
        // The letters in brackets, also of one that does not end, are unknown.
        let end =
            if rest.as_bytes()[at] == b'[' { after.find(']').map_or(after.len(), |end| end + 1) } else { 0 };
        rest = &after[end..];
    }
    pieces.push(WordPiece::Known(rest.to_owned()));
    let text = match pieces.remove(0) {
        WordPiece::Known(text) => text,
        WordPiece::Glob | WordPiece::Variable(_) | WordPiece::Unknown(_) => String::new(),
    };
    let extent = if pieces.is_empty() { KnownExtent::Full } else { KnownExtent::Prefix };
    ShellWord { text, extent, pieces }
}
