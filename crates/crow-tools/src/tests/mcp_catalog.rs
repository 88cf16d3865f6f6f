//! Prompts and resources of servers, and disabled tools.

use crow_core::{McpServer, slash};
use expect_test::{Expect, expect};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::Machine;
use super::mcp::{Session, stdio, until};

fn without(server: McpServer, disabled: &[&str]) -> McpServer {
    McpServer { disabled_tools: disabled.iter().map(|&name| name.to_owned()).collect(), ..server }
}

#[tokio::test]
async fn disabled_tools_are_left_out() {
    let server = without(stdio("box", &[]), &["die", "hang", "structure", "nonsense"]);
    let mut session = Session::settled(vec![server]).await;
    let names: Vec<String> = session.servers.tools().iter().map(|tool| tool.spec().name.clone()).collect();
    let called = session.call("die", json!({})).await;
    session.call("more", json!({})).await;
    until("there is one more", || session.servers.tools().len() == names.len() + 1).await;
    session.refresh();
    let again = session.call("hang", json!({})).await;
    expect![[r#"
        echo read env image huge fail refuse structured mixed odd progress more
        > die Other Nothing
        Failed: there is no tool `die`; the tools are: read, write, … (203 characters)
        > hang Other Nothing
        Failed: there is no tool `hang`; the tools are: read, write,… (346 characters)
        news: The MCP server box has no tool "structure", which is listed in `disabled_tools`. Did you mean "structured"?
        news: The MCP server box has no tool "nonsense", which is listed in `disabled_tools`.
    "#]].assert_eq(&format!("{}\n{called}{again}{}", names.join(" "), session.news()));
}

#[tokio::test]
async fn included_tools_are_the_only_ones() {
    let included = ["echo", "die", "nonsense"].map(str::to_owned).to_vec();
    let server = McpServer { included_tools: Some(included), ..without(stdio("box", &[]), &["die"]) };
    let session = Session::settled(vec![server]).await;
    let names: Vec<String> = session.servers.tools().iter().map(|tool| tool.spec().name.clone()).collect();
    assert_eq!(names, ["echo"]);
    let news = "news: The MCP server box has no tool \"nonsense\", which is listed in `include_tools`.\n";
    assert_eq!(session.news(), news);
}

#[tokio::test]
async fn server_has_its_own_cwd_and_timeout() {
    let machine = Machine::new(|project| std::fs::create_dir(project.join("sub")).unwrap());
    let timeout = Some(std::time::Duration::from_millis(50));
    let server = McpServer { cwd: Some("sub".into()), timeout, ..stdio("box", &[]) };
    let lost = McpServer { cwd: Some("nowhere".into()), ..stdio("lost", &[]) };
    let session = Session::settle(Session::start_on(machine, vec![server, lost])).await;
    let news = session.news();
    assert!(news.starts_with("news: The MCP server lost did not start: there is no directory /"), "{news}");
    assert!(news.ends_with("/project/nowhere. Its tools are not available.\n"), "{news}");
    let hung = session.call("hang", json!({"marker": "m"})).await;
    assert!(hung.contains("stopped: the MCP server box did not respond for 0.05 s"), "{hung}");
}

#[tokio::test]
async fn disabled_tools_do_not_count_toward_the_limit() {
    let disabled: Vec<String> = (0..190).map(|number| format!("tool-{number}")).collect();
    let server = McpServer { disabled_tools: disabled, ..stdio("box", &["many"]) };
    let session = Session::settled(vec![server]).await;
    assert_eq!((session.servers.tools().len(), session.news().as_str()), (10, ""));
}

/// Runs commands of a server with prompts.
async fn check_prompts(commands: &[&str], expect: Expect) {
    let session = Session::settled(vec![stdio("my box", &["prompts"])]).await;
    let mut said = String::new();
    for text in commands {
        said += &format!("{text}\n{}", filled_in(&session, text).await);
    }
    expect.assert_eq(&said);
}

async fn filled_in(session: &Session, text: &str) -> String {
    let command = slash::parse_command(text).unwrap();
    if !session.servers.owns_command(&command) {
        return "  belongs to no server\n".to_owned();
    }
    match session.servers.get_prompt(&command, &CancellationToken::new()).await {
        Ok(parts) => parts.iter().map(|part| format!("  {part:?}\n")).collect(),
        Err(message) => format!("  failed: {message}\n"),
    }
}

#[tokio::test]
async fn prompts_are_commands() {
    let session = Session::settled(vec![stdio("my box", &["prompts"]), stdio("box", &[])]).await;
    let commands = session.servers.commands();
    let lines = commands.iter().map(|command| {
        format!(
            "{} {:?} {:?}\n",
            command.name,
            command.hint.as_deref().unwrap_or_default(),
            command.description
        )
    });
    expect![[r#"
        my_box:plain "" "Says hello…"
        my_box:topic "<about>" "A prompt of an MCP server"
        my_box:review "<file> [depth]" "Reviews"
        my_box:talk "" "A talk"
        my_box:mcp_1_odd_n_me___31m "" "a [31mb"
        my_box:empty "" "A prompt of an MCP server"
    "#]]
    .assert_eq(&lines.collect::<String>());
}

#[tokio::test]
async fn prompts_are_filled_in() {
    check_prompts(
        &[
            "/my_box:plain",
            "/my_box:plain and mind the gap",
            "/my_box:topic the whole line",
            "/my_box:topic",
            "/my_box:review 'src/a b.rs' depth=3",
            "/my_box:review depth=3",
            "/my_box:talk",
            "/my_box:empty",
            "/my_box:mcp_1_odd_n_me___31m",
            "/my_box:nothing",
            "/your_box:plain",
            "/plain",
        ],
        expect![[r#"
            /my_box:plain
              Text("Do plain with null")
            /my_box:plain and mind the gap
              Text("Do plain with null\nand mind the gap")
            /my_box:topic the whole line
              Text("Do topic with {\"about\":\"the whole line\"}")
            /my_box:topic
              failed: /my_box:topic needs about. Usage: /my_box:topic <about>
            /my_box:review 'src/a b.rs' depth=3
              Text("Do review with {\"depth\":\"3\",\"file\":\"src/a b.rs\"}")
            /my_box:review depth=3
              failed: /my_box:review needs file. Usage: /my_box:review <file> [depth]
            /my_box:talk
              Text("What is this?\nThe assistant answered:\n> A talk.\n> Of two.")
              Image { mime: "image/png", data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==" }
              Text("resource note://1:\na note\n{\"type\":\"hologram\"}")
            /my_box:empty
              failed: The MCP server my box returned no text for /my_box:empty.
            /my_box:mcp_1_odd_n_me___31m
              failed: The MCP server my box rejected the call: it is too odd.
            /my_box:nothing
              failed: The MCP server my box has no prompt "nothing". Its prompts: /my_box:plain, /my_box:topic, /my_box:review, /my_box:talk, /my_box:mcp_1_odd_n_me___31m, /my_box:empty.
            /your_box:plain
              belongs to no server
            /plain
              belongs to no server
        "#]],
    )
    .await;
}

#[tokio::test]
async fn prompts_added_later_are_announced() {
    let session = Session::settled(vec![stdio("box", &["prompts"])]).await;
    let mut changed = session.servers.subscribe_commands();
    session.call("more-prompts", json!({})).await;
    changed.changed().await.unwrap();
    let names: Vec<String> = session.servers.commands().into_iter().map(|command| command.name).collect();
    assert!(names.contains(&"box:more-1".to_owned()), "{names:?}");
}

#[tokio::test]
async fn resources_are_listed_and_read() {
    let session = Session::settled(vec![
        stdio("box", &["resources"]),
        stdio("bag", &["resources"]),
        stdio("none", &[]),
    ])
    .await;
    let calls = [
        ("list_mcp_resources", json!({})),
        ("list_mcp_resources", json!({"server": "bag"})),
        ("list_mcp_resources", json!({"server": "box", "cursor": "two"})),
        ("list_mcp_resources", json!({"server": "none"})),
        ("read_mcp_resource", json!({"server": "box", "uri": "note://1"})),
        ("read_mcp_resource", json!({"server": "box", "uri": "picture://1"})),
        ("read_mcp_resource", json!({"server": "box", "uri": "note://3"})),
        ("read_mcp_resource", json!({"uri": "note://3"})),
    ];
    let mut said = String::new();
    for (name, arguments) in calls {
        said += &session.call(name, arguments).await;
    }
    expect![[r#"
        > list_mcp_resources Search Nothing
        Failed: `list_mcp_resources` was not run: `server` is missing; it must be one of "box", "bag"
        > List resources of bag Search Calls { server: "bag", tool: "resources/list" }
        Completed: bag:
          note://1 (first, text/plain): A note
          note://long (long)
          (more: pass server="bag" and cursor="two")
          templates, to be filled in:
          note://{number} (notes)
        > List resources of box Search Calls { server: "box", tool: "resources/list" }
        Completed: box:
          picture://1 (ab)
        > list_mcp_resources Search Nothing
        Failed: `list_mcp_resources` was not run: `server` must be one of "box", "bag", not the string "none"
        > box: read note://1 Other Calls { server: "box", tool: "resources/read" }
        Completed: one
        two
        > box: read picture://1 Other Calls { server: "box", tool: "resources/read" }
        Completed: resource picture://1:
        Image { mime: "image/png", data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==" }
        resource picture://1:
        (data of type application/zip, about 3 bytes, not shown)
        client: Image { mime: "image/png", data: "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==" }
        > box: read note://3 Other Calls { server: "box", tool: "resources/read" }
        Failed: the MCP server box rejected the call: there is no such resource
        > read_mcp_resource Other Nothing
        Failed: `read_mcp_resource` was not run: `server` is missing; it must be one of "box", "bag"
    "#]]
    .assert_eq(&said);
}

#[tokio::test]
async fn resources_can_be_disabled() {
    let unwanted = without(stdio("bag", &["resources"]), &["resources/read"]);
    let session = Session::settled(vec![stdio("box", &["resources"]), unwanted]).await;
    let said = session.call("read_mcp_resource", json!({"server": "bag", "uri": "note://1"})).await;
    expect![[r#"
        > read_mcp_resource Other Nothing
        Failed: `read_mcp_resource` was not run: `server` must be "box", not the string "bag"
    "#]]
    .assert_eq(&format!("{said}{}", session.news()));
}

#[tokio::test]
async fn resource_that_is_long_is_read_in_parts() {
    let session = Session::settled(vec![stdio("box", &["resources"])]).await;
    let mut offset = 0_u64;
    let mut ends = Vec::new();
    loop {
        let arguments = json!({"server": "box", "uri": "note://long", "offset": offset});
        let said = session.call("read_mcp_resource", arguments).await;
        let last = said.trim_end().lines().last().unwrap().to_owned();
        ends.push(last.clone());
        match last.rsplit_once("offset=") {
            Some((_, next)) => offset = next.trim_end_matches(')').parse().unwrap(),
            None => break,
        }
    }
    expect![[r#"
        (cut: 98890 bytes in all; continue with offset=50000)
        line 9999"#]]
    .assert_eq(&ends.join("\n"));
}

#[tokio::test]
async fn resource_tools_need_resources() {
    let session = Session::settled(vec![stdio("box", &[])]).await;
    let names: Vec<String> = session.servers.tools().iter().map(|tool| tool.spec().name.clone()).collect();
    assert!(!names.iter().any(|name| name.contains("resource")), "{names:?}");
}

#[tokio::test]
async fn only_server_with_resources_needs_no_name() {
    let session = Session::settled(vec![stdio("bag", &["resources"]), stdio("box", &[])]).await;
    let said = session.call("list_mcp_resources", json!({})).await
        + &session.call("read_mcp_resource", json!({"uri": "note://1"})).await;
    expect![[r#"
        > List resources of bag Search Calls { server: "bag", tool: "resources/list" }
        Completed: bag:
          note://1 (first, text/plain): A note
          note://long (long)
          (more: pass server="bag" and cursor="two")
          templates, to be filled in:
          note://{number} (notes)
        > bag: read note://1 Other Calls { server: "bag", tool: "resources/read" }
        Completed: one
        two
    "#]]
    .assert_eq(&said);
}
