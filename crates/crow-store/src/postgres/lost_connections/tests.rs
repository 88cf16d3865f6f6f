use std::{
    io::{self, Read as _, Write as _},
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
    sql::{DatabaseBackend, LeaseKey},
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
fn lost_connection_is_closed_beside_the_store_and_its_lease_is_free() {
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
    backend.client.is_valid(Duration::from_millis(10)).unwrap_err();
    Box::new(backend).abandon();
    address.connect().unwrap().acquire_lease(&key).unwrap();
}
