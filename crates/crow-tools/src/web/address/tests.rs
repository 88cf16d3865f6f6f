use expect_test::{Expect, expect};

use super::*;

fn own() -> PrivateHosts {
    PrivateHosts::new(&BTreeSet::from(["Proxy.Example.com".to_owned(), "10.1.2.3".to_owned()]))
}

#[track_caller]
fn check(reach: SiteReach, hosts: &str) {
    for host in hosts.split_whitespace() {
        let address = WebAddress::parse(&format!("http://{host}/x"), &own());
        assert_eq!(address.unwrap().reach, reach, "{host}");
    }
}

#[test]
fn public_addresses_are_accepted() {
    check(
        SiteReach::Public,
        "example.com EXAMPLE.com. docs.rs internal.example.com local.dev corp.com notlocalhost.com \
         127.0.0.1.nip.io 1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 \
         128.0.0.1 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.0.3.0 192.167.255.255 \
         192.169.0.0 198.17.255.255 198.20.0.0 203.0.112.255 223.255.255.255 [2606:4700:4700::1111] [2a00:1450::1] \
         [2001:4860:4860::8888] [2001:200::1] [::ffff:8.8.8.8] [64:ff9b::8.8.8.8] [2002:808:808::1] \
         mycompany-corp.com xn--bcher-kva.example bücher.example",
    );
}

#[test]
fn private_addresses_are_detected() {
    check(
        SiteReach::Private,
        "localhost LOCALHOST localhost. app.localhost router printer.local nas.lan box.home x.home.arpa db.internal \
         metadata.google.internal host.docker.internal wiki.corp wiki.intranet a.private shop.test \
         localhost.localdomain proxy.example.com PROXY.example.com. 0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 \
         100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.254 169.254.0.1 169.254.169.254 172.16.0.1 172.31.255.255 \
         192.0.0.1 192.0.2.1 192.88.99.1 192.168.0.1 192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.7 \
         203.0.113.9 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255",
    );
}

#[test]
fn private_addresses_are_detected_in_other_notations() {
    check(
        SiteReach::Private,
        "2130706433 0x7f000001 017700000001 127.1 127.0.1 0x7f.1 0177.0.0.1 0 0x0 3232235521 0xa9fea9fe 2852039166 \
         0251.0376.0251.0376 ①②⑦.⓪.⓪.① １２７.0.0.1 localhost。 loc%61lhost %31%32%37.0.0.1",
    );
}

#[test]
fn private_ipv6_addresses_are_detected() {
    check(
        SiteReach::Private,
        "[::] [::1] [0:0:0:0:0:0:0:1] [::127.0.0.1] [::8.8.8.8] [::ffff:127.0.0.1] [::ffff:7f00:1] [::ffff:10.0.0.1] \
         [::ffff:169.254.169.254] [64:ff9b::127.0.0.1] [64:ff9b::a9fe:a9fe] [64:ff9b:1::1] [2002:7f00:1::] \
         [2002:a00:1::1] [2002:c0a8:1::1] [2001::1] [2001:0:808:808::] [2001:db8::1] [3fff::1] [fc00::1] [fd00::1] \
         [fdff:ffff::1] [fe80::1] [fec0::1] [ff02::1] [100::1] [5f00::1] [4000::1]",
    );
}

/// Parses addresses and shows the results.
#[track_caller]
fn check_read(texts: &[&str], expect: &Expect) {
    let lines = texts.iter().map(|text| {
        let shown: String = text.chars().take(40).flat_map(char::escape_default).collect();
        match WebAddress::parse(text, &own()) {
            Ok(address) => {
                format!("{shown}: {:?} {} at {}\n", address.reach, address.display_text(), address.site())
            }
            Err(ToolError(reason)) => format!("{shown}: {reason}\n"),
        }
    });
    expect.assert_eq(&lines.collect::<String>());
}

