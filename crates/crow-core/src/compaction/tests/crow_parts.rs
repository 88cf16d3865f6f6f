//! Text that Crow adds to a prompt or sends by itself must not be taken for the user's.

use super::*;
use crate::CrowPart;

/// A prompt with the parts `NAME: TEXT` for Crow's additions, and plain text of the user.
fn prompt_of(transcript: &mut Transcript, parts: &[&str]) {
    let parts = parts.iter().map(|part| match part.split_once(": ") {
        Some((name, text)) => {
            ContentPart::FromCrow { kind: CrowPart::parse(name).unwrap(), text: text.to_owned() }
        }
        None => ContentPart::Text((*part).to_owned()),
    });
    let id = transcript.next_message_id();
    transcript.push(TranscriptEntry::Prompt(Prompt { id, parts: parts.collect() })).unwrap();
}

#[test]
fn additions_by_crow_are_marked_as_such() {
    let mut transcript = conversation("");
    prompt_of(&mut transcript, &["/speckit.clarify the port", "speckit/clarify: Ask five questions."]);
    say(&mut transcript, "reply", 500);
    prompt_of(&mut transcript, &["speckit/task: Build T001."]);
    say(&mut transcript, "reply", 500);
    prompt_of(&mut transcript, &["go on"]);
    let (_, CompactionStep::Summarise { source }) =
        CompactionAttempt::start(&transcript, CompactionTrigger::LimitReached, 1000)
    else {
        panic!()
    };
    let source: Vec<&str> = source.lines().filter(|line| !line.contains("xxx")).collect();
    expect![[r#"
        <person>
        /speckit.clarify the port
        [added by Crow: speckit/clarify]
        </person>
        <result>
        [added by Crow: speckit/clarify]
        Ask five questions.
        </result>
        <agent>
        [… 1800 bytes omitted …]
        </agent>
        <result>
        [added by Crow: speckit/task]
        Build T001.
        </result>
        <agent>
        </agent>
    "#]]
    .assert_eq(&(source.join("\n") + "\n"));
    let (_, CompactionStep::Commit(by)) =
        attempt(&transcript, CompactionTrigger::LimitReached, 1000, &["the gist", "complete"])
    else {
        panic!()
    };
    transcript.compact(by).unwrap();
    expect![[r#"
        This conversation was compacted: what came before the messages below is left out. The tool query_session reads it, query_memory finds words in it.

        What the person said in it, word for word, oldest first:

        <said>
        /speckit.clarify the port
        [added by Crow: speckit/clarify]
        </said>

        What happened in it, as you noted it down:

        <summary>
        the gist
        </summary>
    "#]]
    .assert_eq(&front(&transcript));
}

#[test]
fn last_prompt_by_crow_stays_as_excerpt() {
    let mut transcript = conversation("prompt 10 | reply 10");
    let task = format!("speckit/task: Build T001. {}Then report.", "x".repeat(8000));
    prompt_of(&mut transcript, &[&task]);
    let (_, CompactionStep::Commit(by)) =
        attempt(&transcript, CompactionTrigger::Overflow, 1000, &["the gist", "complete"])
    else {
        panic!()
    };
    transcript.compact(by).unwrap();
    expect![[r#"
        This conversation was compacted: what came before the messages below is left out. The tool query_session reads it, query_memory finds words in it.

        What Crow said by itself, oldest first:

        <added>
        [added by Crow: speckit/task]
        Build T001. xxxxxxxxxxxxxxxxxxxxxxxxxxxx
        [… 7514 bytes omitted …]
        xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxThen report.
        </added>

        What happened in it, as you noted it down:

        <summary>
        the gist
        </summary>
    "#]]
    .assert_eq(&front(&transcript).replace(&"x".repeat(100), ""));
}

/// The message before the entries that stay.
fn front(transcript: &Transcript) -> String {
    match transcript.for_model().unwrap().steps().next() {
        Some(ModelStep::Prompt(foreword)) => foreword.text() + "\n",
        other => panic!("{other:?}"),
    }
}

#[test]
fn client_resource_counts_as_user_content_for_any_uri() {
    let mut transcript = conversation("");
    let id = transcript.next_message_id();
    let resource =
        |uri: &str| ContentPart::Resource { uri: uri.to_owned(), text: "the log".to_owned(), mime: None };
    let parts = ["crow:speckit/report", "crow:skills", "crow:undone"].map(resource);
    let prompt = Prompt { id, parts: parts.to_vec() };
    assert!(prompt.has_user_content() && prompt.parts.iter().all(|part| part.crow_part().is_none()));
    transcript.push(TranscriptEntry::Prompt(prompt)).unwrap();
    say(&mut transcript, "reply", 500);
    prompt_of(&mut transcript, &["go on"]);
    let (_, CompactionStep::Commit(by)) =
        attempt(&transcript, CompactionTrigger::LimitReached, 1000, &["the gist", "complete"])
    else {
        panic!()
    };
    transcript.compact(by).unwrap();
    let front = front(&transcript);
    let said = front.split("<said>").nth(1).and_then(|rest| rest.split("</said>").next()).unwrap();
    expect![[r#"

        [attached: crow:speckit/report]
        the log
        [attached: crow:skills]
        the log
        [attached: crow:undone]
        the log
    "#]]
    .assert_eq(said);
}
