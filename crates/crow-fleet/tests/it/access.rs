//! Credentials, the rights of users, and messages of others.

use base64::{Engine, prelude::BASE64_STANDARD as STANDARD};
use crow_core::{FarmAddress, NatsCredentials, NatsServer as ServerAddress};
use crow_fleet::{FarmConnections, FleetObserver};
use expect_test::expect;
use nkeys::KeyPair;

use super::code::{make_repository, open_gate, send_code, slow, worktree};
use super::world::{RunningTask, World, run, soon, start_worker};

/// The rights of `docs/user/guides/fleet.md`, for workers `w1` and `w2` and a parent `me` of the queue `build`.
pub(crate) const RIGHTS: &str = r#"
    { user: admin, password: a }
    { user: w1, password: w, permissions: {
        publish: [
            "$JS.API.CONSUMER.INFO.CROW_TASKS.build-now", "$JS.API.CONSUMER.MSG.NEXT.CROW_TASKS.build-now",
            "$JS.ACK.CROW_TASKS.build-now.>", "$JS.API.DIRECT.GET.CROW_TASKS.crow.task.build.>",
            "$JS.API.DIRECT.GET.CROW_RECORDS", "crow.record.build.w1.>", "crow.up.build.w1.>",
            "$JS.API.DIRECT.GET.CROW_CODE.crow.code.build.>", "$JS.API.DIRECT.GET.CROW_CODE.crow.result.build.>",
            "crow.result.build.w1.>"
        ], subscribe: ["_INBOX.w1.>", "crow.down.build.w1.>", "crow.status.build"], allow_responses: true } }
    { user: w2, password: w, permissions: {
        publish: [
            "$JS.API.CONSUMER.INFO.CROW_TASKS.build-now", "$JS.API.CONSUMER.MSG.NEXT.CROW_TASKS.build-now",
            "$JS.ACK.CROW_TASKS.build-now.>", "$JS.API.DIRECT.GET.CROW_TASKS.crow.task.build.>",
            "$JS.API.DIRECT.GET.CROW_RECORDS", "crow.record.build.w2.>", "crow.up.build.w2.>",
            "$JS.API.DIRECT.GET.CROW_CODE.crow.code.build.>", "$JS.API.DIRECT.GET.CROW_CODE.crow.result.build.>",
            "crow.result.build.w2.>"
        ], subscribe: ["_INBOX.w2.>", "crow.down.build.w2.>", "crow.status.build"], allow_responses: true } }
    { user: me, password: m, permissions: {
        publish: [
            "crow.task.build.*.me.*", "crow.down.build.*.me.*",
            "$JS.API.DIRECT.GET.CROW_TASKS.crow.task.build.*.me.*",
            "$JS.API.STREAM.MSG.DELETE.CROW_TASKS", "$JS.API.STREAM.MSG.DELETE.CROW_RECORDS",
            "$JS.API.CONSUMER.CREATE.CROW_RECORDS.*.crow.record.build.*.me.>",
            "$JS.API.CONSUMER.MSG.NEXT.CROW_RECORDS.*", "$JS.API.DIRECT.GET.CROW_RECORDS",
            "crow.code.build.me.>", "$JS.API.DIRECT.GET.CROW_CODE.crow.result.build.*.me.>",
            "$JS.API.STREAM.MSG.DELETE.CROW_CODE"
        ], subscribe: ["_INBOX.me.>", "crow.up.build.*.me.*"] } }
"#;

pub(crate) fn password(user: &str, password: &str) -> NatsCredentials {
    NatsCredentials::Password { user: user.to_owned(), password: password.to_owned() }
}

pub(crate) fn farm(world: &World, credentials: NatsCredentials) -> FarmAddress {
    FarmAddress { server: ServerAddress { credentials, ..world.address() }, ..world.farm() }
}

