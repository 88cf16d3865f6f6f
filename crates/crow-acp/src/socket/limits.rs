//! Limits and settings that both ends share.

use std::time::Duration;

use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use crate::transport::LINE_BYTES_MAX;

/// The default path of an agent's URL.
pub(super) const DEFAULT_PATH: &str = "/acp";

/// The largest message, as on stdio.
pub(super) const MESSAGE_BYTES_MAX: usize = LINE_BYTES_MAX as usize;

/// The size of one read; enough for most messages at once, and each idle connection has a buffer of this size.
const READ_BUFFER_BYTES: usize = 64 * 1024;

/// The interval between pings: half of the silence that proxies and routers commonly permit.
pub(super) const PING_INTERVAL: Duration = Duration::from_secs(15);

/// The wait for the other side's close frame.
pub(super) const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

pub(super) fn websocket_config() -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX))
}
