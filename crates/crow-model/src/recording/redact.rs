//! Removes secrets from bytes, however they are split. Pure.

/// Replaces a secret; valid in JSON as well.
const MASK: &[u8] = b"[secret]";

/// Shorter keys are words like `none`, for servers without keys; they are not secrets.
const SECRET_LEN_MIN: usize = 8;

/// The length of a partial secret that is masked if the rest never arrives.
const PARTIAL_LEN_MIN: usize = 4;

/// Secrets in all of their encodings.
#[derive(Debug, Clone)]
pub(super) struct SecretSet(Vec<Vec<u8>>);

impl SecretSet {
    pub(super) fn new(secrets: &[String]) -> Self {
        let long = secrets.iter().filter(|secret| secret.len() >= SECRET_LEN_MIN);
        let mut encodings: Vec<Vec<u8>> = long.flat_map(|secret| secret_encodings(secret)).collect();
        // The longest first, so that nothing is left of it.
        encodings.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        encodings.dedup();
        Self(encodings)
    }

    /// Removes them from complete bytes.
    pub(super) fn redact_bytes(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = SecretRedactor::new(self.clone());
        let mut out = stream.feed(bytes);
        out.extend(stream.finish());
        out
    }

    /// Removes them from a text.
    pub(super) fn redact_text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.redact_bytes(text.as_bytes())).into_owned()
    }

    /// Whether bytes may be the beginning of one.
    fn may_start_secret(&self, bytes: &[u8]) -> bool {
        self.0.iter().any(|secret| secret.len() > bytes.len() && secret.starts_with(bytes))
    }

    /// The length of the one at the beginning.
    fn leading_secret_len(&self, bytes: &[u8]) -> Option<usize> {
        self.0.iter().find(|secret| bytes.starts_with(secret)).map(Vec::len)
    }
}

/// The encodings of a secret: plain, in JSON, in a URL.
fn secret_encodings(secret: &str) -> [Vec<u8>; 4] {
    let json = serde_json::to_string(secret).unwrap_or_default();
    let json = json.strip_prefix('"').and_then(|json| json.strip_suffix('"')).unwrap_or(secret).to_owned();
    let json_slashed = json.replace('/', "\\/");
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encoded = secret.bytes().map(|byte| match is_plain(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    [secret.to_owned(), json, json_slashed, encoded.collect()].map(String::into_bytes)
}

/// Removes secrets from bytes that arrive in pieces.
#[derive(Debug)]
pub(super) struct SecretRedactor {
    secrets: SecretSet,
    /// The possible beginning of a secret.
    pending: Vec<u8>,
}

impl SecretRedactor {
    pub(super) fn new(secrets: SecretSet) -> Self {
        Self { secrets, pending: Vec::new() }
    }

    /// Adds bytes; returns what can be shown by now.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.pending.extend_from_slice(bytes);
        let mut output = Vec::with_capacity(self.pending.len());
        let mut rest = self.pending.as_slice();
        while !rest.is_empty() && !self.secrets.may_start_secret(rest) {
            rest = self.redact_next(rest, &mut output);
        }
        let n_pending = rest.len();
        self.pending.drain(..self.pending.len() - n_pending);
        output
    }

    /// Ends the input; returns what was held back.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        let pending = std::mem::take(&mut self.pending);
        let mut output = Vec::with_capacity(pending.len());
        let mut rest = pending.as_slice();
        while !rest.is_empty() {
            // The rest never arrived, but the beginning is still secret.
            if rest.len() >= PARTIAL_LEN_MIN && self.secrets.may_start_secret(rest) {
                output.extend_from_slice(MASK);
                return output;
            }
            rest = self.redact_next(rest, &mut output);
        }
        output
    }

    /// Takes the next secret or byte.
    fn redact_next<'a>(&self, input: &'a [u8], output: &mut Vec<u8>) -> &'a [u8] {
        match self.secrets.leading_secret_len(input) {
            Some(len) => {
                output.extend_from_slice(MASK);
                &input[len..]
            }
            None => {
                output.push(input[0]);
                &input[1..]
            }
        }
    }
}

#[cfg(test)]
mod tests;
