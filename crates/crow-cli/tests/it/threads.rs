//! Parts of a test that wait for programs, several at a time.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::sync::Mutex;

/// Threads of one test, whose parts wait more than they compute.
const THREADS: usize = 4;

/// Calls a function for each item on a few threads; returns the results in the order of the items.
pub(crate) fn map_on_threads<T: Sync, R: Send>(items: &[T], map: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let waiting = Mutex::new(items.iter().enumerate());
    let results = Mutex::new(Vec::new());
    let next_item = || waiting.lock().expect("no thread panics while it holds the lock").next();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some((place, item)) = next_item() {
                    let result = map(item);
                    results.lock().expect("no thread panics while it holds the lock").push((place, result));
                }
            });
        }
    });
    let mut results = results.into_inner().expect("the threads have ended");
    results.sort_by_key(|(place, _)| *place);
    results.into_iter().map(|(_, result)| result).collect()
}
