//! The measurements of one program, each in a round of its own.

use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::client::{Agent, AgentProgram};
use crate::figures::{Figure, median};
use crate::model::{Model, Plan};
use crate::raw_client::RawClient;

const STARTS: usize = 30;
const TURNS: usize = 400;
/// Sessions that are compared with one of [`TURNS`] turns, and the turns that both run alternately.
const NEW_SESSIONS: usize = 20;
const COMPARED_TURNS: usize = 20;
const TOOL_TURNS: usize = 50;
const LOADS: usize = 10;
const CHUNKS: usize = 20_000;
const STREAMS: usize = 5;
/// Several agents: the processors of their threads differ from start to start, and a cancel passes through three threads.
const CANCELING_AGENTS: usize = 10;
const CANCELS: usize = 30;
/// Agents with many sessions each: what waits in their buffers at the same time differs.
const CROWDS: usize = 5;
const SESSIONS: usize = 50;
const CHUNKS_EACH: usize = 2_000;

/// Measures what any agent does.
pub(crate) fn measure_basics(program: &AgentProgram, model: &Model) -> Vec<Figure> {
    let mut figures = measure_starts(program, model);
    figures.extend(measure_turns(program, model));
    figures.extend(measure_streams(program, model));
    figures
}

/// Measures what only an agent with tools, cancellation and stored sessions does.
pub(crate) fn measure_sessions(program: &AgentProgram, model: &Model) -> Vec<Figure> {
    let mut figures = measure_tools_and_loads(program, model);
    figures.push(measure_cancels(program, model));
    figures.extend(measure_crowds(program, model));
    figures
}

fn measure_starts(program: &AgentProgram, model: &Model) -> Vec<Figure> {
    let [mut hello, mut cpu, mut new, mut resident, mut private] = [const { Vec::new() }; 5];
    for _ in 0..STARTS {
        let began = Instant::now();
        let mut agent = Agent::start_program(program, model.port());
        agent.hello();
        hello.push(millis(began.elapsed()));
        cpu.push(millis(agent.cpu()));
        let began = Instant::now();
        agent.new_session();
        new.push(millis(began.elapsed()));
        agent.settle();
        resident.push(agent.resident_kb() as f64 / 1024.0);
        private.push(agent.private_kb() as f64 / 1024.0);
    }
    vec![
        Figure::at_most("from exec to the answer of initialize", 10.0, "ms", hello),
        Figure::at_most("processor time until then", 3.0, "ms", cpu),
        Figure::at_most("session/new", 3.0, "ms", new),
        Figure::at_most("idle: resident", 14.0, "MB", resident),
        Figure::at_most("idle: private", 2.5, "MB", private),
    ]
}

fn measure_turns(program: &AgentProgram, model: &Model) -> Vec<Figure> {
    let mut agent = Agent::start_program(program, model.port());
    agent.hello();
    let session = agent.new_session();
    let (mut out, mut back) = (Vec::new(), Vec::new());
    for turn in 0..=TURNS {
        model.plan(Plan::Words(3));
        let sent = Instant::now();
        agent.prompt(&session);
        let first = agent.first_update();
        agent.end_of_turn();
        let asked = model.last();
        // The first turn connects.
        if turn > 0 {
            out.push(millis(asked.arrived - sent));
            back.push(millis(first - asked.first_byte));
        }
    }
    let growth = measure_growth(&mut agent, &session, model);
    vec![
        Figure::at_most("from the prompt to the request at the model", 1.0, "ms", out),
        Figure::at_most("from the first byte to the first chunk", 0.3, "ms", back),
        Figure::at_most("turn 400 to turn 1: from the prompt to the request", 1.05, "x", growth),
    ]
}

/// Compares a session of [`TURNS`] turns with new ones, turn by turn: a computer is not equally fast all the time. The
/// time that the longer request takes on its way does not count.
fn measure_growth(agent: &mut Agent, old_session: &str, model: &Model) -> Vec<f64> {
    let mut raw_client = RawClient::connect(model);
    let mut time_turn = |agent: &mut Agent, session: &str| {
        model.plan(Plan::Words(3));
        let sent = Instant::now();
        agent.prompt(session);
        agent.end_of_turn();
        let took = millis(model.last().arrived - sent);
        (took, millis(raw_client.time_request(&model.last_body())))
    };
    let compare = |_| {
        let new_session = agent.new_session();
        let [mut new, mut old, mut longer_way] = [const { Vec::new() }; 3];
        for _ in 0..COMPARED_TURNS {
            let (new_took, new_way) = time_turn(agent, &new_session);
            let (old_took, old_way) = time_turn(agent, old_session);
            new.push(new_took);
            old.push(old_took);
            longer_way.push(old_way - new_way);
        }
        (median(&old) - median(&longer_way)) / median(&new)
    };
    (0..NEW_SESSIONS).map(compare).collect()
}

