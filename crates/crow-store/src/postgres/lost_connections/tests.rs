use std::{
    io::{self, Read as _, Write as _},
    net::TcpListener,
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use crow_core::SessionId;

use crate::{
    PostgresAddress,
    sql::{DatabaseBackend, LeaseKey, TransactionBody, TransactionKind},
    tests::server,
};

/// Copies bytes, or swallows them once the flag is set.
fn copy(mut from: UnixStream, mut to: UnixStream, is_frozen: &AtomicBool) -> io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        match from.read(&mut buffer)? {
            0 if is_frozen.load(Ordering::SeqCst) => return Ok(()),
            0 => return to.shutdown(std::net::Shutdown::Write),
            _ if is_frozen.load(Ordering::SeqCst) => {}
            n_bytes => to.write_all(&buffer[..n_bytes])?,
        }
    }
}

/// Forwards a connection to a server, and those after it with flags of their own.
fn start_proxy(listener: UnixListener, server: std::path::PathBuf, first: Arc<AtomicBool>) {
    thread::spawn(move || {
        let mut flag = first;
        for client in listener.incoming() {
            let is_frozen = std::mem::take(&mut flag);
            let (client, server) = (client.unwrap(), UnixStream::connect(&server).unwrap());
            let there = (client.try_clone().unwrap(), server.try_clone().unwrap(), is_frozen.clone());
            thread::spawn(move || copy(there.0, there.1, &there.2));
            thread::spawn(move || copy(server, client, &is_frozen));
        }
    });
}

#[test]
fn server_that_swallows_everything_is_unreachable() {
    // The system accepts connections to it.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for mode in ["disable", "require"] {
        let uri = format!("postgres://u@127.0.0.1:{port}/crow?sslmode={mode}");
        let connected = PostgresAddress::parse(&uri).unwrap().connect_within(Duration::from_millis(50));
        let error = connected.err().unwrap().to_string();
        assert!(error.contains("cannot be reached (the server did not answer within 50ms)"), "{error}");
    }
}

#[test]
fn connection_without_an_answer_is_lost_and_its_lease_is_free() {
    let Some(database) = server::Database::new() else { return };
    let directory = tempfile::tempdir().unwrap();
    let uri = database.uri();
    let (_, server) = uri.split_once("host=").unwrap();
    let (server, _) = server.split_once('&').unwrap();
    let socket = ".s.PGSQL.5432";
    let listener = UnixListener::bind(directory.path().join(socket)).unwrap();
    let is_frozen = Arc::new(AtomicBool::new(false));
    start_proxy(listener, Path::new(server).join(socket), is_frozen.clone());
    let uri = uri.replacen(server, &directory.path().display().to_string(), 1);
    let address = PostgresAddress::parse(&uri).unwrap();
    let key = LeaseKey::Session(SessionId::new("brave-otter"));
    let mut backend = address.connect().unwrap();
    backend.acquire_lease(&key).unwrap();
    is_frozen.store(true, Ordering::SeqCst);
    backend.connection.answer_limit = Duration::from_millis(10);
    let query: TransactionBody<'_> =
        &mut |sql| sql.query("SELECT count(*) FROM sessions", &[], &mut |_| Ok(()));
    let error = backend.run_transaction(TransactionKind::Read, query).unwrap_err();
    assert!(error.to_string().contains("the server did not answer within 10ms"), "{error}");
    assert!(backend.is_lost());
    Box::new(backend).abandon();
    address.connect().unwrap().acquire_lease(&key).unwrap();
}
