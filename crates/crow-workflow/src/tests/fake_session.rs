//! A session whose model, user and child agents follow a script, and which logs what it is asked for.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use crow_core::{
    CallId, Confinement, ContentPart, Failure, MessageId, Mode, PermissionDecision, PlanEntry, PlanStatus,
    Prompt, Reply, ReplyEnd, ToolAccess, ToolArguments, ToolCall, ToolCallInfo, ToolKind, ToolResult,
    ToolSpec, Transcript, TranscriptEntry, TurnEnd,
};
use crow_speckit::{BackgroundWork, StepBaseline, TaskId};
use crow_tools::{ToolCx, UndoRecorder, Workspace};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::fake_parts::{ApprovedTexts, FakeForms, FakeRecorder, SessionLog};
use super::pages::expand_pages;
use super::script::{ModelAction, SessionChange};
use crate::{
    ChildTask, ChildTaskReport, ConfirmationAnswer, EndedCall, FeatureBinding, FormAnswer, ParallelMode,
    ServerTool, SessionFacts, StepConfirmation, StepPolicy, StepReport, StepTurnEnd, SyntheticCall,
    UserQuestions, WorkflowConfig, WorkflowExit, WorkflowPort,
};

/// A scripted session.
pub(super) struct FakeSession {
    root: PathBuf,
    config: WorkflowConfig,
    approvals: Arc<ApprovedTexts>,
    binding: Option<FeatureBinding>,
    baseline: Option<StepBaseline>,
    transcript: Transcript,
    workspace: Workspace,
    has_model: bool,
    has_issue_server: bool,
    turns: VecDeque<Vec<ModelAction>>,
    confirmations: VecDeque<ConfirmationAnswer>,
    forms: Arc<Mutex<VecDeque<FormAnswer>>>,
    children: VecDeque<String>,
    running: VecDeque<TaskId>,
    log: SessionLog,
}

impl FakeSession {
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            config: WorkflowConfig::default(),
            approvals: Arc::default(),
            binding: None,
            baseline: None,
            transcript: Transcript::new(String::new()),
            workspace: Workspace::new(root.to_owned(), &[], Vec::new()),
            has_model: true,
            has_issue_server: false,
            turns: VecDeque::new(),
            confirmations: VecDeque::new(),
            forms: Arc::default(),
            children: VecDeque::new(),
            running: VecDeque::new(),
            log: SessionLog { root: root.to_owned(), ..SessionLog::default() },
        }
    }

    pub(super) fn log_line(&self, line: &str) {
        self.log.line(line);
    }

    pub(super) fn shown_log(&self) -> String {
        self.log.text.lock().unwrap().clone()
    }

    pub(super) fn approve_file(&self, path: PathBuf, text: &str) {
        self.approvals.0.lock().unwrap().insert((path, expand_pages(text).into_bytes()));
    }

    pub(super) fn change(&mut self, change: SessionChange) {
        match change {
            SessionChange::Turn(actions) => self.turns.push_back(actions),
            SessionChange::Confirm(answer) => self.confirmations.push_back(answer),
            SessionChange::Form(answer) => self.forms.lock().unwrap().push_back(answer),
            SessionChange::Child(text) => self.children.push_back(text),
            SessionChange::Config(word) => match word.as_str() {
                "no-model" => self.has_model = false,
                "issue-server" => self.has_issue_server = true,
                "parallel" => self.config.parallel = ParallelMode::Always,
                _ => panic!("{word} is no setting"),
            },
        }
    }

    fn push_entry(&mut self, entry: TranscriptEntry) {
        self.transcript.push(entry).unwrap();
    }

    fn push_prompt(&mut self, part: ContentPart) {
        let id = self.transcript.next_message_id();
        self.push_entry(TranscriptEntry::Prompt(Prompt { id, parts: vec![part] }));
    }

    /// Runs a call of the model as a turn does: within the policy, with its result in the transcript.
    async fn run_model_call(&mut self, policy: &StepPolicy, tool: &str, arguments: &Value) {
        let seq = self.transcript.next_seq();
        let call = ToolCall {
            id: CallId::from_position(seq, 0),
            provider_id: format!("call_{seq}"),
            name: tool.to_owned(),
            arguments: ToolArguments::Valid(arguments.as_object().unwrap().clone()),
        };
        self.push_entry(TranscriptEntry::Reply(Reply {
            id: MessageId::from_seq(seq),
            thought: String::new(),
            text: String::new(),
            calls: vec![call.clone()],
            end: ReplyEnd::Complete,
            usage: None,
            provider_state: None,
            fallback_model: None,
        }));
        let info = call_info(&self.root, tool, arguments);
        let mode = policy.effective_mode(Mode::Ask, &info.access);
        let allowed = if mode == Mode::Ask && matches!(info.access, ToolAccess::Writes(_)) {
            PermissionDecision::Deny("this call would be asked about".to_owned())
        } else {
            PermissionDecision::Allow
        };
        let decision = policy.narrow_decision(allowed, &call, &info.access);
        let result = if decision == PermissionDecision::Allow {
            policy.begin_call(&call, &info, BackgroundWork::None).await;
            let result = self.run_tool(policy, &call, arguments).await;
            let (workspace, background) = (&self.workspace, BackgroundWork::None);
            policy.end_call(EndedCall { call: &call, info: &info, workspace, background }, result).await
        } else {
            ToolResult::failure(format!("{decision:?}"))
        };
        let mut texts = Vec::new();
        for part in &result.for_model {
            if let ContentPart::Text(text) = part {
                texts.push(text.replace('\n', " "));
            }
        }
        let text = texts.join(" ");
        self.log_line(&format!("  {tool}: {} {text}", format!("{:?}", result.status).to_lowercase()));
        self.push_entry(TranscriptEntry::Result { call: call.id, info, result });
    }

    async fn run_tool(&self, policy: &StepPolicy, call: &ToolCall, arguments: &Value) -> ToolResult {
        let text = |name: &str| arguments[name].as_str().unwrap_or_default();
        match call.name.as_str() {
            "write" => {
                super::write_file(&self.root.join(text("file_path")), text("content"));
                return ToolResult::success(text("file_path"));
            }
            "issue_write" => return ToolResult::success("created"),
            _ => {}
        }
        let tools = policy.extra_tools();
        let Some(tool) = tools.iter().find(|tool| tool.spec().name == call.name) else {
            return ToolResult::failure("there is no such tool");
        };
        let recorder = FakeRecorder { log: self.log.clone() };
        let cx = ToolCx {
            workspace: &self.workspace,
            editor: None,
            access: &ToolAccess::Nothing,
            may_read_written: false,
            call: Some(call.id),
            confinement: Confinement::Unconfined,
            cancel: &CancellationToken::new(),
            progress: &|_| (),
            undo_recorder: Some(&recorder),
            mcp_session: None,
        };
        tool.run(arguments.as_object().unwrap(), cx).await
    }
}

