//! The OAuth redirect endpoint: one address on this machine that accepts only the response to our own request.

use std::time::Duration;

use reqwest::Url;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::timeout,
};

use crate::title::to_title;

pub(super) const PATH: &str = "/callback";

/// Browsers send a few thousand bytes, including the cookies for this machine.
const HEAD_BYTES_MAX: usize = 32 * 1024;

/// Browsers open connections ahead of time and send nothing on them.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// Far more than a browser opens; another program could open them without end.
const CONNECTIONS_MAX: usize = 16;

/// The text that the browser shows at the end.
const ANSWERED_TEXT: &str =
    "Crow has received the response. Your terminal shows whether you are logged in; you can close this page.";

/// The query parameters of a callback.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OAuthCallback {
    pub(super) code: String,
    pub(super) issuer: Option<String>,
}

/// Waits for the callback with this state; requests with another state are answered with 404.
pub(super) async fn wait_for_callback(listener: &TcpListener, state: &str) -> Result<OAuthCallback, String> {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            visitor = listener.accept(), if connections.len() < CONNECTIONS_MAX => {
                let (stream, _) = visitor.map_err(|error| format!("could not wait for the browser: {error}"))?;
                let state = state.to_owned();
                connections.spawn(async move { timeout(HEAD_TIMEOUT, handle_connection(stream, &state)).await.ok().flatten() });
            }
            Some(heard) = connections.join_next() => {
                if let Ok(Some(answer)) = heard {
                    return answer;
                }
            }
        }
    }
}

/// Handles one connection; `None` if it is not the callback.
async fn handle_connection(mut stream: TcpStream, state: &str) -> Option<Result<OAuthCallback, String>> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let n_bytes = stream.read_buf(&mut head).await.ok()?;
        if n_bytes == 0 || head.len() > HEAD_BYTES_MAX {
            return None;
        }
    }
    let line = String::from_utf8_lossy(head.split(|&byte| byte == b'\r').next()?).into_owned();
    let answer = parse_request_line(&line, state);
    let (status, text) = match &answer {
        None => ("404 Not Found", "There is nothing here."),
        // Only the server's token response shows whether the code is valid.
        Some(Ok(_)) => ("200 OK", ANSWERED_TEXT),
        Some(Err(_)) => {
            ("200 OK", "You are not logged in. Your terminal shows why; you can close this page.")
        }
    };
    let page = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n\
         cache-control: no-store\r\nconnection: close\r\n\r\n{text}",
        text.len()
    );
    // A browser that disconnected has already sent its code.
    let _ = stream.write_all(page.as_bytes()).await;
    let _ = stream.shutdown().await;
    answer
}

/// Parses a request's first line.
fn parse_request_line(line: &str, state: &str) -> Option<Result<OAuthCallback, String>> {
    let target = line.strip_prefix("GET ")?.split(' ').next()?;
    let url = Url::parse("http://127.0.0.1").ok()?.join(target).ok()?;
    let value =
        |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    if url.path() != PATH || value("state").as_deref() != Some(state) {
        return None;
    }
    if let Some(error) = value("error") {
        let description = value("error_description").map(|words| format!(": {words}")).unwrap_or_default();
        return Some(Err(to_title(&format!("it was rejected ({error}){description}"))));
    }
    value("code").map(|code| Ok(OAuthCallback { code, issuer: value("iss") }))
}

#[cfg(test)]
mod tests {
    use super::parse_request_line;

    #[track_caller]
    fn assert_parsed(line: &str, expected: &str) {
        let read = match parse_request_line(line, "s1") {
            None => "nothing".to_owned(),
            Some(Ok(callback)) => format!("{} {:?}", callback.code, callback.issuer),
            Some(Err(reason)) => reason,
        };
        assert_eq!(read, expected, "{line}");
    }

    #[test]
    fn callback_requires_our_state() {
        assert_parsed("GET /callback?code=c%201&state=s1 HTTP/1.1", "c 1 None");
        assert_parsed("GET /callback?state=s1&code=c&iss=https%3A%2F%2Fa HTTP/1.1", "c Some(\"https://a\")");
        assert_parsed("GET /callback?code=c&state=s2 HTTP/1.1", "nothing");
        assert_parsed("GET /callback?code=c HTTP/1.1", "nothing");
        assert_parsed("GET /callback?state=s1 HTTP/1.1", "nothing");
        assert_parsed("GET /favicon.ico?code=c&state=s1 HTTP/1.1", "nothing");
        assert_parsed("POST /callback?code=c&state=s1 HTTP/1.1", "nothing");
        assert_parsed("GET /callback?error=access_denied&state=s2 HTTP/1.1", "nothing");
        assert_parsed(
            "GET /callback?error=access_denied&error_description=no%1b&state=s1 HTTP/1.1",
            "it was rejected (access_denied): no ",
        );
        assert_parsed("", "nothing");
    }
}
