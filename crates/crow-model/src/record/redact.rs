//! Takes secrets out of bytes, however these are cut. Pure.

/// What stands where a secret was; valid in JSON as well.
const MASK: &[u8] = b"[secret]";

/// Shorter keys are words like `none`, which servers without keys are given; they stand for no secret.
const SECRET_LEN_MIN: usize = 8;

/// A piece of a secret that is long enough to hide, where the rest of it never came.
const PIECE_LEN_MIN: usize = 4;

/// Secrets in the spellings they may have.
#[derive(Debug, Clone)]
pub(super) struct SecretSet(Vec<Vec<u8>>);

impl SecretSet {
    pub(super) fn new(secrets: &[String]) -> Self {
        let long = secrets.iter().filter(|secret| secret.len() >= SECRET_LEN_MIN);
        let mut spelled: Vec<Vec<u8>> = long.flat_map(|secret| secret_encodings(secret)).collect();
        // The longest first, so that nothing is left of it.
        spelled.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        spelled.dedup();
        Self(spelled)
    }

    /// Takes them out of bytes that are there as a whole.
    pub(super) fn redact_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = SecretRedactor::new(self.clone());
        let mut out = stream.feed(bytes);
        out.extend(stream.finish());
        out
    }

    /// Takes them out of a text.
    pub(super) fn redact_text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.redact_bytes(text.as_bytes())).into_owned()
    }

    /// Tells whether bytes may be the beginning of one.
    fn may_start_secret(&self, bytes: &[u8]) -> bool {
        self.0.iter().any(|secret| secret.len() > bytes.len() && secret.starts_with(bytes))
    }

    /// The length of the one that stands at the beginning.
    fn leading_secret_len(&self, bytes: &[u8]) -> Option<usize> {
        self.0.iter().find(|secret| bytes.starts_with(secret)).map(Vec::len)
    }
}

/// The ways in which a secret may be spelled: as it is, in JSON, in an address.
fn secret_encodings(secret: &str) -> [Vec<u8>; 4] {
    let json = serde_json::to_string(secret).unwrap_or_default();
    let json = json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).unwrap_or(secret).to_owned();
    let slashed = json.replace('/', "\\/");
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encoded = secret.bytes().map(|byte| match is_plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    [secret.to_owned(), json, slashed, encoded.collect()].map(String::into_bytes)
}

/// Takes secrets out of bytes that come in pieces.
#[derive(Debug)]
pub(super) struct SecretRedactor {
    secrets: SecretSet,
    /// What may be the beginning of a secret.
    held: Vec<u8>,
}

impl SecretRedactor {
    pub(super) fn new(secrets: SecretSet) -> Self {
        Self { secrets, held: Vec::new() }
    }

    /// Takes more; gives what can be shown by now.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(bytes);
        let mut shown = Vec::with_capacity(self.held.len());
        let mut rest = self.held.as_slice();
        while !rest.is_empty() && !self.secrets.may_start_secret(rest) {
            rest = self.redact_next(rest, &mut shown);
        }
        let n_held = rest.len();
        self.held.drain(..self.held.len() - n_held);
        shown
    }

    /// Takes the end; gives what was held back.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        let held = std::mem::take(&mut self.held);
        let mut shown = Vec::with_capacity(held.len());
        let mut rest = held.as_slice();
        while !rest.is_empty() {
            // The rest of it never came, which makes it no less of a secret.
            if rest.len() >= PIECE_LEN_MIN && self.secrets.may_start_secret(rest) {
                shown.extend_from_slice(MASK);
                return shown;
            }
            rest = self.redact_next(rest, &mut shown);
        }
        shown
    }

    /// Takes the secret or the byte that comes next.
    fn redact_next<'a>(&self, rest: &'a [u8], shown: &mut Vec<u8>) -> &'a [u8] {
        match self.secrets.leading_secret_len(rest) {
            Some(len) => {
                shown.extend_from_slice(MASK);
                &rest[len..]
            }
            None => {
                shown.push(rest[0]);
                &rest[1..]
            }
        }
    }
}

#[cfg(test)]
mod tests;
