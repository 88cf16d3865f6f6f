use expect_test::expect;

use super::*;

fn question() -> StepQuestion {
    let choice =
        |label: &str, meaning: &str| QuestionOption { label: label.to_owned(), meaning: meaning.to_owned() };
    StepQuestion {
        question: "How do people sign in?".to_owned(),
        options: vec![choice("Password", "we keep hashes"), choice("OAuth", "another site vouches")],
        recommended: Some("OAuth".to_owned()),
        topic: None,
    }
}

#[test]
fn topic_precedes_the_question() {
    let question = StepQuestion { topic: Some("Accounts".to_owned()), options: Vec::new(), ..question() };
    assert_eq!(question.to_markdown().lines().next(), Some("**Accounts: How do people sign in?**"));
}

#[track_caller]
fn check(words: &str, expected: &QuestionAnswer) {
    assert_eq!(question().parse_answer(words), *expected, "{words:?}");
}

fn given(answer: &str) -> QuestionAnswer {
    QuestionAnswer::Answer(answer.to_owned())
}

#[test]
fn recommended_option_is_first() {
    expect![[r"
        **How do people sign in?**

        - **A** OAuth (recommended): another site vouches
        - **B** Password: we keep hashes

        Answer with a letter, or your own words. `done` ends the questions, `cancel` ends the step.
    "]]
    .assert_eq(&question().to_markdown());
}

#[test]
fn answers_are_letters_labels_consent_or_free_text() {
    check("a", &given("OAuth"));
    check(" B) ", &given("Password"));
    check("Option b.", &given("Password"));
    check("password", &given("Password"));
    check("yes", &given("OAuth"));
    check("recommended", &given("OAuth"));
    check("C", &given("C"));
    check("By a hardware key\nonly", &given("By a hardware key\nonly"));
    for b in [
        "(b)",
        "b)",
        "B.",
        "B: Password",
        "b - password",
        "B) Password.",
        "**B** Password",
        "2",
        "2)",
        "(option b)",
    ] {
        check(b, &given("Password"));
    }
    for own in ["B: none of these", "b, but salted", "0", "3", "2 of them"] {
        check(own, &given(own));
    }
    for consent in ["Yes, please!", "yes please", "OK.", "okay"] {
        check(consent, &given("OAuth"));
    }
    check("done", &QuestionAnswer::NoMore);
    check("No more.", &QuestionAnswer::NoMore);
    check("no more questions", &QuestionAnswer::NoMore);
    check("cancel", &QuestionAnswer::Stop);
    check("Cancel it.", &QuestionAnswer::Stop);
}

#[test]
fn option_label_takes_precedence_over_keywords() {
    let labels = |labels: &[&str]| StepQuestion {
        options: labels
            .iter()
            .map(|label| QuestionOption { label: (*label).to_owned(), meaning: String::new() })
            .collect(),
        recommended: Some(labels[0].to_owned()),
        ..question()
    };
    let retry = labels(&["Retry", "Abort", "Skip", "Yes", "A"]);
    for label in ["Abort", "Skip", "Yes", "A"] {
        assert_eq!(retry.parse_answer(&label.to_lowercase()), given(label));
    }
    assert_eq!(retry.parse_answer("cancel"), QuestionAnswer::Stop);
    let dotted = labels(&["OAuth (2.0)", "C++", "C"]);
    assert_eq!(dotted.parse_answer("oauth (2.0)"), given("OAuth (2.0)"));
    assert_eq!(dotted.parse_answer("c"), given("C"));
    assert_eq!(dotted.parse_answer("A: OAuth (2.0)"), given("OAuth (2.0)"));
    // “How many?”
    let numbers = labels(&["10", "20 or more"]);
    assert_eq!(numbers.parse_answer("10."), given("10"));
    assert_eq!(numbers.parse_answer("1"), given("1"));
    assert_eq!(numbers.parse_answer("b"), given("20 or more"));
}

#[test]
fn label_is_matched_ignoring_case_and_punctuation() {
    let question = question();
    assert!(question.has_label(" oauth.") && question.has_label("Password"));
    assert!(!question.has_label("a") && !question.has_label(""));
}

#[test]
fn consent_needs_a_recommended_option() {
    let question = StepQuestion { recommended: None, ..question() };
    assert_eq!(question.parse_answer("yes"), given("yes"));
    let open = StepQuestion { options: Vec::new(), ..question };
    assert_eq!(open.parse_answer("a"), given("a"));
}
