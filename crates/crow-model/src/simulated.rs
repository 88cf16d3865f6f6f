//! The port for simulations: a provider that answers in the process of the caller.

use std::{fmt, io};

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use reqwest::{Body, Request, Response, StatusCode};

/// A provider without a network.
pub trait SimulatedProvider: fmt::Debug + Send + Sync {
    /// Answers a request with this body.
    fn send_request(&self, body: Vec<u8>) -> BoxFuture<'static, ProviderResponse>;

    /// Returns the jitter of the next retry, from 0 to 1.
    fn retry_jitter(&self) -> f64;
}

/// The response of a [`SimulatedProvider`].
pub struct ProviderResponse {
    pub status: u16,
    /// The body. An error breaks the connection.
    pub body: BoxStream<'static, io::Result<Vec<u8>>>,
}

impl fmt::Debug for ProviderResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderResponse").field("status", &self.status).finish_non_exhaustive()
    }
}

/// Sends a request to a simulated provider.
pub(crate) async fn send_simulated(provider: &dyn SimulatedProvider, request: &Request) -> Response {
    let body = request.body().and_then(Body::as_bytes).unwrap_or_default().to_vec();
    let ProviderResponse { status, body } = provider.send_request(body).await;
    let mut response = http::Response::new(Body::wrap_stream(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.into()
}
