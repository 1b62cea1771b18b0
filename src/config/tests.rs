use super::*;

fn parse(text: &str) -> Result<Config, Diagnostics> {
    Config::parse(&Source::new("vera-gate.yaml", text)).map(|(config, _)| config)
}

const ROLES: &str = "user: scripted/person\ncandidate: scripted/careful\njudge: scripted/rules\n";

#[test]
fn three_roles_are_enough() {
    let config = parse(ROLES).unwrap();
    assert_eq!(config.target, "builtin:si");
    assert_eq!((config.sweep.runs, config.sweep.max_messages), (1, 30));
    assert_eq!(config.candidate.model.model, "scripted/careful");
    assert_eq!((config.judge.models.len(), config.judge.models[0].instances), (1, 1));
    assert_eq!(config.judge.ahead, Ahead::Certain);
}

#[test]
fn every_missing_role_is_named_at_once() {
    let problems = parse("target: builtin:si\n").unwrap_err().to_string();
    for role in ["`user` is missing", "`candidate` is missing", "`judge` is missing"] {
        assert!(problems.contains(role), "{role} not in {problems}");
    }
}

#[test]
fn all_problems_come_at_once_with_place_and_nearest_word() {
    let text = format!(
        "{ROLES}sweep:\n  rans: 2\n  max_messages: 1\n  first_speaker: bot\n  personas: []\ngate:\n  treshold: x\nconcurrency:\n  calls: 0\n"
    );
    let shown = parse(&text).unwrap_err().to_string();
    for part in [
        "unknown key `sweep.rans`",
        "did you mean `runs`?",
        "`sweep.max_messages` is 1",
        "`sweep.first_speaker` is `bot`",
        "`sweep.personas` selects nothing",
        "did you mean `thresholds`?",
        "`concurrency.calls` is 0",
        "vera-gate.yaml:5:3",
    ] {
        assert!(shown.contains(part), "{part} not in\n{shown}");
    }
}

#[test]
fn models_can_be_lists_with_everything_a_provider_takes() {
    let config = parse(
        "user:\n  - openai/gpt-6-luna\n  - model: anthropic/claude-haiku-5-5\n    effort: low\n    timeout: 2m\ncandidate:\n  provider: http\n  name: our bot\n  http:\n    turn: { url: 'https://bot.example/turn', body: '{\"text\": {{json user_text}}}' }\n    reply: /text\n    stream: { kind: sse, delta: /d, end_data: '[DONE]' }\njudge:\n  - { model: openai/gpt-6-luna, instances: 3, extra_body: { a: [1, 2.5, null] } }\njudging: { reasks: 1, ahead: none }\n",
    )
    .unwrap();
    assert_eq!(config.users.len(), 2);
    assert_eq!(config.users[1].effort, Some(model::Effort::Low));
    assert_eq!(config.users[1].timeout, Some(Duration::from_mins(2)));
    let http = config.candidate.model.http.as_ref().unwrap();
    assert_eq!(http.reply, ["/text"]);
    assert_eq!(http.stream.as_ref().unwrap().end, model::StreamEnd::Data("[DONE]".to_owned()));
    assert_eq!(config.judge.models[0].instances, 3);
    assert_eq!(config.judge.models[0].model.extra_body["a"], serde_json::json!([1, 2.5, null]));
    assert_eq!((config.judge.reasks, config.judge.ahead), (1, Ahead::None));
}

#[test]
fn another_schema_is_refused() {
    let problems = parse(&format!("schema: vera-gate/config/v2\n{ROLES}")).unwrap_err();
    assert_eq!(problems.iter().next().unwrap().code, Code::UnsupportedVersion);
}

#[test]
fn two_system_prompts_contradict() {
    let text = "user: a\njudge: b\ncandidate: { model: c, system_prompt: x, system_prompt_file: y }\n";
    assert_eq!(parse(text).unwrap_err().iter().next().unwrap().code, Code::NotTogether);
}

#[test]
fn the_built_in_configuration_is_valid_and_needs_no_key() {
    let config = Config::builtin();
    assert_eq!(config.candidate.model.model, "scripted/careful");
    assert!(config.users.iter().all(|user| user.key_env.is_none()));
}
