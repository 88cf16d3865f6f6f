use expect_test::{Expect, expect};

use super::*;

/// Each line of a script is an event at a second, such as `5 tokens 0 200`; the output says what follows from it.
#[track_caller]
fn check(parallel_max: usize, tokens_max: Option<u64>, script: &str, expected: &Expect) {
    let mut schedule = BatchSchedule::new(parallel_max, tokens_max, 0);
    let mut told = String::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |place: usize| words.get(place).map(|word| word.parse::<u64>().unwrap());
        let now = Duration::from_secs(number(0).unwrap());
        let slot = || BatchSlot(number(2).unwrap());
        let answer = match words[1] {
            "task" => {
                let limits = BatchTaskLimits {
                    tokens_max: number(2).filter(|tokens| *tokens > 0),
                    time_max: number(3).map(Duration::from_secs),
                };
                let admission = schedule.admit(limits);
                if admission == BatchAdmission::Start {
                    schedule.start(limits, now);
                }
                format!("{admission:?}")
            }
            "tokens" => list(&schedule.on_tokens(slot(), number(3).unwrap(), now)),
            "time" => list(&schedule.on_time(now)),
            "interrupt" => list(&schedule.stop_all(BatchStopCause::Interrupted, now)),
            "quit" => list(&schedule.quit_all(BatchStopCause::Interrupted, now)),
            "end" => match schedule.on_end(slot(), number(3)) {
                Some(cause) => format!("stopped: {cause}"),
                None => "ended".to_owned(),
            },
            other => panic!("{other}"),
        };
        let next = schedule.next_deadline().map(|at| format!(", next {} s", at.as_secs()));
        let tokens = schedule.tokens();
        told += &format!(
            "{line} -> {answer}; {} run, {tokens} tokens{}\n",
            schedule.n_running(),
            next.unwrap_or_default()
        );
    }
    if let Some(cause) = schedule.stop_cause() {
        told += &format!("closed: {cause}\n");
    }
    expected.assert_eq(&told);
}

fn list(orders: &[BatchStopOrder]) -> String {
    let orders: Vec<String> =
        orders.iter().map(|order| format!("{:?} {}", order.step, order.slot.0)).collect();
    if orders.is_empty() { "nothing".to_owned() } else { orders.join(", ") }
}

