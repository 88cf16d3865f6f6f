//! The connection to a NATS server, which is made again whenever it breaks, and the clock of this crate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_nats::{Client, ConnectOptions};
use crow_core::{NatsCredentials, NatsServer};
use tokio::time::Instant;

/// Time to connect and log in.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Messages that wait in one subscription: more than a window of frames, with its acknowledgements and repetitions.
const SUBSCRIPTION_CAPACITY: usize = 256;

/// The longest pause between two attempts to reach a server again.
const RECONNECT_DELAY_MAX: Duration = Duration::from_secs(4);

/// Connects to a server. `name` is that of the parent or worker, `role` what it is; the error is the reason.
pub(crate) async fn connect(server: &NatsServer, role: &str, name: &str) -> Result<Client, String> {
    let was_connected = Arc::new(AtomicBool::new(false));
    let is_again = was_connected.clone();
    let options = ConnectOptions::new()
        .name(format!("crow-cli {role} {name}"))
        // A user may be limited to inboxes with its own name.
        .custom_inbox_prefix(format!("_INBOX.{name}"))
        .connection_timeout(CONNECT_TIMEOUT)
        .subscription_capacity(SUBSCRIPTION_CAPACITY)
        // The client waits before its very first attempt, too.
        .reconnect_delay_callback(move |n_attempts| match is_again.load(Ordering::Relaxed) {
            true => reconnect_delay(n_attempts),
            false => reconnect_delay(n_attempts.saturating_sub(1)),
        });
    let options = match &server.credentials {
        NatsCredentials::None => options,
        NatsCredentials::Token(token) => options.token(token.clone()),
        NatsCredentials::Password { user, password } => {
            options.user_and_password(user.clone(), password.clone())
        }
        NatsCredentials::CredentialsFile(path) => options
            .credentials_file(path)
            .await
            .map_err(|error| format!("could not read the credentials {}: {error}", path.display()))?,
        NatsCredentials::NkeyFile(path) => {
            let seed = tokio::fs::read_to_string(path)
                .await
                .map_err(|error| format!("could not read the NKey {}: {error}", path.display()))?;
            options.nkey(seed.trim().to_owned())
        }
    };
    let options = match &server.tls_ca_file {
        Some(path) => options.add_root_certificates(path.clone()).require_tls(true),
        None => options,
    };
    let urls: Vec<String> = server.urls.split(',').map(|url| url.trim().to_owned()).collect();
    let client = options.connect(urls).await.map_err(|error| error.to_string())?;
    was_connected.store(true, Ordering::Relaxed);
    Ok(client)
}

/// Parents and workers of a server that restarts come back spread over time.
fn reconnect_delay(n_attempts: usize) -> Duration {
    let delay = RECONNECT_DELAY_MAX.min(Duration::from_millis(100 * n_attempts as u64));
    let mut byte = [0];
    if getrandom::fill(&mut byte).is_err() {
        tracing::debug!("no random numbers: the pause before a reconnection is not spread");
    }
    delay * (128 + u32::from(byte[0]) / 2) / 256
}

/// Returns the time by the clock of the wall, since 1970.
pub(crate) fn now_in_milliseconds() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_millisecond()).unwrap_or_default()
}

/// A clock for how long something did not happen, which also counts the time in which the machine was suspended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FleetClock {
    start: Instant,
    wall_start: jiff::Timestamp,
}

impl FleetClock {
    pub(crate) fn start() -> Self {
        Self { start: Instant::now(), wall_start: jiff::Timestamp::now() }
    }

    /// Returns the time since the start: by the clock that stands still in suspension, or by that of the wall, which may be
    /// set, whichever says more.
    pub(crate) fn now(&self) -> Duration {
        let wall = jiff::Timestamp::now().duration_since(self.wall_start);
        self.start.elapsed().max(wall.try_into().unwrap_or_default())
    }

    /// Waits until this time, unless the machine is suspended meanwhile.
    pub(crate) async fn sleep_until(&self, time: Duration) {
        tokio::time::sleep(time.saturating_sub(self.now())).await;
    }
}
