//! Servers that require authentication: the login, the stored tokens and their refresh.

use std::{
    collections::HashMap,
    fmt::Write as _,
    fs,
    os::unix::fs::PermissionsExt as _,
    sync::{Arc, Mutex},
};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use crow_core::{McpServer, McpTransport};
use expect_test::expect;
use reqwest::{Client, Url, redirect::Policy};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::CancellationToken;

use super::{
    Machine,
    mcp::{Session, until},
};
use crate::{McpSignIn, SignInStatus, forget_sign_in, sign_in_status};

/// An MCP server and its authorization server. Shared by its connections.
#[derive(Clone)]
struct Place {
    address: String,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// Its faults, as words.
    words: Vec<&'static str>,
    redirects: HashMap<String, String>,
    /// By code: the client and the challenge.
    codes: HashMap<String, (String, String)>,
    access: Vec<String>,
    refresh: Vec<String>,
    n_issued: u32,
    /// Delays the responses to refreshes until it is cancelled.
    held: Option<CancellationToken>,
    /// The requests, without random values.
    log: Vec<String>,
}

struct Request {
    method: String,
    target: Url,
    bearer: Option<String>,
    body: String,
}

/// Status, headers, body.
type Reply = (u16, Vec<String>, String);

impl Place {
    async fn open(words: &[&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let state = State { words: words.to_vec(), ..State::default() };
        let place = Self { address, state: Arc::new(Mutex::new(state)) };
        let served = place.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(served.clone().serve(stream));
            }
        });
        place
    }

    fn server(&self) -> McpServer {
        McpServer::new("web", McpTransport::Http { url: format!("{}/mcp", self.address), headers: vec![] })
    }

    fn is(&self, word: &str) -> bool {
        self.state.lock().unwrap().words.contains(&word)
    }

    fn log(&self) -> String {
        self.state.lock().unwrap().log.drain(..).map(|line| line + "\n").collect()
    }

    /// Makes all access tokens invalid.
    fn revoke(&self) {
        self.state.lock().unwrap().access.clear();
    }

    /// Holds back the responses to refreshes until the token is cancelled.
    fn hold_refreshes(&self) -> CancellationToken {
        let held = CancellationToken::new();
        self.state.lock().unwrap().held = Some(held.clone());
        held
    }

    /// Waits until a refresh has been requested.
    async fn wait_for_refresh(&self) {
        let is_refresh = |line: &String| line.starts_with("token by refresh_token");
        until("a refresh is requested", || self.state.lock().unwrap().log.iter().any(is_refresh)).await;
    }

    async fn serve(self, stream: TcpStream) -> Option<()> {
        let mut stream = BufReader::new(stream);
        loop {
            let mut head = Vec::new();
            loop {
                let mut line = String::new();
                stream.read_line(&mut line).await.ok().filter(|n_bytes| *n_bytes > 0)?;
                match line.trim_end() {
                    "" => break,
                    line => head.push(line.to_owned()),
                }
            }
            let header = |name: &str| {
                let lines = head.iter().filter_map(|line| line.split_once(": "));
                lines
                    .filter(|(key, _)| key.eq_ignore_ascii_case(name))
                    .map(|(_, value)| value.to_owned())
                    .next_back()
            };
            let mut body = vec![0; header("content-length").map_or(0, |n_bytes| n_bytes.parse().unwrap())];
            stream.read_exact(&mut body).await.ok()?;
            let mut words = head[0].split(' ');
            let request = Request {
                method: words.next()?.to_owned(),
                target: Url::parse(&self.address).unwrap().join(words.next()?).unwrap(),
                bearer: header("authorization")
                    .and_then(|value| value.strip_prefix("Bearer ").map(str::to_owned)),
                body: String::from_utf8(body).unwrap(),
            };
            let (status, headers, body) = self.reply(&request);
            let held = self.state.lock().unwrap().held.clone();
            if let Some(held) = held.filter(|_| request.body.contains("grant_type=refresh_token")) {
                held.cancelled().await;
            }
            let mut text = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n", body.len());
            for header in headers {
                write!(text, "{header}\r\n").unwrap();
            }
            stream.write_all(format!("{text}\r\n{body}").as_bytes()).await.ok()?;
        }
    }

    fn reply(&self, request: &Request) -> Reply {
        let path = request.target.path().to_owned();
        match (request.method.as_str(), path.as_str()) {
            ("GET", "/.well-known/oauth-protected-resource/mcp") if !self.is("old") => json_reply(&json!({
                "resource": format!("{}/mcp", self.address),
                "authorization_servers": [&self.address],
                "scopes_supported": ["tickets"],
            })),
            ("GET", "/.well-known/oauth-authorization-server") if !self.is("old") => {
                json_reply(&self.metadata())
            }
            ("POST", "/register") if !self.is("old") => self.register(&request.body),
            ("GET", "/authorize") => self.authorize(&request.target),
            ("POST", "/token") => self.token(&request.body),
            ("POST", "/mcp" | "/other") => self.mcp(request),
            ("DELETE", _) => (204, vec![], String::new()),
            ("GET", "/mcp") => (405, vec![], String::new()),
            _ => (404, vec![], String::new()),
        }
    }

    fn metadata(&self) -> Value {
        let at = |path: &str| format!("{}{path}", self.address);
        let authorize = if self.is("odd page") { "file:///bin/sh".to_owned() } else { at("/authorize") };
        let methods = if self.is("no pkce") { json!(["plain"]) } else { json!(["S256"]) };
        let token = if self.is("plain token") { "http://example.org/token".to_owned() } else { at("/token") };
        json!({
            "issuer": &self.address,
            "authorization_endpoint": authorize,
            "token_endpoint": token,
            "registration_endpoint": at("/register"),
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": methods,
        })
    }

    fn register(&self, body: &str) -> Reply {
        let asked: Value = serde_json::from_str(body).unwrap();
        let mut state = self.state.lock().unwrap();
        let id = format!("client-{}", state.redirects.len() + 1);
        let redirect = asked["redirect_uris"][0].as_str().unwrap().to_owned();
        assert!(redirect.starts_with("http://127.0.0.1:"), "{redirect}");
        state.redirects.insert(id.clone(), redirect);
        state.log.push(format!("register {} {}", asked["client_name"], asked["scope"]));
        let mut answer = asked;
        answer["client_id"] = json!(id);
        let (status, headers, body) = json_reply(&answer);
        (status + 1, headers, body)
    }

    /// Redirects the browser back; the user approves unless a word says otherwise.
    fn authorize(&self, target: &Url) -> Reply {
        let asked: HashMap<String, String> = target.query_pairs().into_owned().collect();
        let says_no = self.is("refusing");
        let mut state = self.state.lock().unwrap();
        let redirect = &asked["redirect_uri"];
        assert_eq!(state.redirects.get(&asked["client_id"]), Some(redirect));
        assert_eq!(asked["code_challenge_method"], "S256");
        let mut back = Url::parse(redirect).unwrap();
        back.query_pairs_mut().append_pair("state", &asked["state"]);
        if says_no {
            back.query_pairs_mut().append_pair("error", "access_denied");
        } else {
            let code = format!("code-{}", state.codes.len() + 1);
            let challenge = asked["code_challenge"].clone();
            state.codes.insert(code.clone(), (asked["client_id"].clone(), challenge));
            back.query_pairs_mut().append_pair("code", &code);
        }
        let (scope, resource) = (&asked["scope"], self.short(&asked["resource"]));
        state.log.push(format!("authorize {scope} for {resource}"));
        (302, vec![format!("location: {back}")], String::new())
    }

    fn token(&self, body: &str) -> Reply {
        let url = Url::parse(&format!("http://x/?{body}")).unwrap();
        let asked: HashMap<String, String> = url.query_pairs().into_owned().collect();
        let (expires, refuses) = (self.is("short"), self.is("no more"));
        let mut state = self.state.lock().unwrap();
        let is_good = match asked["grant_type"].as_str() {
            "authorization_code" => {
                let known = state.codes.remove(&asked["code"]);
                let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(&asked["code_verifier"]));
                known == Some((asked["client_id"].clone(), challenge))
            }
            // Valid once, as with a careful server.
            "refresh_token" => {
                let place = state.refresh.iter().position(|token| *token == asked["refresh_token"]);
                place.map(|place| state.refresh.remove(place)).is_some() && !refuses
            }
            _ => false,
        };
        let (grant, resource) = (&asked["grant_type"], self.short(&asked["resource"]));
        state.log.push(format!("token by {grant} for {resource}: {is_good}"));
        if !is_good {
            let body = json!({"error": "invalid_grant", "error_description": "the-secret-of-the-place"});
            return (400, vec!["content-type: application/json".to_owned()], body.to_string());
        }
        state.n_issued += 1;
        let (access, refresh) =
            (format!("secret-a{}", state.n_issued), format!("secret-r{}", state.n_issued));
        state.access.push(access.clone());
        state.refresh.push(refresh.clone());
        json_reply(&json!({
            "access_token": access,
            "token_type": "Bearer",
            "refresh_token": refresh,
            "expires_in": if expires { 1 } else { 3600 },
        }))
    }

    fn mcp(&self, request: &Request) -> Reply {
        let message: Value = serde_json::from_str(&request.body).unwrap_or_default();
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        let mut state = self.state.lock().unwrap();
        let bearer = request.bearer.clone();
        let is_known = bearer.as_ref().is_some_and(|bearer| state.access.contains(bearer));
        state.log.push(format!("{method} with {}", bearer.as_deref().unwrap_or("nothing")));
        if !is_known {
            let metadata = format!("{}/.well-known/oauth-protected-resource/mcp", self.address);
            let challenge = format!("www-authenticate: Bearer resource_metadata=\"{metadata}\"");
            return (401, vec![challenge], String::new());
        }
        let result = match method.as_str() {
            "initialize" => json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "test", "version": "1"},
            }),
            "tools/list" => json!({"tools": [{"name": "shout", "inputSchema": {"type": "object"}}]}),
            "tools/call" => json!({"content": [{"type": "text", "text": "HELLO"}]}),
            _ => return (202, vec![], String::new()),
        };
        json_reply(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
    }

    fn short(&self, text: &str) -> String {
        text.replace(&self.address, "$PLACE")
    }
}

