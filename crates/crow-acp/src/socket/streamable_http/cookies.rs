//! The cookies that a server sets, which keep a client's requests at one of many backends. They live as long as the
//! connection, and there is one URL: attributes decide nothing.

use http::{HeaderMap, HeaderValue, header};

/// Servers set one or two.
const COOKIES_MAX: usize = 32;

const COOKIE_BYTES_MAX: usize = 4096;

/// Cookies by name.
#[derive(Debug, Default)]
pub(super) struct CookieStore {
    cookies: Vec<(String, String)>,
}

impl CookieStore {
    /// Stores the cookies of a response.
    pub(super) fn store(&mut self, headers: &HeaderMap) {
        for value in headers.get_all(header::SET_COOKIE) {
            let pair = value.to_str().ok().and_then(|value| value.split(';').next()?.split_once('='));
            let Some((name, value)) = pair.map(|(name, value)| (name.trim(), value.trim())) else { continue };
            if name.is_empty() || name.len() + value.len() > COOKIE_BYTES_MAX {
                continue;
            }
            self.cookies.retain(|(known, _)| known != name);
            if self.cookies.len() < COOKIES_MAX {
                self.cookies.push((name.to_owned(), value.to_owned()));
            }
        }
    }

    /// Returns the value of the header `Cookie`.
    pub(super) fn header(&self) -> Option<HeaderValue> {
        let pairs: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let mut header = HeaderValue::from_str(&pairs.join("; ")).ok().filter(|header| !header.is_empty())?;
        header.set_sensitive(true);
        Some(header)
    }
}
