//! The command `/trust`: only content that was shown can be trusted.

use super::*;
use crate::TrustReview;

const SKILL: (&str, &str) = ("p/.crow/skills/a/SKILL.md", "Do a.");

/// Renders the paths that an action decides about, or its reason.
fn render_outcome(result: Result<Vec<TrustSubject>, String>) -> String {
    match result {
        Ok(subjects) => subjects.iter().map(|subject| format!("takes {}\n", subject.path)).collect(),
        Err(reason) => reason,
    }
}

#[test]
fn trust_review_takes_only_what_was_shown() {
    let stage = Stage::new(&[SKILL]);
    let mut review = TrustReview::default();
    let mut steps = render_outcome(review.take_shown(&stage.survey("p")));
    steps += &review.render_untrusted(&stage.survey("p"));
    stage.write(SKILL.0, "Do b.");
    steps += &render_outcome(review.take_shown(&stage.survey("p")));
    review.render_untrusted(&stage.survey("p"));
    steps += &render_outcome(review.take_shown(&stage.survey("p")));
    steps += &render_outcome(review.take_shown(&stage.survey("p")));
    review.render_untrusted(&stage.survey("p"));
    fs::remove_file(stage.root.join(SKILL.0)).unwrap();
    steps += &render_outcome(review.take_shown(&stage.survey("p")));
    steps += &review.render_untrusted(&stage.survey("p"));
    expect![[r#"
        Nothing was shown yet. Type /trust and read what it would run.
        Use the configuration of this repository: 1 skill

        ```
        .crow/skills/a/SKILL.md
          skill a: Do a.
        ```

        content of .crow/skills/a/SKILL.md:
        ```
        Do a.
        ```

        Read it first. Then type `/trust yes` to use it until it changes, `/trust session` to use it in this session, or `/trust no` to ignore it until it changes.
        Nothing is trusted: .crow/skills/a/SKILL.md changed since it was shown. Look again with /trust.
        takes .crow/skills/a/SKILL.md
        Nothing was shown yet. Type /trust and read what it would run.
        The shown content does not exist any more.
        This repository has nothing that needs trust.
    "#]].assert_eq(&steps);
}

#[test]
fn trust_review_lists_trusted_content_and_rejects_it() {
    let stage = Stage::new(&[SKILL]);
    let mut review = TrustReview::default();
    let survey = stage.survey("p");
    review.render_untrusted(&survey);
    let shown = review.take_shown(&survey).unwrap();
    review.record_answers(&shown, TrustAnswer::Trust);
    let mut steps = review.render_untrusted(&survey);
    steps += &render_outcome(review.take_all(&survey));
    fs::remove_file(stage.root.join(SKILL.0)).unwrap();
    steps += &render_outcome(review.take_all(&stage.survey("p")));
    expect![[r#"
        Trusted and used: .crow/skills/a/SKILL.md. `/trust no` revokes that.
        takes .crow/skills/a/SKILL.md
        This repository has nothing that needs trust.
    "#]]
    .assert_eq(&steps);
}