fn call_info(root: &Path, tool: &str, arguments: &Value) -> ToolCallInfo {
    let access = match tool {
        "write" => {
            let path = root.join(arguments["file_path"].as_str().unwrap());
            ToolAccess::Writes(vec![path.display().to_string()])
        }
        "issue_write" => ToolAccess::Calls { server: "github".to_owned(), tool: tool.to_owned() },
        _ => ToolAccess::Nothing,
    };
    ToolCallInfo { title: tool.to_owned(), kind: ToolKind::Other, locations: Vec::new(), access }
}

impl WorkflowPort for FakeSession {
    async fn read_facts(&mut self) -> Result<SessionFacts, Failure> {
        let now = jiff::civil::date(2026, 1, 2).at(3, 4, 5, 0).to_zoned(jiff::tz::TimeZone::UTC).unwrap();
        Ok(SessionFacts {
            binding: self.binding.clone(),
            config: self.config.clone(),
            prompts_dir: self.root.join("prompts"),
            config_file: PathBuf::from("config.yaml"),
            cwd: self.root.clone(),
            roots: vec![self.root.clone()],
            repository: self.root.clone(),
            approvals: self.approvals.clone(),
            now,
        })
    }

    fn check_model(&self) -> Result<(), Failure> {
        let missing = || Failure::new(crow_core::FailureKind::Config, "no model is configured");
        self.has_model.then_some(()).ok_or_else(missing)
    }

    fn forbidden_write_reason(&self, path: &Path) -> Option<String> {
        fs::metadata(path)
            .is_ok_and(|metadata| metadata.permissions().readonly())
            .then(|| "denied".to_owned())
    }

    async fn server_tools(&mut self) -> Vec<ServerTool> {
        let parameters = json!({"properties": {"owner": {}, "repo": {}, "title": {}}});
        let spec = ToolSpec { name: "issue_write".into(), description: "".into(), parameters };
        let tool = || ServerTool { server: "github".to_owned(), name: "issue_write".to_owned(), spec };
        self.has_issue_server.then(tool).into_iter().collect()
    }

    fn is_over(&self) -> bool {
        false
    }

    fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    fn workspace(&self) -> &Workspace {
        &self.workspace
    }

