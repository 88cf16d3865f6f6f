//! Subjects and records.

use crow_core::{Mode, NatsCredentials, NatsServer};
use serde_json::{Map, Value, json};

use crate::code::BundleRecord;
use crate::place::{FarmPlace, server_names};
use crate::record::{
    EndRecord, SavedRecord, SavedWork, TASK_BYTES_MAX, TakenRecord, TaskDelivery, TaskMessage, TaskParts,
};
use crate::subject::{RecordSubject, TaskAddress, is_subject_token};
use crate::ticket::TaskTicket;
use crate::worker::WorkerStatus;

fn message(prompt: &str) -> TaskMessage {
    TaskMessage::new(TaskParts {
        task: "t1".to_owned(),
        ticket: TaskTicket::for_test(5),
        prompt: prompt.to_owned(),
        model: None,
        mode: Mode::AcceptEdits,
        depth: 1,
        code: None,
    })
}

#[test]
fn names_with_a_meaning_in_subjects_are_rejected() {
    let names = ["build", "linux-x64_2", "", "a.b", "*", ">", "a b", "ä", &"x".repeat(65)];
    let valid: Vec<&str> = names.into_iter().filter(|name| is_subject_token(name)).collect();
    assert_eq!(valid, ["build", "linux-x64_2"]);
}

#[test]
fn subjects_are_read_as_they_were_written() {
    let address = TaskAddress { queue: "build".to_owned(), parent: "me".to_owned(), task: "t1".to_owned() };
    assert_eq!(address.task_subject(), "crow.task.build.now.me.t1");
    assert_eq!(TaskAddress::parse_task_subject(&address.task_subject()), Some(address.clone()));
    for subject in ["crow.task.build.now.me", "crow.task.build.now.me.t1.x", "crow.task.*.now.me.t1", ""] {
        assert_eq!(TaskAddress::parse_task_subject(subject), None, "{subject}");
    }
    let subject = address.end_subject("w1");
    assert_eq!(RecordSubject::parse(&subject), Some(RecordSubject { task: "t1", is_end: true }));
    let subject = address.taken_subject("w1");
    assert_eq!(RecordSubject::parse(&subject), Some(RecordSubject { task: "t1", is_end: false }));
    for subject in
        ["crow.record.build.w1.me.t1", "crow.record.build.w1.me.t1.x", "crow.record.build.w1.me.t1.end.x"]
    {
        assert_eq!(RecordSubject::parse(subject), None, "{subject}");
    }
}

#[test]
fn task_of_another_name_or_version_is_rejected() {
    let encoded = message("count").encode().unwrap();
    assert_eq!(TaskMessage::decode(&encoded, "t1"), Ok(message("count")));
    assert!(TaskMessage::decode(&encoded, "t2").is_err());
    let mut value: Value = serde_json::from_slice(&encoded).unwrap();
    value["version"] = json!(2);
    assert!(TaskMessage::decode(value.to_string().as_bytes(), "t1").is_err());
    value["version"] = json!(1);
    for (key, broken) in [("ticket", json!("ä".repeat(32))), ("ticket", json!("00")), ("mode", json!("root"))]
    {
        let mut value = value.clone();
        value[key] = broken;
        assert!(TaskMessage::decode(value.to_string().as_bytes(), "t1").is_err(), "{key}");
    }
    assert!(TaskMessage::decode(b"[]", "t1").is_err());
}

#[test]
fn task_that_is_too_long_is_rejected_on_both_sides() {
    let long = message(&"x".repeat(TASK_BYTES_MAX));
    assert!(long.encode().is_err());
    assert!(TaskMessage::decode(&serde_json::to_vec(&long).unwrap(), "t1").is_err());
}

#[test]
fn records_need_the_signature_of_their_task_and_kind() {
    let (ticket, other) = (TaskTicket::for_test(5), TaskTicket::for_test(6));
    let taken = TakenRecord {
        worker: "w1".to_owned(),
        sequence: 4,
        delivery: 1,
        is_given_back: false,
        goes_on: false,
    };
    let encoded = taken.encode(&ticket);
    assert_eq!(TakenRecord::decode(&encoded, &ticket), Some(taken));
    assert_eq!(TakenRecord::decode(&encoded, &other), None);
    assert_eq!(EndRecord::decode(&encoded, &ticket), None);
    assert_eq!(SavedRecord::decode(&encoded, &ticket), None);
    assert_eq!(TakenRecord::decode(b"", &ticket), None);
    let work = SavedWork {
        session: "s".to_owned(),
        first_cwd: "/first".into(),
        directory: "t-01234567".to_owned(),
        bundle: BundleRecord::with_name("b".to_owned(), b"bundle"),
    };
    let saved = SavedRecord { delivery: TaskDelivery { sequence: 4, number: 1 }, work: Some(work) };
    let encoded = saved.encode(&ticket).unwrap();
    assert_eq!(SavedRecord::decode(&encoded, &ticket), Some(saved));
    assert_eq!(SavedRecord::decode(&encoded, &other), None);
    assert_eq!(TakenRecord::decode(&encoded, &ticket), None);
}

