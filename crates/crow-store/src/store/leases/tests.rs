use std::cell::Cell;

use crow_core::SessionId;
use expect_test::{Expect, expect};

use super::ReleaseWait;
use crate::{LeaseHolder, StoreError, sql::LeaseKey};

/// Both have ended.
const ENDED: [u32; 2] = [7, 9];
const RUNNING: u32 = 8;

/// Acquires a lease that is held at the first attempts by one process each.
fn check(wait: &mut ReleaseWait, holders: &[u32], expected: &Expect) {
    let key = LeaseKey::Session(SessionId::new("brave-otter"));
    let n_waits = Cell::new(0);
    let wait_for = |pid| {
        let has_ended = ENDED.contains(&pid);
        n_waits.set(n_waits.get() + i32::from(has_ended));
        has_ended
    };
    let mut holders = holders.iter();
    let acquired = wait.acquire(wait_for, || {
        let Some(&pid) = holders.next() else { return Ok(()) };
        Err(key.busy_error(LeaseHolder::OtherProcess { description: pid.to_string(), pid: Some(pid) }))
    });
    let outcome = match acquired {
        Err(StoreError::Busy { holder, .. }) => holder.to_string(),
        outcome => format!("{outcome:?}"),
    };
    expected.assert_eq(&format!("{outcome} after {} waits", n_waits.get()));
}

#[test]
fn only_a_process_that_has_ended_is_waited_for() {
    let mut wait = ReleaseWait::default();
    check(&mut wait, &[], &expect!["Ok(()) after 0 waits"]);
    check(&mut wait, &[RUNNING], &expect!["in another process (8) after 0 waits"]);
    check(&mut wait, &[7, 7, 9], &expect!["Ok(()) after 3 waits"]);
    check(&mut wait, &[7, RUNNING], &expect!["in another process (8) after 1 waits"]);
}

#[test]
fn process_is_waited_for_in_vain_once() {
    let mut wait = ReleaseWait::default();
    check(&mut wait, &[7; 1000], &expect!["in another process (7) after 50 waits"]);
    check(&mut wait, &[7], &expect!["in another process (7) after 0 waits"]);
    check(&mut wait, &[9], &expect!["Ok(()) after 1 waits"]);
}
