//! Responses whose meaning depended on where they were split.

use expect_test::{Expect, expect};

use super::ReplyDecoder;
use crate::ModelApi;

fn heard(pieces: &[&[u8]]) -> String {
    let mut decoder = ReplyDecoder::new(ModelApi::CHAT);
    let mut heard = Vec::new();
    let fed = pieces
        .iter()
        .try_for_each(|piece| decoder.feed(piece, &mut |event| heard.push(format!("{event:?}"))));
    let end = fed.and_then(|()| decoder.finish(&mut |event| heard.push(format!("{event:?}"))));
    heard.push(format!("{end:?}"));
    heard.join("\n")
}

#[track_caller]
fn check(answer: &[u8], expected: &Expect) {
    let whole = heard(&[answer]);
    expected.assert_eq(&whole);
    for cancel in 0..=answer.len() {
        let (head, tail) = answer.split_at(cancel);
        assert_eq!(heard(&[head, tail]), whole, "cut at {cancel}");
    }
    assert_eq!(heard(&answer.chunks(1).collect::<Vec<_>>()), whole, "byte by byte");
}

#[test]
fn white_space_before_a_response() {
    check(
        b"\n \r\n data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n",
        &expect![[r#"
            Text("Hi")
            Ok(Complete)"#]],
    );
    check(b"\n {\"data: \n\n", &expect![[r#"Err(UnexpectedFormat("{\"data:"))"#]]);
}