#[test]
fn users_with_the_rights_of_the_guide_do_all_they_need() {
    run(async {
        let Some(mut world) = World::start_with(&format!("authorization {{ users: [{RIGHTS}] }}")) else {
            return;
        };
        // An administrator makes the queue.
        let mut options = world.worker_options(&[]);
        options.server.credentials = password("admin", "a");
        start_worker(options).await.expect("it connects").drain().await;
        let mut options = world.worker_options(&["where", "asks", &slow(&world)]);
        (options.server.credentials, options.name) = (password("w1", "w"), "w1".to_owned());
        let worker = start_worker(options).await.expect("it connects");
        let farms = FarmConnections::default();
        let farm = farm(&world, password("me", "m"));
        let code = send_code(&farms, &farm, &make_repository(&world), &world).await.expect("it is sent");
        let task = RunningTask::start_with_code(&farms, &farm, code.clone()).await;
        let mut task = task.expect("the server is reached");
        task.until("session/request_permission", Some("allow_once")).await;
        let operator = ServerAddress { credentials: password("admin", "a"), ..world.address() };
        let observer = FleetObserver::connect(&operator).await.expect("it connects");
        let answered = async {
            loop {
                let overview = observer.read_overview(None).await.expect("it is read");
                if let Some(seen) = overview.workers.into_iter().next() {
                    break seen;
                }
            }
        };
        let seen = soon("the worker answers", answered).await;
        assert_eq!((seen.worker.as_str(), seen.running), ("w1", 1));
        task.until("works in", None).await;
        std::fs::write(worktree(&task).join("made"), "").expect("it can be written");
        open_gate(&world);
        let log = task.end(None).await;
        assert!(log.contains("question: rm -rf build") && log.ends_with("Ok(EndTurn)\n"), "{log}");
        let fetched = farms.fetch_code(&code).await.expect("it came back").expect("a file was made");
        fetched.delete().await;
        farms.close().await;
        worker.drain().await;
        assert_eq!(count_chunks(&world).await, 0);
    });
}

async fn connect(world: &World, user: &str, password: &str) -> async_nats::Client {
    let options = async_nats::ConnectOptions::with_user_and_password(user.into(), password.into());
    options.connect(world.server.url()).await.expect("it connects")
}

/// Counts the messages with code, as the administrator.
async fn count_chunks(world: &World) -> u64 {
    let jetstream = async_nats::jetstream::new(connect(world, "admin", "a").await);
    let stream = jetstream.get_stream("CROW_CODE").await.expect("it exists");
    stream.cached_info().state.messages
}

#[test]
fn users_cannot_store_the_code_of_others() {
    run(async {
        let Some(mut world) = World::start_with(&format!("authorization {{ users: [{RIGHTS}] }}")) else {
            return;
        };
        let mut options = world.worker_options(&[]);
        options.server.credentials = password("admin", "a");
        start_worker(options).await.expect("it connects").drain().await;
        for (user, password, foreign) in [
            ("w1", "w", ["crow.result.build.w2.me.x.0", "crow.code.build.me.x.0"]),
            ("me", "m", ["crow.result.build.w1.me.x.0", "crow.code.build.you.x.0"]),
        ] {
            let client = connect(&world, user, password).await;
            for subject in foreign {
                client.publish(subject, "foreign".into()).await.expect("it is sent");
            }
            client.flush().await.expect("the server has read it");
        }
        assert_eq!(count_chunks(&world).await, 0);
    });
}

#[test]
fn wrong_credentials_are_named() {
    run(async {
        let Some(mut world) = World::start_with("authorization { token: right }") else { return };
        let farms = FarmConnections::default();
        for credentials in [NatsCredentials::None, NatsCredentials::Token("wrong".to_owned())] {
            let task = RunningTask::start(&farms, &farm(&world, credentials), "count").await;
            let reason = task.map(drop).expect_err("it is rejected");
            expect!["authorization violation: nats: authorization violation"].assert_eq(&reason);
        }
        let mut options = world.worker_options(&[]);
        options.server.credentials = NatsCredentials::Token("right".to_owned());
        start_worker(options).await.expect("it connects").drain().await;
    });
}

