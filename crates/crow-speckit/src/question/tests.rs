use expect_test::expect;

use super::*;

fn question() -> Question {
    let choice = |label: &str, meaning: &str| Choice { label: label.to_owned(), meaning: meaning.to_owned() };
    Question {
        question: "How do people sign in?".to_owned(),
        options: vec![choice("Password", "we keep hashes"), choice("OAuth", "another site vouches")],
        recommended: Some("OAuth".to_owned()),
    }
}

#[track_caller]
fn check(words: &str, expected: &Answer) {
    assert_eq!(question().read(words), *expected, "{words:?}");
}

fn given(answer: &str) -> Answer {
    Answer::Given(answer.to_owned())
}

#[test]
fn the_recommended_one_is_shown_first() {
    expect![[r"
        **How do people sign in?**

        - **A** OAuth (recommended): another site vouches
        - **B** Password: we keep hashes

        Answer with a letter, or your own words. `done` ends the questions, `cancel` ends the step.
    "]]
    .assert_eq(&question().spelled());
}

#[test]
fn letters_labels_consent_and_words_of_ones_own() {
    check("a", &given("OAuth"));
    check(" B) ", &given("Password"));
    check("Option b.", &given("Password"));
    check("password", &given("Password"));
    check("yes", &given("OAuth"));
    check("recommended", &given("OAuth"));
    check("C", &given("C"));
    check("By a hardware key\nonly", &given("By a hardware key\nonly"));
    check("done", &Answer::NoMore);
    check("No more.", &Answer::NoMore);
    check("cancel", &Answer::Stop);
}

#[test]
fn consent_means_nothing_where_nothing_is_recommended() {
    let question = Question { recommended: None, ..question() };
    assert_eq!(question.read("yes"), given("yes"));
    let open = Question { options: Vec::new(), ..question };
    assert_eq!(open.read("a"), given("a"));
}
