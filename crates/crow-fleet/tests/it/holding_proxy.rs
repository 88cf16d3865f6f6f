//! A way to a server on which answers can be held, as a slow network holds them.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use tokio::sync::oneshot;

/// A proxy for one client.
pub(crate) struct HoldingProxy {
    pub(crate) url: String,
    answers: Answers,
}

/// The way from the server to the client.
#[derive(Default, Clone)]
struct Answers(Arc<Mutex<AnswersState>>);

#[derive(Default)]
struct AnswersState {
    client: Option<TcpStream>,
    hold: Option<Hold>,
}

struct Hold {
    bytes: Vec<u8>,
    text: &'static str,
    /// Told when the bytes contain the text.
    arrival: Option<oneshot::Sender<()>>,
}

impl HoldingProxy {
    /// Starts a proxy before the server at this address.
    pub(crate) fn start(server_url: &str) -> Self {
        let server = server_url.strip_prefix("nats://").expect("it is an address of NATS").to_owned();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port");
        let url = format!("nats://{}", listener.local_addr().expect("it is bound"));
        let answers = Answers::default();
        let way = answers.clone();
        thread::spawn(move || {
            let (mut client, _) = listener.accept().expect("the client connects");
            let mut server = TcpStream::connect(server).expect("the server runs");
            way.lock().client = Some(client.try_clone().expect("it is open"));
            let mut requests = server.try_clone().expect("it is open");
            thread::spawn(move || std::io::copy(&mut client, &mut requests));
            let mut buffer = [0; 64 * 1024];
            while let Ok(n_bytes @ 1..) = server.read(&mut buffer) {
                way.lock().pass(&buffer[..n_bytes]);
            }
        });
        Self { url, answers }
    }

    /// Holds what the server sends from now on; the result is told once that contains this text.
    pub(crate) fn hold(&self, text: &'static str) -> oneshot::Receiver<()> {
        let (told, arrival) = oneshot::channel();
        self.answers.lock().hold = Some(Hold { bytes: Vec::new(), text, arrival: Some(told) });
        arrival
    }

    /// Lets through what was held.
    pub(crate) fn release(&self) {
        let mut answers = self.answers.lock();
        let hold = answers.hold.take().expect("it holds");
        answers.pass(&hold.bytes);
    }
}

impl Answers {
    fn lock(&self) -> MutexGuard<'_, AnswersState> {
        self.0.lock().expect("no panic")
    }
}

impl AnswersState {
    fn pass(&mut self, bytes: &[u8]) {
        if let Some(hold) = &mut self.hold {
            hold.bytes.extend_from_slice(bytes);
            if String::from_utf8_lossy(&hold.bytes).contains(hold.text)
                && let Some(arrival) = hold.arrival.take()
            {
                arrival.send(()).expect("the test waits");
            }
        } else if let Some(client) = &mut self.client {
            // A client that is gone needs no answers.
            drop(client.write_all(bytes));
        }
    }
}