#[test]
fn invalid_addresses_give_a_reason() {
    let long = format!("http://example.com/{}", "a".repeat(1 << 20));
    check_read(
        &[
            "",
            " \n ",
            "example.com/x",
            "//example.com/x",
            "localhost:3000",
            "file:///etc/passwd",
            "ftp://example.com/",
            "data:text/html,<b>x</b>",
            "javascript:alert(1)",
            "view-source:http://example.com",
            "http://",
            "http://:80/",
            "http://exa mple.com/",
            "http://example.com/\0",
            "http://example.com/a\r\nHost: evil",
            "http://exa\u{2028}mple.com/",
            "http://user@example.com/",
            "http://:secret@example.com/",
            "http://example.com@127.0.0.1/",
            "http://example.com:99999/",
            "http://256.256.256.256/",
            "http://[::1/",
            "http://a%00b.com/",
            &long,
        ],
        &expect![[r#"
            : the address is empty
             \n : the address is empty
            example.com/x: it is not a full address (relative URL without a base); begin with https://
            //example.com/x: it is not a full address (relative URL without a base); begin with https://
            localhost:3000: only addresses that begin with http:// or https:// can be fetched
            file:///etc/passwd: only addresses that begin with http:// or https:// can be fetched
            ftp://example.com/: only addresses that begin with http:// or https:// can be fetched
            data:text/html,<b>x</b>: only addresses that begin with http:// or https:// can be fetched
            javascript:alert(1): only addresses that begin with http:// or https:// can be fetched
            view-source:http://example.com: only addresses that begin with http:// or https:// can be fetched
            http://: it is not a valid address: empty host
            http://:80/: it is not a valid address: empty host
            http://exa mple.com/: the address has white space or control characters in it
            http://example.com/\u{0}: the address has white space or control characters in it
            http://example.com/a\r\nHost: evil: the address has white space or control characters in it
            http://exa\u{2028}mple.com/: the address has white space or control characters in it
            http://user@example.com/: the address has a user name or a password in it; leave them out
            http://:secret@example.com/: the address has a user name or a password in it; leave them out
            http://example.com@127.0.0.1/: the address has a user name or a password in it; leave them out
            http://example.com:99999/: it is not a valid address: invalid port number
            http://256.256.256.256/: it is not a valid address: invalid IPv4 address
            http://[::1/: it is not a valid address: invalid IPv6 address
            http://a%00b.com/: it is not a valid address: invalid international domain name
            http://example.com/aaaaaaaaaaaaaaaaaaaaa: the address is too long (1048595 bytes, the limit is 8192)
        "#]],
    );
}

#[test]
fn unusual_addresses_are_parsed_as_in_browsers() {
    check_read(
        &[
            " https://Example.com:443/a?b#c ",
            "HTTP:example.com",
            "http:\\\\example.com\\a",
            "http://example.com:8080/../a",
            // The first letter is Cyrillic.
            "https://аpple.com/",
            "http://127.0.0.1#@example.com/",
            "http://127.0.0.1:22/",
            &format!("http://example.com/{}", "é".repeat(100)),
        ],
        &expect![[r#"
             https://Example.com:443/a?b#c : Public https://example.com/a?b at example.com
            HTTP:example.com: Public http://example.com/ at example.com
            http:\\\\example.com\\a: Public http://example.com/a at example.com
            http://example.com:8080/../a: Public http://example.com:8080/a at example.com:8080
            https://\u{430}pple.com/: Public https://xn--pple-43d.com/ at xn--pple-43d.com
            http://127.0.0.1#@example.com/: Private http://127.0.0.1/ at 127.0.0.1
            http://127.0.0.1:22/: Private http://127.0.0.1:22/ at 127.0.0.1:22
            http://example.com/\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}: Public http://example.com/%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A9%C3%A… at example.com
        "#]],
    );
}

#[test]
fn site_is_a_host_and_its_port() {
    let same = |one: &str, other: &str| {
        let read = |text| WebAddress::parse(text, &own()).unwrap();
        read(one).is_same_site(&read(other))
    };
    assert!(same("http://example.com/a", "https://www.example.com/b"));
    assert!(same("http://localhost:3000/a", "http://localhost:3000/b"));
    assert!(!same("http://example.com/", "http://example.com:8080/"));
    assert!(!same("http://example.com/", "http://example.org/"));
    assert!(!same("http://a.example.com/", "http://example.com/"));
    assert!(!same("http://localhost:3000/", "http://localhost:5432/"));
    assert!(!same("http://127.0.0.1/", "http://localhost/"));
}
