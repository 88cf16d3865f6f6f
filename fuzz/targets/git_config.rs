//! Git configuration of a repository: only the plainest counts as harmless.
#![no_main]

use crow_core::{git_mentions, is_inert_git_config, script_mentions};
use libfuzzer_sys::fuzz_target;

/// Parts of names of keys and sections through which Git runs programs or reads more configuration.
const PROGRAMS: [&str; 16] = [
    "include",
    "fsmonitor",
    "command",
    "pager",
    "editor",
    "helper",
    "hooks",
    "filter",
    "diff",
    "merge.",
    "alias",
    "askpass",
    "proxy",
    "pack",
    "worktree",
    "update",
];

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let _ = script_mentions(text);
    let mentions = git_mentions(text);
    if !is_inert_git_config(text) {
        return;
    }
    assert!(mentions.is_ok_and(|mentions| mentions.is_empty()), "{text:?}");
    assert!(!text.contains(['\\', '\r', '#', ';', '!', '$', '`', '\0']), "{text:?}");
    for line in text.lines() {
        let line = line.trim().to_ascii_lowercase();
        let name = line.split('=').next().unwrap_or_default();
        assert!(!name.starts_with("url") || !line.contains("::"), "{line:?}");
        if !name.starts_with('[') && name.trim() != "logallrefupdates" {
            assert!(!PROGRAMS.iter().any(|part| name.contains(part)), "{line:?}");
        }
        assert!(
            !name.starts_with("[include") && !name.starts_with("[filter") && !name.starts_with("[alias"),
            "{line:?}"
        );
    }
    // Lines are independent: a part of a harmless configuration is harmless, and so is its repetition.
    let whole = format!("{text}\n{text}");
    assert!(whole.len() > 64 * 1024 || is_inert_git_config(&whole), "{text:?}");
    if let Some((beginning, _)) = text.rsplit_once('\n') {
        assert!(is_inert_git_config(beginning), "{beginning:?}");
    }
});
