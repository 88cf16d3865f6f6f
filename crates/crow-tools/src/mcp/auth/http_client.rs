//! The HTTP client of a login: sends only to encrypted addresses, or to this machine for a server on it. Follows no
//! redirects.

use std::time::Duration;

use reqwest::{Client, Request, Url};
use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};

use super::super::http::{build_sign_in_clients, is_loopback};

/// Some authorization servers start slowly.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Far more than the metadata of an authorization server.
const BODY_BYTES_MAX: usize = 1024 * 1024;

/// Reason why a request was not sent or its response not accepted.
#[derive(Debug, thiserror::Error)]
enum SignInHttpError {
    #[error("it gave an address that is not https")]
    NotEncrypted,
    #[error("it gave an address on this machine")]
    Loopback,
    #[error("it answered with more than {BODY_BYTES_MAX} bytes")]
    TooLong,
    #[error("{0}")]
    Failed(String),
}

/// The HTTP clients of a login.
pub(super) struct SignInHttpClient {
    local: Client,
    remote: Client,
    /// Whether the MCP server itself is on this machine.
    is_local: bool,
}

impl SignInHttpClient {
    /// Builds the clients for the login at the server with this address.
    pub(super) async fn for_server(server: &Url) -> Result<Self, String> {
        let (local, remote) = build_sign_in_clients().await?;
        Ok(Self { local, remote, is_local: is_loopback(server) })
    }

    /// A remote server could direct requests to programs on this machine.
    fn client_for(&self, url: &Url) -> Result<&Client, SignInHttpError> {
        match (is_loopback(url), url.scheme()) {
            (true, "http") if self.is_local => Ok(&self.local),
            (true, _) if !self.is_local => Err(SignInHttpError::Loopback),
            (_, "https") => Ok(&self.remote),
            (_, _) => Err(SignInHttpError::NotEncrypted),
        }
    }

    async fn send_request(&self, mut request: Request) -> Result<http::Response<Vec<u8>>, SignInHttpError> {
        let client = self.client_for(request.url())?;
        *request.timeout_mut() = Some(REQUEST_TIMEOUT);
        let failed =
            |error: reqwest::Error| SignInHttpError::Failed(super::super::request_error::root_cause(&error));
        let mut response = client.execute(request).await.map_err(failed)?;
        let mut builder = http::Response::builder().status(response.status());
        for (name, value) in response.headers() {
            builder = builder.header(name, value);
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if body.len() + chunk.len() > BODY_BYTES_MAX {
                return Err(SignInHttpError::TooLong);
            }
            body.extend_from_slice(&chunk);
        }
        builder.body(body).map_err(|error| SignInHttpError::Failed(error.to_string()))
    }
}

impl OAuthHttpClient for SignInHttpClient {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        Box::pin(async move {
            let request = Request::try_from(request.request)?;
            Ok(self.send_request(request).await?)
        })
    }
}
