//! Posts JSON to a server that is not a model, over the same clients: proxies, certificates and timeouts are theirs.

use std::time::Duration;

use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use crate::HttpClients;
use crate::failure::root_cause;
use crate::reply_stream::read_retry_after;

/// Longer answers are truncated.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// A request to a server.
#[derive(Debug, Clone, Copy)]
pub struct JsonPost<'a> {
    pub url: &'a str,
    /// Names and values; a value may be a secret.
    pub headers: &'a [(String, String)],
    pub body: &'a [u8],
    /// For the whole request.
    pub timeout: Duration,
}

/// The answer of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPostAnswer {
    pub status: u16,
    /// The wait that the server asked for.
    pub retry_after: Option<Duration>,
    /// The beginning of the body.
    pub body: Vec<u8>,
}

impl HttpClients {
    /// Posts JSON. An error is the reason, without the URL.
    pub async fn post_json(&self, post: JsonPost<'_>) -> Result<JsonPostAnswer, String> {
        let url = Url::parse(post.url).map_err(|error| format!("it is not a URL: {error}"))?;
        let mut headers = HeaderMap::new();
        for (name, value) in post.headers {
            let name = HeaderName::from_bytes(name.as_bytes());
            let (Ok(name), Ok(mut value)) = (name, HeaderValue::from_str(value)) else {
                return Err("a header has characters that are not permitted".to_owned());
            };
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let client = self.client_for(&url).await.map_err(|failure| failure.message)?;
        let request = client.post(url).headers(headers).body(post.body.to_vec()).timeout(post.timeout);
        let reason = |error: reqwest::Error| root_cause(&error.without_url());
        let mut response = request.send().await.map_err(reason)?;
        let mut body = Vec::new();
        let status = response.status().as_u16();
        let retry_after = read_retry_after(response.headers());
        while let Some(bytes) = response.chunk().await.map_err(reason)? {
            body.extend_from_slice(&bytes[..bytes.len().min(ANSWER_BYTES_MAX - body.len())]);
            if body.len() == ANSWER_BYTES_MAX {
                break;
            }
        }
        Ok(JsonPostAnswer { status, retry_after, body })
    }
}
