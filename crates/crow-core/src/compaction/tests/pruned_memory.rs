//! The memory of output that is no longer sent.

use expect_test::expect;

use super::{FULL, attempt, conversation};
use crate::compaction::CompactionStep;
use crate::{ContentPart, TranscriptEntry};

#[test]
fn pruned_output_takes_little_memory() {
    let (trigger, limit) = FULL;
    let mut transcript =
        conversation("prompt 10 | call 4000 | call 3000 | prompt 10 | call 1000 | prompt 10 | call 2500");
    let (_, end) = attempt(&transcript, trigger, limit * 10, &[]);
    let CompactionStep::Commit(compaction) = end else { panic!("nothing was pruned") };
    transcript.compact(compaction).unwrap();
    let sizes = transcript.entries().iter().filter_map(|entry| match entry {
        TranscriptEntry::Result { call, result, .. } => {
            let texts = result.for_model.iter();
            let n_bytes = texts.map(|part| if let ContentPart::Text(text) = part { text.len() } else { 0 });
            Some(format!(
                "{call}: {} bytes, {} for the client",
                n_bytes.sum::<usize>(),
                result.for_client.len()
            ))
        }
        TranscriptEntry::Prompt(_) | TranscriptEntry::Reply(_) => None,
    });
    expect![[r#"
        call-1-0: 2014 bytes, 0 for the client
        call-3-0: 2014 bytes, 0 for the client
        call-6-0: 3997 bytes, 1 for the client
        call-9-0: 9997 bytes, 1 for the client"#]]
    .assert_eq(&sizes.collect::<Vec<_>>().join("\n"));
}
