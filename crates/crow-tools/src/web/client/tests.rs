use expect_test::{Expect, expect};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::*;

/// Filters DNS results, given as `a b c`.
#[track_caller]
fn check(found: &str, reach: SiteReach, expect: &Expect) {
    let found = found.split_whitespace().map(|ip| SocketAddr::new(ip.parse().unwrap(), 0));
    let text = match filter_addresses("docs.rs".to_owned(), found, reach) {
        Ok(fit) => fit.iter().map(|address| address.ip().to_string() + "\n").collect(),
        Err(error) => format!("error: {error}\n"),
    };
    expect.assert_eq(&text);
}

#[test]
fn public_name_resolves_to_public_addresses_only() {
    check(
        "8.8.8.8 2606:4700::1",
        SiteReach::Public,
        &expect![[r#"
        8.8.8.8
        2606:4700::1
    "#]],
    );
    check(
        "10.0.0.5 8.8.8.8 ::1",
        SiteReach::Public,
        &expect![[r#"
        8.8.8.8
    "#]],
    );
    check(
        "10.0.0.5 127.0.0.1",
        SiteReach::Public,
        &expect![[r#"
        error: docs.rs resolves to 10.0.0.5, which is not on the public internet; fetch that address itself to ask the user
    "#]],
    );
    check(
        "::ffff:169.254.169.254",
        SiteReach::Public,
        &expect![[r#"
        error: docs.rs resolves to ::ffff:169.254.169.254, which is not on the public internet; fetch that address itself to ask the user
    "#]],
    );
    check(
        "10.0.0.5 8.8.8.8",
        SiteReach::Private,
        &expect![[r#"
        10.0.0.5
        8.8.8.8
    "#]],
    );
    check("", SiteReach::Public, &expect![[""]]);
}

/// Resolves every name to this machine.
struct Rebound;

impl Resolve for Rebound {
    fn resolve(&self, name: Name) -> Resolving {
        let here = [SocketAddr::from(([127, 0, 0, 1], 0))];
        let sifted = filter_addresses(name.as_str().to_owned(), here.into_iter(), SiteReach::Public);
        Box::pin(async move { Ok(Box::new(sifted?.into_iter()) as Addrs) })
    }
}

#[tokio::test]
async fn rebound_name_is_not_connected_to() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let client = http::build_client(|| client_builder().no_proxy().dns_resolver(Arc::new(Rebound))).unwrap();
    let asked = client.get(format!("http://moved.example.com:{port}/")).send();
    let error = tokio::select! {
        asked = asked => asked.unwrap_err(),
        accepted = listener.accept() => panic!("it came from {:?}", accepted.unwrap().1),
    };
    let ToolError(reason) = request_error(&error);
    expect!["moved.example.com resolves to 127.0.0.1, which is not on the public internet; fetch that address itself to ask the user"].assert_eq(&reason);
}

#[test]
fn compressed_body_without_end_is_truncated() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    packed.write_all(&vec![b'a'; 1 << 20]).unwrap();
    let packed = packed.finish().unwrap();
    let bounded = BoundedBuffer { bytes: Vec::new(), bytes_max: 1000 };
    let mut sink = BodySink::Gzip(Box::new(MultiGzDecoder::new(bounded)));
    let error = sink.write_chunk(&packed).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!(sink.into_bytes(), [b'a'; 1000]);
}
