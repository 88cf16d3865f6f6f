//! The cause of a failed request, without the address, which may contain a key.

use std::error::Error;

use rmcp::transport::streamable_http_client::{HttpStatusError, StreamableHttpError};

use super::http;
use crate::title::to_title;

/// Returns the innermost cause of a request error; the outer ones contain the address.
pub(super) fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut deepest = error;
    loop {
        let http_error = deepest.downcast_ref::<StreamableHttpError<reqwest::Error>>();
        let source = match http_error {
            Some(StreamableHttpError::Client(request)) => Some(request as &(dyn Error + 'static)),
            Some(StreamableHttpError::UnexpectedServerResponse(answer)) => {
                return format!("it answered {}", to_title(answer.trim_end_matches([' ', ':'])));
            }
            Some(StreamableHttpError::AuthRequired(_)) => return http::AUTHENTICATION_REQUIRED.to_owned(),
            Some(_) | None => deepest.source(),
        };
        match source {
            Some(source) => deepest = source,
            None => break,
        }
    }
    match deepest.downcast_ref::<reqwest::Error>() {
        Some(request) => request.status().map_or_else(
            || "the request failed".to_owned(),
            |status| format!("it answered HTTP {}", status.as_u16()),
        ),
        None if deepest.is::<HttpStatusError>() => format!("it answered {deepest}"),
        None => to_title(&deepest.to_string()),
    }
}
