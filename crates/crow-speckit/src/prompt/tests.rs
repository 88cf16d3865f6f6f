use expect_test::{Expect, expect};

use super::{PROMPT_BYTES_MAX, PromptFacts, PromptKind, render_prompt};

#[track_caller]
fn check(kind: PromptKind, source: &str, facts: &PromptFacts, expected: &Expect) {
    let out = render_prompt(source, kind, facts).unwrap_or_else(|error| format!("could not: {error}"));
    expected.assert_eq(&out);
}

fn saying(args: &str) -> PromptFacts {
    PromptFacts { args: args.to_owned(), ..PromptFacts::default() }
}

#[test]
fn values_are_never_template_source() {
    let mut facts = saying("{{7*7}} {% for x in y %} {{ args }} <b> & \"q\"");
    facts.template = "# {{7*7}} {# gone? #}".into();
    facts.constitution.text = "{{ args }}".into();
    facts.problems = vec!["spec.md:3: {{7*7}}".into()];
    check(
        PromptKind::Jinja,
        "{{ args }}|{{ template }}|{{ constitution.text }}|{{ problems[0] }}|{{7*7}}",
        &facts,
        &expect![[
            r##"{{7*7}} {% for x in y %} {{ args }} <b> & "q"|# {{7*7}} {# gone? #}|{{ args }}|spec.md:3: {{7*7}}|49"##
        ]],
    );
}

#[test]
fn markdown_prompts_get_the_arguments_once() {
    check(
        PromptKind::Markdown,
        "{{7*7}} a $ARGUMENTS b {ARGS} c $ARGUMENTS{ARGS}",
        &saying("{ARGS}$ARGUMENTS {{7*7}}"),
        &expect![
            "{{7*7}} a {ARGS}$ARGUMENTS {{7*7}} b {ARGS}$ARGUMENTS {{7*7}} c {ARGS}$ARGUMENTS {{7*7}}{ARGS}$ARGUMENTS {{7*7}}"
        ],
    );
    check(PromptKind::Markdown, "", &saying("x"), &expect![""]);
    check(PromptKind::Markdown, "$ARGUMENT {ARG} ü", &saying("x"), &expect!["$ARGUMENT {ARG} ü"]);
}

#[test]
fn undefined_name_is_an_error() {
    let nothing = PromptFacts::default();
    let reason = |source: &str| render_prompt(source, PromptKind::Jinja, &nothing).unwrap_err().to_string();
    let sources = [
        "{{ featur.dir }}",
        "a {{ feature.dirr }}",
        "{% if nope %}{% endif %}",
        "{% include 'other' %}",
        "{{ ",
    ];
    expect![[r#"
        the prompt template does not render: undefined value: `featur` is undefined (in prompt:1)
        the prompt template does not render: undefined value: `feature.dirr` is undefined (in prompt:1)
        the prompt template does not render: undefined value: `nope` is undefined (in prompt:1)
        the prompt template does not render: template not found: tried to include non-existing template 'other' (in prompt:1)
        the prompt template does not render: syntax error: unexpected end of input, expected expression (in prompt:1)"#]].assert_eq(&sources.map(reason).join("\n"));
}

#[test]
fn templates_are_limited_in_time_and_size() {
    let facts = saying(&"x".repeat(200));
    let reason = |source: &str, kind| render_prompt(source, kind, &facts).unwrap_err().to_string();
    let long = "{% for a in range(1000) %}{% for b in range(1000) %}{{ a }}{% endfor %}{% endfor %}";
    let wide = "{% for a in range(9000) %}{{ args }}{% endfor %}";
    let errors = [
        reason(long, PromptKind::Jinja),
        reason(wide, PromptKind::Jinja),
        reason(&"{ARGS}".repeat(9000), PromptKind::Markdown),
    ];
    expect![[r#"
        the prompt template does not render: engine ran out of fuel (in prompt:1)
        the prompt would have more than 524288 bytes; shorten the template or the arguments
        the prompt would have more than 524288 bytes; shorten the template or the arguments"#]]
    .assert_eq(&errors.join("\n"));
    let whole = saying(&"x".repeat(PROMPT_BYTES_MAX));
    assert_eq!(render_prompt("{{ args }}", PromptKind::Jinja, &whole).unwrap().len(), PROMPT_BYTES_MAX);
}

mod ours;
