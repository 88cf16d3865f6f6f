//! Records panics of tasks. A task's panic ends nothing else, so each run has to look for them.

use std::cell::RefCell;

/// The panic of a simulated tool, which is a fault and no violation.
pub(crate) const TOOL_PANIC: &str = "the simulated tool panics";

thread_local! {
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Records the panics of this process's runs from now on.
pub(crate) fn record_panics() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let text = panic.to_string();
        if !text.contains(TOOL_PANIC) {
            PANICS.with_borrow_mut(|panics| panics.push(text));
            print(panic);
        }
    }));
}

/// Takes the panics of this thread.
pub(crate) fn take_panics() -> Vec<String> {
    PANICS.take()
}
