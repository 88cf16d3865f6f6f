//! A client that never answers, with a clock that runs when everybody waits.

use crow_acp::{Abilities, About, Answered, Answers, Hello, Incoming, Question, Subject};
use crow_core::{CallId, Facets, SessionId, ToolKind, Touch};
use serde_json::Map;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_answers_is_given_up() {
    let (to_agent, to_client) = crow_acp::duplex();
    let (events, _unanswered) = mpsc::channel(8);
    let (incoming, _requests) = mpsc::channel::<Incoming>(8);
    let (connected, client) = oneshot::channel();
    let about = About { version: "1", program: None, reads_images: true };
    let agent = tokio::spawn(crow_acp::serve(to_client, about, incoming, |client| {
        connected.send(client).expect("the test waits for it");
    }));
    let facets =
        Facets { title: "write".into(), kind: ToolKind::Edit, locations: Vec::new(), touch: Touch::Nothing };
    let hello = Hello { version: "1", abilities: Abilities::default(), keeps_words: false };
    let answered = crow_acp::drive(to_agent, hello, events, async |_| {
        let question = Question {
            subject: Subject::Call,
            call: CallId::at(1, 0),
            facets: &facets,
            arguments: &Map::new(),
            preview: &[],
            why: None,
            answers: Answers::Once,
        };
        client.await.unwrap().ask(&SessionId::new("s"), question, &CancellationToken::new()).await
    });
    let expected = Answered::Nobody { why: "nobody answered for twelve hours".into() };
    assert_eq!(answered.await.unwrap(), expected);
    agent.await.unwrap().unwrap();
}