fn json_reply(body: &Value) -> Reply {
    (200, vec!["content-type: application/json".to_owned()], body.to_string())
}

/// A directory for logins, and a session that uses it.
struct Home {
    machine: Machine,
}

impl Home {
    fn new() -> Self {
        Self { machine: Machine::new(|_| ()) }
    }

    fn dir(&self) -> std::path::PathBuf {
        self.machine.dir.path().join("mcp-auth")
    }
}

/// Follows an address as a browser does; returns the last page.
async fn browse(address: &str) -> String {
    let client = Client::builder().no_proxy().tls_certs_only([]).redirect(Policy::none()).build().unwrap();
    let sent = client.get(address).send().await.unwrap();
    let back = sent.headers()["location"].to_str().unwrap().to_owned();
    client.get(back).send().await.unwrap().text().await.unwrap()
}

async fn sign_in(place: &Place, dir: &std::path::Path) -> Result<(), String> {
    let begun = McpSignIn::start(&place.server(), dir).await.map_err(|error| error.to_string())?;
    let address = begun.authorization_url().to_owned();
    let (finished, _page) = tokio::join!(begun.finish(), browse(&address));
    finished.map_err(|error| error.to_string())
}

async fn session(server: McpServer, home: Home) -> Session {
    Session::settle(Session::start_on(home.machine, vec![server])).await
}

