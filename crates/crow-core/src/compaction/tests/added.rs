//! What Crow says with the person's words and by itself, which nobody is to take for the person's.

use super::*;
use crate::CrowPart;

/// A prompt whose parts are `NAME: TEXT` for what Crow added and words for what was said.
fn prompt_of(transcript: &mut Transcript, parts: &[&str]) {
    let parts = parts.iter().map(|part| match part.split_once(": ") {
        Some((name, text)) => {
            ContentPart::FromCrow { what: CrowPart::parse(name).unwrap(), text: text.to_owned() }
        }
        None => ContentPart::Text((*part).to_owned()),
    });
    let id = transcript.next_message_id();
    transcript.push(TranscriptEntry::Prompt(Prompt { id, parts: parts.collect() })).unwrap();
}

#[test]
fn what_crow_added_is_not_what_the_person_said() {
    let mut transcript = conversation("");
    prompt_of(&mut transcript, &["/speckit.clarify the port", "speckit/clarify: Ask five questions."]);
    say(&mut transcript, "reply", 500);
    prompt_of(&mut transcript, &["speckit/task: Build T001."]);
    say(&mut transcript, "reply", 500);
    prompt_of(&mut transcript, &["go on"]);
    let (_, CompactionStep::Summarise { source }) =
        CompactionAttempt::start(&transcript, CompactionTrigger::Full, 1000)
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
        [… 1800 bytes left out …]
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
        attempt(&transcript, CompactionTrigger::Full, 1000, &["the gist", "complete"])
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
fn what_crow_wants_answered_stays_by_its_ends() {
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
        [… 7514 bytes left out …]
        xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxThen report.
        </added>

        What happened in it, as you noted it down:

        <summary>
        the gist
        </summary>
    "#]]
    .assert_eq(&front(&transcript).replace(&"x".repeat(100), ""));
}

/// What stands before the entries that are kept.
fn front(transcript: &Transcript) -> String {
    match transcript.for_model().unwrap().steps().next() {
        Some(ModelStep::Prompt(foreword)) => foreword.text() + "\n",
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_resource_of_the_client_is_the_persons_whatever_its_uri() {
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
        attempt(&transcript, CompactionTrigger::Full, 1000, &["the gist", "complete"])
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