#[test]
fn batch_runs_as_many_tasks_as_allowed() {
    check(
        2,
        None,
        "0 task
         0 task
         0 task
         1 tokens 0 900
         2 end 0 1000
         2 task
         3 end 1
         3 end 2 10",
        &expect![[r#"
            0 task -> Start; 1 run, 0 tokens
            0 task -> Start; 2 run, 0 tokens
            0 task -> Wait; 2 run, 0 tokens
            1 tokens 0 900 -> nothing; 2 run, 900 tokens
            2 end 0 1000 -> ended; 1 run, 1000 tokens
            2 task -> Start; 2 run, 1000 tokens
            3 end 1 -> ended; 1 run, 1000 tokens
            3 end 2 10 -> ended; 0 run, 1010 tokens
        "#]],
    );
}

#[test]
fn batch_reserves_the_tokens_of_a_task() {
    check(
        8,
        Some(1000),
        "0 task 600
         0 task 500
         1 end 0 100
         1 task 500
         1 task 400
         1 task
         2 end 1
         2 end 2 30
         2 task 370
         2 task
         3 end 3 370
         3 task",
        &expect![[r#"
            0 task 600 -> Start; 1 run, 0 tokens
            0 task 500 -> Wait; 1 run, 0 tokens
            1 end 0 100 -> ended; 0 run, 100 tokens
            1 task 500 -> Start; 1 run, 100 tokens
            1 task 400 -> Start; 2 run, 100 tokens
            1 task -> Wait; 2 run, 100 tokens
            2 end 1 -> ended; 1 run, 600 tokens
            2 end 2 30 -> ended; 0 run, 630 tokens
            2 task 370 -> Start; 1 run, 630 tokens
            2 task -> Wait; 1 run, 630 tokens
            3 end 3 370 -> ended; 0 run, 1000 tokens
            3 task -> Closed; 0 run, 1000 tokens
            closed: the 1.0k tokens for all tasks are used
        "#]],
    );
}

#[test]
fn batch_without_tokens_cancels_what_runs() {
    check(
        8,
        Some(1000),
        "0 task
         0 task
         0 task 900
         1 tokens 0 400
         1 tokens 1 500
         2 tokens 1 650
         2 task
         3 end 0 410
         31 time
         32 time
         33 end 1 650",
        &expect![[r#"
            0 task -> Start; 1 run, 0 tokens
            0 task -> Start; 2 run, 0 tokens
            0 task 900 -> Start; 3 run, 0 tokens
            1 tokens 0 400 -> nothing; 3 run, 400 tokens
            1 tokens 1 500 -> nothing; 3 run, 900 tokens
            2 tokens 1 650 -> Cancel 0, Cancel 1, Cancel 2; 3 run, 1050 tokens, next 32 s
            2 task -> Closed; 3 run, 1050 tokens, next 32 s
            3 end 0 410 -> stopped: the 1.0k tokens for all tasks are used; 2 run, 1060 tokens, next 32 s
            31 time -> nothing; 2 run, 1060 tokens, next 32 s
            32 time -> Quit 1, Quit 2; 2 run, 1060 tokens
            33 end 1 650 -> stopped: the 1.0k tokens for all tasks are used; 1 run, 1060 tokens
            closed: the 1.0k tokens for all tasks are used
        "#]],
    );
}

#[test]
fn task_ends_at_its_own_limits() {
    check(
        8,
        None,
        "0 task 100
         0 task 0 60
         0 task
         1 tokens 0 100
         2 tokens 0 120
         2 end 0 120
         59 time
         60 time
         61 time
         90 time
         91 time
         92 end 1
         93 task",
        &expect![[r#"
            0 task 100 -> Start; 1 run, 0 tokens
            0 task 0 60 -> Start; 2 run, 0 tokens, next 60 s
            0 task -> Start; 3 run, 0 tokens, next 60 s
            1 tokens 0 100 -> Cancel 0; 3 run, 100 tokens, next 31 s
            2 tokens 0 120 -> nothing; 3 run, 120 tokens, next 31 s
            2 end 0 120 -> stopped: the task used 100 tokens; its max_tokens is 100; 2 run, 120 tokens, next 60 s
            59 time -> nothing; 2 run, 120 tokens, next 60 s
            60 time -> Cancel 1; 2 run, 120 tokens, next 90 s
            61 time -> nothing; 2 run, 120 tokens, next 90 s
            90 time -> Quit 1; 2 run, 120 tokens
            91 time -> nothing; 2 run, 120 tokens
            92 end 1 -> stopped: the task did not end within its max_minutes, 1; 1 run, 120 tokens
            93 task -> Start; 2 run, 120 tokens
        "#]],
    );
}

#[test]
fn interrupt_cancels_and_the_next_one_quits() {
    check(
        8,
        None,
        "0 task
         0 task 10
         1 tokens 1 10
         2 interrupt
         3 interrupt
         4 quit
         5 quit
         5 end 1 10
         5 end 0
         5 task",
        &expect![[r#"
            0 task -> Start; 1 run, 0 tokens
            0 task 10 -> Start; 2 run, 0 tokens
            1 tokens 1 10 -> Cancel 1; 2 run, 10 tokens, next 31 s
            2 interrupt -> Cancel 0; 2 run, 10 tokens, next 31 s
            3 interrupt -> nothing; 2 run, 10 tokens, next 31 s
            4 quit -> Quit 0, Quit 1; 2 run, 10 tokens
            5 quit -> nothing; 2 run, 10 tokens
            5 end 1 10 -> stopped: the task used 10 tokens; its max_tokens is 10; 1 run, 10 tokens
            5 end 0 -> stopped: the batch was interrupted; 0 run, 10 tokens
            5 task -> Closed; 0 run, 10 tokens
            closed: the batch was interrupted
        "#]],
    );
}