#[test]
fn end_has_one_response_of_bounded_length() {
    let ticket = TaskTicket::for_test(5);
    let end = |response: Value| EndRecord {
        worker: "w1".to_owned(),
        response: response.as_object().cloned().unwrap(),
        missed_answer: None,
        code: None,
    };
    let good = end(json!({ "result": {} }));
    assert_eq!(EndRecord::decode(&good.encode(&ticket), &ticket), Some(good));
    for broken in [json!({}), json!({ "result": 1, "error": 2 }), json!({ "id": 1 })] {
        assert_eq!(EndRecord::decode(&end(broken).encode(&ticket), &ticket), None);
    }
    let long = end(json!({ "result": "x".repeat(300 * 1024) }));
    let read = EndRecord::decode(&long.encode(&ticket), &ticket).unwrap();
    let keys: Map<String, Value> = read.response;
    assert_eq!(keys["error"]["message"], "the agent's response is too long to be sent");
}

#[test]
fn place_has_no_credentials_and_shows_no_secret() {
    let server = |urls: &str| NatsServer {
        urls: urls.to_owned(),
        credentials: NatsCredentials::Token("t0ken".to_owned()),
        tls_ca_file: None,
    };
    let address = TaskAddress { queue: "build".to_owned(), parent: "me".to_owned(), task: "t1".to_owned() };
    let names = server_names(&server("nats://user:s3cret@One, tls://two:4333/"));
    let place = FarmPlace::new(names, &address, message("count"));
    let encoded = place.encode().unwrap();
    let decoded = FarmPlace::decode(&encoded).unwrap();
    assert_eq!((&decoded, decoded.address(), decoded.prompt()), (&place, address, "count"));
    assert_eq!(
        (place.servers(), format!("{place:?}")),
        ("one:4222, two:4333".to_owned(), "FarmPlace(t1 in build)".to_owned())
    );
    assert!(!encoded.contains("s3cret") && !encoded.contains("t0ken"));
    let old: FarmPlace = serde_json::from_value({
        let mut fields: Value = serde_json::from_str(&encoded).unwrap();
        fields["given_at"] = json!(0);
        fields
    })
    .unwrap();
    assert_eq!((place.is_old(), old.is_old()), (false, true));
    for (urls, is_there) in [("tls://other@one", true), ("nats://one:4333", false), ("a,two:4333", true)] {
        assert_eq!(place.is_at(&server(urls)), is_there, "{urls}");
    }
    let broken = [
        ("{}".to_owned(), "it cannot be read"),
        (encoded.replacen("\"version\":1", "\"version\":2", 1), "its version is 2, and this Crow knows 1"),
        (encoded.replace("\"build\"", "\"build.>\""), "its names are not those of a task"),
    ];
    for (text, reason) in broken {
        assert_eq!(FarmPlace::decode(&text).unwrap_err(), reason);
    }
}

#[test]
fn answers_of_workers_are_checked_before_they_are_shown() {
    let answer = |worker: &str, os: &str| {
        serde_json::json!({
            "worker": worker, "queue": "build", "slots": 2, "running": 1, "ended": 3, "tokens": 315,
            "os": os, "arch": "x86_64", "version": "1.0.0",
        })
    };
    let is_shown = |answer: &serde_json::Value| WorkerStatus::decode(answer.to_string().as_bytes()).is_some();
    assert!(is_shown(&answer("w1", "linux")));
    let long = "x".repeat(33);
    for (worker, os) in
        [("w1\u{1b}[2J", "linux"), ("w1", "\u{1b}[2J"), ("w1", "a b"), ("w1", &long), ("", "linux")]
    {
        assert!(!is_shown(&answer(worker, os)), "{worker:?} {os:?}");
    }
    assert_eq!(WorkerStatus::decode(b"nonsense"), None);
}
