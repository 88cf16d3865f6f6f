//! Three NATS servers with JetStream for one test, which store each message as often as they are asked to.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use std::net::{Ipv4Addr, TcpListener};

use serde_json::Value;

use crate::nats_request::{stream_info, stream_len, wait_for_answer};
use crate::nats_server::NatsServer;

/// Servers; one of them may be lost.
const N_SERVERS: usize = 3;

/// A running cluster.
#[derive(Debug)]
pub struct NatsCluster {
    servers: Vec<NatsServer>,
}

impl NatsCluster {
    /// Starts the servers and waits until each of them answers requests to JetStream; `None` where `CROW_TEST_NATS` does
    /// not say which program it is.
    ///
    /// # Panics
    /// If they do not become ready.
    pub fn start() -> Option<Self> {
        // They are free ports as long as nothing else takes them in the next milliseconds.
        let listeners: Vec<TcpListener> = (0..N_SERVERS)
            .map(|_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("there is a free port"))
            .collect();
        let addresses: Vec<String> = listeners
            .iter()
            .map(|listener| listener.local_addr().expect("it is bound").to_string())
            .collect();
        drop(listeners);
        let routes: Vec<String> = addresses.iter().map(|address| format!("nats-route://{address}")).collect();
        let routes = routes.join(", ");
        let mut servers = Vec::new();
        for (index, address) in addresses.iter().enumerate() {
            let cluster = format!("cluster {{ name: crow, listen: {address:?}, routes: [{routes}] }}");
            servers.push(NatsServer::start_with(&format!("server_name: {}\n{cluster}", server_name(index)))?);
        }
        let cluster = Self { servers };
        for server in &cluster.servers {
            wait_for_answer(server.port(), "$JS.API.INFO");
        }
        Some(cluster)
    }

    /// Returns the addresses of all servers, separated by commas.
    pub fn url(&self) -> String {
        let urls: Vec<String> = self.servers.iter().map(NatsServer::url).collect();
        urls.join(",")
    }

    /// Returns the index of the server that leads a stream, once there is one.
    ///
    /// # Panics
    /// If there is none in time.
    pub fn stream_leader(&self, stream: &str) -> usize {
        let info: Value = stream_info(self.running_port(), stream);
        let leader = info["cluster"]["leader"].as_str().unwrap_or_default();
        (0..N_SERVERS)
            .find(|index| server_name(*index) == leader)
            .unwrap_or_else(|| panic!("the stream {stream} has no leader: {info}"))
    }

    /// Returns the number of messages in a stream.
    ///
    /// # Panics
    /// If no server knows it in time.
    pub fn stream_len(&self, stream: &str) -> u64 {
        stream_len(self.running_port(), stream)
    }

    fn running_port(&self) -> u16 {
        let running = self.servers.iter().find(|server| server.is_running());
        running.expect("a server runs").port()
    }

    /// Kills a server. What clients have of it stays.
    pub fn kill(&mut self, index: usize) {
        self.servers[index].kill();
    }

    /// Starts a killed server again, at the same address and with the same data, and waits until it answers requests.
    pub fn resume(&mut self, index: usize) {
        self.servers[index].resume();
        wait_for_answer(self.servers[index].port(), "$JS.API.INFO");
    }

    /// Returns the number of servers.
    pub fn n_servers(&self) -> usize {
        self.servers.len()
    }
}

fn server_name(index: usize) -> String {
    format!("s{}", index + 1)
}