    fn undo_recorder(&self) -> Box<dyn UndoRecorder + '_> {
        Box::new(FakeRecorder { log: self.log.clone() })
    }

    fn background_work(&self) -> BackgroundWork {
        BackgroundWork::None
    }

    async fn bind_feature(&mut self, binding: FeatureBinding) -> Result<(), Failure> {
        let dir = binding.feature_dir.clone().unwrap_or_default();
        self.log_line(&format!("feature: {dir}"));
        self.binding = Some(binding);
        Ok(())
    }

    fn keep_baseline(&mut self, baseline: StepBaseline) {
        self.log_line("the baseline is kept");
        self.baseline = Some(baseline);
    }

    fn take_baseline(&mut self) -> Option<StepBaseline> {
        self.baseline.take()
    }

    async fn append_user_prompt(&mut self, expansion: Option<ContentPart>) -> Result<(), WorkflowExit> {
        if let Some(part) = &expansion {
            self.log_line(&format!("prompt: {}", part_text(part)));
        }
        self.push_prompt(expansion.unwrap_or_else(|| ContentPart::Text("prompt".to_owned())));
        Ok(())
    }

    async fn append_part(&mut self, part: ContentPart) -> Result<(), Failure> {
        self.log_line(&format!("part: {}", part_text(&part)));
        self.push_prompt(part);
        Ok(())
    }

    async fn append_child_report(&mut self, part: ContentPart) -> Result<(), Failure> {
        self.append_part(part).await
    }

    async fn run_turn(
        &mut self,
        prompt: Option<ContentPart>,
        policy: Option<&StepPolicy>,
    ) -> Result<StepTurnEnd, Failure> {
        self.log_line(&format!("turn: {}", prompt.as_ref().map(part_text).unwrap_or_default()));
        if let Some(prompt) = prompt {
            self.push_prompt(prompt);
        }
        let mut turn_end = StepTurnEnd { end: TurnEnd::Completed, is_ended_by_hook: false };
        for action in self.turns.pop_front().unwrap_or_default() {
            let (tool, arguments) = match action {
                ModelAction::End(end) => {
                    turn_end.end = end;
                    break;
                }
                ModelAction::EndByHook => {
                    turn_end.is_ended_by_hook = true;
                    break;
                }
                ModelAction::Write { path, text } => {
                    ("write".to_owned(), json!({"file_path": path, "content": text}))
                }
                ModelAction::Call { tool, arguments } => (tool, arguments),
            };
            let policy = policy.expect("calls are scripted for steps only");
            self.run_model_call(policy, &tool, &arguments).await;
            if policy.is_over() {
                break;
            }
        }
        Ok(turn_end)
    }

    async fn run_call(&mut self, call: SyntheticCall) -> Result<bool, Failure> {
        let arguments: Vec<String> =
            call.arguments.iter().map(|(name, value)| format!("{name}={value}")).collect();
        self.log_line(&format!("call: {} {}", call.tool, arguments.join(" ").replace('\n', "⏎")));
        Ok(!arguments.concat().contains("fails"))
    }

    async fn ask_model(&mut self, system: &str, _prompt: String) -> Option<String> {
        self.log_line(&format!("side request: {system}"));
        Some("photo-albums".to_owned())
    }

    fn send_text(&self, text: &str) {
        self.log_line(&format!("text: {}", text.trim()));
    }

    fn send_refusal(&self, reason: &str) {
        self.log_line(&format!("refused: {}", reason.trim()));
    }

    fn send_plan(&self, entries: Vec<PlanEntry>) {
        let count = |status: PlanStatus| entries.iter().filter(|entry| entry.status == status).count();
        let (n_done, n_running) = (count(PlanStatus::Completed), count(PlanStatus::InProgress));
        self.log_line(&format!("plan: {n_done} of {} done, {n_running} running", entries.len()));
    }

    async fn send_report(&mut self, report: StepReport) -> Result<(), Failure> {
        self.log_line(&format!("report {}:\n{}", report.outcome.as_str(), report.text.trim()));
        Ok(())
    }

    async fn confirm(&mut self, confirmation: StepConfirmation) -> ConfirmationAnswer {
        let answer = self.confirmations.pop_front().expect("an answer to the confirmation");
        self.log_line(&format!("confirm: {} -> {answer:?}", confirmation.title));
        answer
    }

    fn user_questions(&self) -> Arc<dyn UserQuestions> {
        Arc::new(FakeForms { answers: self.forms.clone(), log: self.log.clone() })
    }

    async fn start_child(&mut self, task: ChildTask) -> bool {
        self.log_line(&format!("child: {}", task.title));
        self.running.push_back(task.id);
        true
    }

    async fn next_child_report(&mut self) -> Option<ChildTaskReport> {
        let task = self.running.pop_front()?;
        let text = self.children.pop_front().expect("an answer of the child");
        Some(ChildTaskReport::from_result(task, &ToolResult::success(text)))
    }
}

/// Returns the kind of a hidden part with the lines in which a test is interested.
fn part_text(part: &ContentPart) -> String {
    let ContentPart::FromCrow { kind, text } = part else { panic!("{part:?}") };
    let is_advice = |line: &str| line.starts_with("- Leave everything") || line.starts_with("- If a point");
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("- ") && !is_advice(line)).collect();
    match kind.to_string().as_str() {
        "speckit/repair" => format!("speckit/repair\n{}", lines.join("\n")),
        name @ ("speckit/answer" | "speckit/hook" | "speckit/command" | "speckit/children") => {
            format!("{name} {}", text.trim().replace('\n', "⏎"))
        }
        name => name.to_owned(),
    }
}