fn measure_streams(program: &AgentProgram, model: &Model) -> Vec<Figure> {
    let mut agent = Agent::start_program(program, model.port());
    agent.hello();
    let session = agent.new_session();
    let (mut rate, mut cpu) = (Vec::new(), Vec::new());
    for _ in 0..STREAMS {
        model.plan(Plan::Words(CHUNKS));
        let before = agent.cpu();
        agent.prompt(&session);
        agent.end_of_turn();
        rate.push(CHUNKS as f64 / model.last().first_byte.elapsed().as_secs_f64());
        cpu.push((agent.cpu() - before).as_secs_f64() * 1e6 / CHUNKS as f64);
    }
    vec![
        Figure::at_least("chunks of one session", 160_000.0, "1/s", rate),
        Figure::at_most("processor time of a chunk", 2.8, "µs", cpu),
    ]
}

fn measure_tools_and_loads(program: &AgentProgram, model: &Model) -> Vec<Figure> {
    let mut agent = Agent::start_program(program, model.port());
    agent.hello();
    let session = agent.new_session();
    let (mut tool, mut loads) = (Vec::new(), Vec::new());
    for _ in 0..TOOL_TURNS {
        model.plan(Plan::ReadThenWords);
        agent.prompt(&session);
        agent.end_of_turn();
        let (first, second) = model.last_two();
        tool.push(millis(second.arrived - first.first_byte));
    }
    for _ in 0..TURNS {
        model.plan(Plan::Words(3));
        agent.prompt(&session);
        agent.end_of_turn();
    }
    agent.hang_up();
    let n_messages = TURNS * 2 + TOOL_TURNS * 4;
    for _ in 0..LOADS {
        let mut agent = Agent::at(program, model.port(), Rc::clone(&agent.home()));
        agent.hello();
        agent.new_session();
        let began = Instant::now();
        agent.load(&session);
        loads.push(began.elapsed().as_secs_f64() * 1e6 / n_messages as f64);
    }
    vec![
        Figure::at_most("a turn with one read: from the reply to the next request", 0.8, "ms", tool),
        Figure::at_most("session/load, a message", 25.0, "µs", loads),
    ]
}

fn measure_cancels(program: &AgentProgram, model: &Model) -> Figure {
    let mut gone = Vec::new();
    for _ in 0..CANCELING_AGENTS {
        let mut agent = Agent::start_program(program, model.port());
        agent.hello();
        let session = agent.new_session();
        for _ in 0..CANCELS {
            model.plan(Plan::Hold);
            agent.prompt(&session);
            agent.first_update();
            let sent = Instant::now();
            agent.cancel(&session);
            agent.end_of_turn();
            gone.push(millis(model.hung_up() - sent));
        }
    }
    Figure::at_most("from a cancel to the end of the model's connection", 0.4, "ms", gone)
}

fn measure_crowds(program: &AgentProgram, model: &Model) -> Vec<Figure> {
    let (mut rates, mut peaks) = (Vec::new(), Vec::new());
    for _ in 0..CROWDS {
        let mut agent = Agent::start_program(program, model.port());
        agent.hello();
        let sessions: Vec<String> = (0..SESSIONS).map(|_| agent.new_session()).collect();
        for _ in 0..SESSIONS {
            model.plan(Plan::Words(CHUNKS_EACH));
        }
        let began = Instant::now();
        for session in &sessions {
            agent.prompt(session);
        }
        for _ in 0..SESSIONS {
            agent.end_of_turn();
        }
        rates.push((SESSIONS * CHUNKS_EACH) as f64 / began.elapsed().as_secs_f64());
        peaks.push(agent.peak_kb() as f64 / 1024.0);
    }
    vec![
        Figure::at_least("chunks of 50 sessions at once", 100_000.0, "1/s", rates),
        Figure::at_most("peak then: resident", 40.0, "MB", peaks),
    ]
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
