//! The secret of one task, with which parent and worker sign what they send each other: subjects alone do not show who
//! published a message.

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::Sha256;

/// Bytes of a signature.
pub(crate) const SIGNATURE_LEN: usize = 32;

/// The secret of one task.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct TaskTicket([u8; 32]);

/// The kinds of signed bytes; one is never taken for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignedKind {
    /// A frame from the worker to the parent.
    UpFrame,
    /// A frame from the parent to the worker.
    DownFrame,
    Taken,
    End,
    /// A conversation that a worker keeps.
    Conversation,
    Saved,
}

impl std::fmt::Debug for TaskTicket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TaskTicket")
    }
}

impl TaskTicket {
    /// Makes a ticket; the error is the reason why there are no random numbers.
    pub(crate) fn generate() -> Result<Self, String> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|error| format!("no random numbers: {error}"))?;
        Ok(Self(bytes))
    }

    #[cfg(test)]
    pub(crate) fn for_test(byte: u8) -> Self {
        Self([byte; 32])
    }

    fn mac(&self, kind: SignedKind, bytes: &[u8]) -> Hmac<Sha256> {
        // A key that is shorter than a block is padded with zeros.
        let mut block = [0; 64];
        block[..self.0.len()].copy_from_slice(&self.0);
        let mut mac = Hmac::<Sha256>::new(&block.into());
        mac.update(&[kind as u8]);
        mac.update(bytes);
        mac
    }

    /// Appends the signature of all bytes.
    pub(crate) fn sign(&self, kind: SignedKind, mut bytes: Vec<u8>) -> Vec<u8> {
        let signature = self.mac(kind, &bytes).finalize().into_bytes();
        bytes.extend_from_slice(&signature);
        bytes
    }

    /// Returns the bytes in front of a valid signature.
    pub(crate) fn verify<'a>(&self, kind: SignedKind, signed: &'a [u8]) -> Option<&'a [u8]> {
        let (bytes, signature) = signed.split_at_checked(signed.len().checked_sub(SIGNATURE_LEN)?)?;
        self.mac(kind, bytes).verify_slice(signature).is_ok().then_some(bytes)
    }
}

impl Serialize for TaskTicket {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        serializer.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for TaskTicket {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let invalid = || serde::de::Error::custom("a ticket is 64 hexadecimal digits");
        if text.len() != 64 || !text.is_ascii() {
            return Err(invalid());
        }
        let mut bytes = [0; 32];
        for (index, byte) in bytes.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * index..2 * index + 2], 16).map_err(|_| invalid())?;
        }
        Ok(Self(bytes))
    }
}