#[test]
fn nkey_logs_in() {
    run(async {
        let key = KeyPair::new_user();
        let config = format!("authorization {{ users: [{{ nkey: {} }}] }}", key.public_key());
        let Some(mut world) = World::start_with(&config) else { return };
        let file = world.path("user.nk");
        std::fs::write(&file, format!("{}\n", key.seed().expect("it has one"))).expect("it can be written");
        let mut options = world.worker_options(&[]);
        options.server.credentials = NatsCredentials::NkeyFile(file.clone());
        let worker = start_worker(options).await.expect("it connects");
        let farms = FarmConnections::default();
        let task = RunningTask::start(&farms, &farm(&world, NatsCredentials::NkeyFile(file)), "count").await;
        assert!(task.expect("the server is reached").end(None).await.contains("Ok(EndTurn)"));
        worker.drain().await;
    });
}

fn to_pem(label: &str, der: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der))
}

#[test]
fn server_needs_a_certificate_of_the_authority() {
    run(async {
        let own = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).expect("a certificate");
        let files = tempfile::tempdir().expect("a folder can be made");
        let (certificate, key) = (files.path().join("cert.pem"), files.path().join("key.pem"));
        std::fs::write(&certificate, to_pem("CERTIFICATE", own.cert.der())).expect("it can be written");
        std::fs::write(&key, to_pem("PRIVATE KEY", &own.signing_key.serialize_der()))
            .expect("it can be written");
        let config = format!("tls {{ cert_file: {certificate:?}, key_file: {key:?} }}");
        let Some(mut world) = World::start_with(&config) else { return };
        let mut options = world.worker_options(&[]);
        options.server.tls_ca_file = Some(certificate.clone());
        let worker = start_worker(options).await.expect("it connects");
        let trusting = ServerAddress { tls_ca_file: Some(certificate), ..world.address() };
        let farms = FarmConnections::default();
        let task =
            RunningTask::start(&farms, &FarmAddress { server: trusting, ..world.farm() }, "count").await;
        assert!(task.expect("the server is reached").end(None).await.contains("Ok(EndTurn)"));
        let stranger = RunningTask::start(&farms, &world.farm(), "count").await;
        assert!(stranger.is_err(), "its certificate is of no authority that the system knows");
        worker.drain().await;
    });
}

#[test]
fn forged_records_and_frames_are_dropped() {
    run(async {
        let Some(mut world) = World::start() else { return };
        let gate = world.path("gate");
        let slow = format!("slow={}", gate.display());
        let mut worker = world.start_worker(&[&slow]).await;
        let mut task = world.start_task("count").await;
        task.until("echo: count", None).await;
        assert_eq!(worker.taken().await, 1);
        let name = task.name().to_owned();
        let client = async_nats::connect(world.server.url()).await.expect("it connects");
        let jetstream = async_nats::jetstream::new(client.clone());
        // Another user of the same server, without the ticket.
        let end =
            br#"{"worker":"w9","response":{"result":{"stopReason":"refusal"}},"missed_answer":"forged"}"#;
        let forged = [end.to_vec(), vec![0; 32]].concat();
        for subject in ["end", "taken"].map(|kind| format!("crow.record.build.w9.me.{name}.{kind}")) {
            let stored = jetstream.publish(subject, forged.clone().into()).await.expect("it is sent");
            stored.await.expect("it is stored");
        }
        for subject in ["up", "down"].map(|kind| format!("crow.{kind}.build.w1.me.{name}")) {
            client.publish(subject, vec![1; 100].into()).await.expect("it is sent");
        }
        client.flush().await.expect("it is sent");
        std::fs::write(&gate, "").expect("the gate opens");
        let log = task.end(None).await;
        assert!(log.ends_with("Ok(EndTurn)\n") && !log.contains("forged"), "{log}");
        worker.drain().await;
    });
}
