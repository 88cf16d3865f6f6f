//! Which commands that need no question by themselves need one because of what the sandbox cannot do here.

use super::paths::{Place, Target, is_inside};
use super::risks::base;
use super::{Grants, Law, Mode, Rules, Verdict, approval, judge};
use crate::shell::{self, Simple, Word};
use crate::{Approval, Facets, PartialSandbox, SandboxRules, Touch};

/// Programs that change modes, owners, times and other attributes of the files they name.
const ATTRIBUTE_PROGRAMS: &[&str] =
    &["chmod", "chown", "chgrp", "touch", "setfacl", "setfattr", "chattr", "setcap"];

/// Programs that send signals to the programs they name.
const SIGNAL_PROGRAMS: &[&str] =
    &["kill", "pkill", "killall", "killall5", "skill", "snice", "fuser", "xkill", "slay"];

/// Judges a call as [`judge`] does. A command that no person approved is asked about where the sandbox cannot hold it.
pub fn judge_sandboxed(
    law: &Law<'_>,
    grants: &Grants,
    tool: &str,
    facets: &Facets,
    sandbox: &SandboxRules<'_>,
) -> Verdict {
    let verdict = judge(law, grants, tool, facets);
    if verdict != Verdict::Allow {
        return verdict;
    }
    let approval = approval(law, grants, tool, facets);
    let Some(why) = reason_to_ask(law, approval, facets, sandbox) else { return Verdict::Allow };
    match judge_by_grants(law, grants, tool, facets) {
        Verdict::Allow => Verdict::Allow,
        Verdict::Ask { offer, .. } => Verdict::Ask { offer, why: Some(why) },
        Verdict::Deny(why) => Verdict::Deny(why),
    }
}

/// Tells who approved a call that [`judge_sandboxed`] lets run.
pub fn approval_sandboxed(
    law: &Law<'_>,
    grants: &Grants,
    tool: &str,
    facets: &Facets,
    sandbox: &SandboxRules<'_>,
) -> Approval {
    let approval = approval(law, grants, tool, facets);
    match reason_to_ask(law, approval, facets, sandbox) {
        Some(_) => Approval::Person,
        None => approval,
    }
}

/// Returns what speaks against running what the law alone allows; `None` also for what a person approved.
fn reason_to_ask(
    law: &Law<'_>,
    approval: Approval,
    facets: &Facets,
    sandbox: &SandboxRules<'_>,
) -> Option<String> {
    let Touch::Runs(line) = &facets.touch else { return None };
    match approval {
        Approval::Person | Approval::Reading | Approval::Editing => None,
        Approval::Building => {
            sandbox.reason_to_ask_of_build(law.mode, |partial| use_of_gap(law, line, partial))
        }
        Approval::Law | Approval::Lasting => {
            sandbox.reason_to_ask(law.mode, |partial| use_of_gap(law, line, partial))
        }
    }
}

/// Judges by what a person granted in the session alone: no mode and no rule allows anything.
fn judge_by_grants(law: &Law<'_>, grants: &Grants, tool: &str, facets: &Facets) -> Verdict {
    let denials = Rules { allow: Vec::new(), deny: law.rules.deny.clone() };
    judge(&Law { mode: Mode::Ask, rules: &denials, ..*law }, grants, tool, facets)
}

/// Returns how a command line could use what a partial sandbox leaves open, as far as its words tell.
fn use_of_gap(law: &Law<'_>, line: &str, partial: &PartialSandbox) -> Option<String> {
    let commands = match shell::parse(line) {
        Ok(commands) => commands,
        Err(why) => {
            return Some(format!("it {why}, so it may change files or end programs outside the project"));
        }
    };
    let place = Place { cwd: law.roots.work.first().map(String::as_str), resolve: law.resolve };
    let goes = |simple: &Simple| {
        simple
            .words
            .first()
            .and_then(Word::whole)
            .is_some_and(|program| ["cd", "pushd", "popd"].contains(&program))
    };
    let mut all = Vec::new();
    commands.iter().for_each(|command| command.walk(&mut |simple| all.push(simple)));
    let place = if all.iter().any(|simple| goes(simple)) { Place { cwd: None, ..place } } else { place };
    all.iter().find_map(|simple| {
        let program = base(simple.words.first()?.whole()?);
        let changes = partial.no_namespace.is_some() && ATTRIBUTE_PROGRAMS.contains(&program);
        if changes && simple.words.iter().skip(1).any(|word| may_be_outside(word, &place, law)) {
            return Some(format!("{program} may change modes or times of files outside the project"));
        }
        let ends = partial.signals_open && SIGNAL_PROGRAMS.contains(&program);
        (ends && !simple.words.iter().skip(1).all(is_of_this_shell))
            .then(|| format!("{program} may end your other programs"))
    })
}

fn may_be_outside(word: &Word, place: &Place<'_>, law: &Law<'_>) -> bool {
    if word.whole().is_some_and(|text| text.starts_with('-') && !text.contains('/')) {
        return false;
    }
    match place.target(word) {
        Target::Nowhere => false,
        Target::At(path) => !is_inside(&path, &law.roots.work),
        Target::Unknown(_) => true,
    }
}

/// An option, or a job of the shell that the line is run by.
fn is_of_this_shell(word: &Word) -> bool {
    word.whole().is_some_and(|text| text.starts_with('%') || (text.starts_with('-') && text != "-1"))
}
