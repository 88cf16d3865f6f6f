//! The answer to a request that is not accepted.

use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;

use super::response::SocketResponse;

/// The reason for a rejection.
#[derive(Debug)]
pub(super) struct RequestRefusal {
    status: StatusCode,
    reason: &'static str,
    header: Option<(HeaderName, &'static str)>,
}

impl RequestRefusal {
    pub(super) fn new(status: StatusCode, reason: &'static str) -> Self {
        Self { status, reason, header: None }
    }

    pub(super) fn with_header(self, name: HeaderName, value: &'static str) -> Self {
        Self { header: Some((name, value)), ..self }
    }

    pub(super) fn into_response(self) -> SocketResponse {
        let body = Full::new(Bytes::from(format!("{}\n", self.reason)));
        let mut response = Response::new(body.map_err(|never| match never {}).boxed_unsync());
        *response.status_mut() = self.status;
        let close = (header::CONNECTION, "close");
        let plain = (header::CONTENT_TYPE, "text/plain");
        for (name, value) in self.header.into_iter().chain([plain, close]) {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}
