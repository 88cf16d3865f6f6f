use super::*;

/// Checks how long an output has made no progress, from the seconds since its end was due and since its last write.
#[track_caller]
fn check_stall(end_due: Option<u64>, last_write: Option<u64>, expected: u64) {
    let start = Instant::now();
    let now = start + Duration::from_secs(60);
    let ago = |seconds: u64| now - Duration::from_secs(seconds);
    let times = OutputTimes { end_due: end_due.map(ago), last_write: last_write.map(ago) };
    assert_eq!(times.stalled_for(now), Duration::from_secs(expected));
}

#[test]
fn stall_begins_with_the_end_or_the_last_write() {
    check_stall(None, None, 0);
    check_stall(Some(2), None, 2);
    // A client that has not read for long may still do so.
    check_stall(Some(2), Some(50), 2);
    // A client that goes on reading gets everything, however long that takes.
    check_stall(Some(50), Some(2), 2);
}

/// An output that is full from the first byte on, until its receiver is dropped.
struct FullOutput(Receiver<()>);

impl Write for FullOutput {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        let _ = self.0.recv();
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Starts a thread that writes one byte.
fn start_writer(output: impl Write + Send + 'static) -> OutputWriter {
    let watch = Arc::<OutputWatch>::default();
    let (end_sender, end_receiver) = sync_channel(0);
    let mut output = WatchedOutput { output, watch: watch.clone(), _end_sender: end_sender };
    let thread = std::thread::spawn(move || drop(output.write_all(b".")));
    OutputWriter { thread, watch, end_receiver }
}

#[test]
fn writer_is_waited_for_only_while_it_makes_progress() {
    assert!(start_writer(Vec::new()).finish());
    let (unblock, full) = sync_channel(0);
    let writer = start_writer(FullOutput(full));
    writer.watch.times.lock().unwrap().end_due = Instant::now().checked_sub(STALL_MAX);
    assert!(!writer.finish());
    drop(unblock);
}
