//! Finds the TLS error behind a request that failed, and what it means for the user.

use std::error::Error;
use std::io;

use rustls::CertificateError;

/// The reason why the certificate of a server was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RejectedCertificate {
    /// Signed by an authority that this machine does not trust.
    UnknownAuthority,
    /// Expired, or not valid yet.
    OutsideItsTime,
    /// Issued for another name.
    OtherName,
}

impl RejectedCertificate {
    /// Returns the reason, if a rejected certificate is among the causes of an error.
    pub(super) fn find(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(rustls::Error::InvalidCertificate(reason)) = tls_error(error) {
                return Self::from_reason(reason);
            }
            cause = error.source();
        }
        None
    }

    fn from_reason(reason: &CertificateError) -> Option<Self> {
        if *reason == CertificateError::UnknownIssuer {
            Some(Self::UnknownAuthority)
        } else if matches!(
            reason,
            CertificateError::Expired
                | CertificateError::ExpiredContext { .. }
                | CertificateError::NotValidYet
                | CertificateError::NotValidYetContext { .. }
        ) {
            Some(Self::OutsideItsTime)
        } else if matches!(
            reason,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
        ) {
            Some(Self::OtherName)
        } else {
            None
        }
    }

    /// Returns what is wrong with the certificate and what to do, to follow the address.
    pub(super) fn advice(self) -> &'static str {
        match self {
            Self::UnknownAuthority => {
                "is signed by an authority that this machine does not trust; if a proxy inspects TLS, trust its authority: \
                 in the system's certificates or, on Linux, in a file that SSL_CERT_FILE names"
            }
            Self::OutsideItsTime => "has expired or is not valid yet; check the date of this machine",
            Self::OtherName => {
                "is for another name; is `base_url` right, or is there a login page of this network?"
            }
        }
    }
}

/// Returns the TLS error that an I/O error contains, however deep.
fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut inner = error;
    loop {
        if let Some(error) = inner.downcast_ref::<rustls::Error>() {
            return Some(error);
        }
        // An I/O error names the source of its content as its own, and skips the content.
        inner = inner.downcast_ref::<io::Error>()?.get_ref()?;
    }
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::{ServerName, UnixTime};

    use super::*;

    #[track_caller]
    fn check(reason: CertificateError, expected: Option<RejectedCertificate>) {
        let error = rustls::Error::InvalidCertificate(reason);
        assert_eq!(RejectedCertificate::find(&error), expected);
        // As the connection wraps it.
        let wrapped = io::Error::other(io::Error::other(error));
        assert_eq!(RejectedCertificate::find(&wrapped), expected);
    }

    #[test]
    fn rejected_certificates_are_found_in_io_errors() {
        let time = UnixTime::since_unix_epoch(std::time::Duration::ZERO);
        let name = ServerName::try_from("api.acme.test").unwrap();
        check(CertificateError::UnknownIssuer, Some(RejectedCertificate::UnknownAuthority));
        check(CertificateError::Expired, Some(RejectedCertificate::OutsideItsTime));
        check(
            CertificateError::NotValidYetContext { time, not_before: time },
            Some(RejectedCertificate::OutsideItsTime),
        );
        check(
            CertificateError::NotValidForNameContext { expected: name, presented: Vec::new() },
            Some(RejectedCertificate::OtherName),
        );
        check(CertificateError::BadSignature, None);
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        assert_eq!(RejectedCertificate::find(&refused), None);
    }
}