#[tokio::test]
async fn login_is_stored_and_used() {
    let (place, home) = (Place::open(&[]).await, Home::new());
    let before = session(place.server(), Home::new()).await;
    assert!(before.servers.tools().is_empty());
    let mut said = before.news();
    said += &place.log();
    assert_eq!(sign_in_status(&place.server(), &home.dir()), Ok(SignInStatus::SignedOut));
    sign_in(&place, &home.dir()).await.unwrap();
    said += &place.log();
    assert_eq!(sign_in_status(&place.server(), &home.dir()), Ok(SignInStatus::SignedIn));
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&home.dir()), mode(&home.dir().join("web.json"))), (0o700, 0o600));
    let after = session(place.server(), home).await;
    said += &after.call("shout", json!({})).await;
    said += &place.log();
    expect![[r#"
        news: The MCP server web did not start: it requires authentication; log in with `crow-cli auth web`, or set a key in its `headers`. Its tools are not available.
        initialize with nothing
        register "Crow" "tickets"
        authorize tickets for $PLACE/mcp
        token by authorization_code for $PLACE/mcp: true
        > web: shout Other Calls { server: "web", tool: "shout" }
        Completed: HELLO
        initialize with secret-a1
        notifications/initialized with secret-a1
        tools/list with secret-a1
        tools/call with secret-a1
    "#]].assert_eq(&(said + &after.news()));
}

#[tokio::test]
async fn token_that_expired_is_refreshed() {
    let (place, home) = (Place::open(&[]).await, Home::new());
    sign_in(&place, &home.dir()).await.unwrap();
    let session = session(place.server(), home).await;
    place.log();
    place.revoke();
    let mut said = session.call("shout", json!({})).await;
    said += &session.call("shout", json!({})).await;
    expect![[r#"
        > web: shout Other Calls { server: "web", tool: "shout" }
        Completed: HELLO
        > web: shout Other Calls { server: "web", tool: "shout" }
        Completed: HELLO
        tools/call with secret-a1
        token by refresh_token for $PLACE/mcp: true
        tools/call with secret-a2
        tools/call with secret-a2
    "#]]
    .assert_eq(&(said + &place.log()));
}

#[tokio::test]
async fn token_that_expires_soon_is_refreshed() {
    let (place, home) = (Place::open(&["short"]).await, Home::new());
    sign_in(&place, &home.dir()).await.unwrap();
    place.log();
    let session = session(place.server(), home).await;
    assert_eq!(session.servers.tools().len(), 1, "{}", session.news());
    let first: Vec<String> = place.log().lines().take(2).map(str::to_owned).collect();
    assert_eq!(first, ["token by refresh_token for $PLACE/mcp: true", "initialize with secret-a2"]);
}

#[tokio::test]
async fn token_is_refreshed_by_one_session_at_a_time() {
    let (place, home) = (Place::open(&[]).await, Home::new());
    sign_in(&place, &home.dir()).await.unwrap();
    let kept = fs::read(home.dir().join("web.json")).unwrap();
    let one = session(place.server(), home).await;
    // Another process uses the same directory; here, a link to it.
    let other = Home::new();
    std::os::unix::fs::symlink(one.machine.dir.path().join("mcp-auth"), other.dir()).unwrap();
    let two = session(place.server(), other).await;
    place.revoke();
    let (first, second) = tokio::join!(one.call("shout", json!({})), two.call("shout", json!({})));
    assert!(
        first.contains("Completed: HELLO") && second.contains("Completed: HELLO"),
        "{first}{second}{}",
        place.log()
    );
    assert_ne!(fs::read(one.machine.dir.path().join("mcp-auth/web.json")).unwrap(), kept);
}

#[tokio::test]
async fn token_that_expired_is_refreshed_once_by_all_sessions() {
    let (place, home) = (Place::open(&[]).await, Home::new());
    sign_in(&place, &home.dir()).await.unwrap();
    let file = home.dir().join("web.json");
    let mut stored: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    stored["credentials"]["token_received_at"] = json!(0);
    fs::write(&file, stored.to_string()).unwrap();
    let others = [Home::new(), Home::new(), Home::new()];
    for other in &others {
        std::os::unix::fs::symlink(home.dir(), other.dir()).unwrap();
    }
    let opening = others.map(|other| session(place.server(), other));
    for session in futures_util::future::join_all(opening).await {
        assert_eq!(session.servers.tools().len(), 1, "{}", session.news());
    }
    let n_refreshes = place.log().matches("token by refresh_token").count();
    assert_eq!(n_refreshes, 1);
}

#[tokio::test]
async fn token_that_was_revoked_requires_a_login() {
    let (place, home) = (Place::open(&["no more"]).await, Home::new());
    sign_in(&place, &home.dir()).await.unwrap();
    let dir = home.dir();
    let session = session(place.server(), home).await;
    place.revoke();
    let said = session.call("shout", json!({})).await;
    assert_eq!(sign_in_status(&place.server(), &dir), Ok(SignInStatus::SignedOut));
    expect![[r#"
        > web: shout Other Calls { server: "web", tool: "shout" }
        Failed: could not send a request to the MCP server web: it requires authentication; log in with `crow-cli auth web`
    "#]]
    .assert_eq(&(said + &session.news()));
}

/// The authorization server accepts a refresh token once.
#[tokio::test]
async fn refreshed_login_is_stored_after_its_call_was_cancelled_and_its_session_has_ended() {
    let (place, home) = (Place::open(&[]).await, Home::new());
    sign_in(&place, &home.dir()).await.unwrap();
    let file = home.dir().join("web.json");
    let session = session(place.server(), home).await;
    place.revoke();
    let held = place.hold_refreshes();
    let (said, ()) = tokio::join!(session.call("shout", json!({})), async {
        place.wait_for_refresh().await;
        session.machine.cancel.cancel();
    });
    expect![[r#"
        > web: shout Other Calls { server: "web", tool: "shout" }
        Failed: stopped: the turn was cancelled
    "#]]
    .assert_eq(&said);
    let Session { machine, servers } = session;
    drop(servers);
    assert!(fs::read_to_string(&file).unwrap().contains("secret-r1"));
    // The process ends.
    tokio::join!(machine.tools.finish_token_refreshes(), async { held.cancel() });
    assert!(fs::read_to_string(&file).unwrap().contains("secret-r2"));
}

#[tokio::test]
async fn login_that_was_renewed_meanwhile_is_not_deleted() {
    let (place, home) = (Place::open(&["no more"]).await, Home::new());
    sign_in(&place, &home.dir()).await.unwrap();
    let file = home.dir().join("web.json");
    let session = session(place.server(), home).await;
    place.revoke();
    let held = place.hold_refreshes();
    let (said, renewed) = tokio::join!(session.call("shout", json!({})), async {
        place.wait_for_refresh().await;
        // Another process stores a login in the same second.
        let renewed = fs::read_to_string(&file).unwrap().replace("secret-r1", "secret-r9");
        fs::write(&file, &renewed).unwrap();
        held.cancel();
        renewed
    });
    assert!(said.contains("it requires authentication"), "{said}");
    assert_eq!(fs::read_to_string(&file).unwrap(), renewed);
}

#[tokio::test]
async fn tokens_are_not_sent_to_another_address() {
    let (place, home) = (Place::open(&[]).await, Home::new());
    sign_in(&place, &home.dir()).await.unwrap();
    place.log();
    let other = McpServer::new(
        "web",
        McpTransport::Http { url: format!("{}/other", place.address), headers: vec![] },
    );
    assert_eq!(sign_in_status(&other, &home.dir()), Ok(SignInStatus::SignedOut));
    let session = session(other, home).await;
    assert!(session.servers.tools().is_empty());
    assert_eq!(place.log(), "initialize with nothing\n");
}

#[tokio::test]
async fn login_is_deleted() {
    let (place, home) = (Place::open(&[]).await, Home::new());
    sign_in(&place, &home.dir()).await.unwrap();
    assert_eq!(forget_sign_in("web", &home.dir()), Ok(true));
    assert_eq!(forget_sign_in("web", &home.dir()), Ok(false));
    assert_eq!(sign_in_status(&place.server(), &home.dir()), Ok(SignInStatus::SignedOut));
}

#[tokio::test]
async fn login_rejected_by_the_user_fails() {
    let (place, home) = (Place::open(&["refusing"]).await, Home::new());
    let refused = sign_in(&place, &home.dir()).await;
    assert_eq!(refused, Err("it was rejected (access_denied)".to_owned()));
    assert!(!home.dir().join("web.json").exists());
}

#[tokio::test]
async fn callback_with_another_state_is_ignored() {
    let (place, home) = (Place::open(&[]).await, Home::new());
    let begun = McpSignIn::start(&place.server(), &home.dir()).await.unwrap();
    let asked = Url::parse(begun.authorization_url()).unwrap();
    let redirect = asked.query_pairs().find(|(name, _)| name == "redirect_uri").unwrap().1.into_owned();
    let address = begun.authorization_url().to_owned();
    let (finished, pages) = tokio::join!(begun.finish(), async {
        let port = Url::parse(&redirect).unwrap().port().unwrap();
        // A browser opens connections ahead of time.
        let _silent = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let client = Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
        let forged = client.get(format!("{redirect}?code=code-9&state=forged")).send().await.unwrap();
        (forged.status().as_u16(), browse(&address).await)
    });
    assert_eq!(finished, Ok(()));
    let words = "Crow has received the response. Your terminal shows whether you are logged in; you can close this page.";
    assert_eq!(pages, (404, words.to_owned()));
}

#[tokio::test]
async fn authorization_servers_that_are_untrusted_are_rejected() {
    let dir = TempDir::new().unwrap();
    let mut said = String::new();
    for words in [&["odd page"][..], &["no pkce"], &["old"], &["plain token"]] {
        let place = Place::open(words).await;
        let reason = sign_in(&place, dir.path()).await.expect_err("it fails");
        writeln!(said, "{}: {}", words[0], place.short(&reason)).unwrap();
    }
    let http = |url: &str, headers: Vec<(String, String)>| {
        McpServer::new("web", McpTransport::Http { url: url.to_owned(), headers })
    };
    let key = vec![("authorization".to_owned(), "Bearer x".to_owned())];
    for server in [
        http("http://example.org/mcp", vec![]),
        http("https://example.org/mcp", key),
        http("nonsense", vec![]),
        super::mcp::stdio("box", &[]),
    ] {
        writeln!(said, "{}", McpSignIn::start(&server, dir.path()).await.expect_err("it fails")).unwrap();
    }
    expect![[r#"
        odd page: its login page is not a safe web address
        no pkce: its authorization server does not support PKCE with S256
        old: it does not give an authorization server
        plain token: OAuth token exchange failed: Request failed
        its address example.org is not https
        its headers already have an `Authorization`
        its `url` is not a valid address: relative URL without a base
        it is a program, which needs no login
    "#]]
    .assert_eq(&said);
}

/// Secrets are in the file and on the wire, nowhere else.
#[tokio::test]
async fn secrets_are_not_shown() {
    let (place, home) = (Place::open(&["no more"]).await, Home::new());
    let begun = McpSignIn::start(&place.server(), &home.dir()).await.unwrap();
    let mut shown = format!("{begun:?}");
    let address = begun.authorization_url().to_owned();
    let (finished, _) = tokio::join!(begun.finish(), browse(&address));
    finished.unwrap();
    let session = session(place.server(), home).await;
    place.revoke();
    shown += &format!("{:?}", session.servers);
    shown += &session.call("shout", json!({})).await;
    shown += &session.news();
    assert!(!shown.contains("secret-") && !shown.contains("code-"), "{shown}");
}
