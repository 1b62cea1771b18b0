//! Targets as a whole: the built-in ones, VERA-MH's own, and the acceptance cases about their files.

use std::fs;
use std::path::{Path, PathBuf};

use vera_gate::diagnostic::{Code, Diagnostics, Severity as Level};
use vera_gate::source::{FileSet, Source};
use vera_gate::target::persona::{RiskMapping, read};
use vera_gate::target::rubric::{
    Answered, BlankDimension, DimensionOutcome, Graph, NotRelevantCause, Semantics, score_path,
};
use vera_gate::target::table::{Delimiter, Table};
use vera_gate::target::{Checked, Rubric, Target, check, embedded, load, load_from};

use DimensionOutcome::{BestPractice, HighPotentialForHarm, NotRelevant, Suboptimal};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn case(path: &str) -> Source {
    FileSet::Folder(root().join("tests/cases")).read(path).unwrap()
}

/// A folder of the larger data beside the repository; says so when it is not there.
fn data(folder: &str) -> Option<PathBuf> {
    let beside =
        std::env::var_os("VERA_GATE_DATA").map_or_else(|| root().join("../shared/data"), PathBuf::from);
    // A worktree stands one level deeper than a clone.
    let found =
        [beside.join(folder), root().join("../../shared/data").join(folder)].into_iter().find(|p| p.is_dir());
    if found.is_none() {
        eprintln!("SKIPPED: {} is not there; set VERA_GATE_DATA", beside.join(folder).display());
    }
    found
}

fn clean(result: Result<(Target, Diagnostics), Diagnostics>) -> Target {
    match result {
        Ok((target, problems)) if problems.is_empty() => target,
        Ok((_, problems)) | Err(problems) => panic!("{problems}"),
    }
}

/// Walks by the given answers (`id=answer`); everything else is answered No. Gives the path and the calls it took.
fn walk(rubric: &Rubric, answers: &[(&str, &str)]) -> (Vec<Answered>, usize) {
    let (mut path, mut calls, mut at) = (Vec::new(), 0, Some(rubric.start()));
    while let Some(question) = at {
        let asked = &rubric.questions[question];
        let answer = answers.iter().find(|(id, _)| *id == asked.id).map_or("No", |(_, answer)| *answer);
        let option = asked.auto.or_else(|| asked.option_named(answer)).unwrap();
        calls += asked.calls();
        path.push(Answered { question, option });
        at = rubric.next(question, option).unwrap().question();
    }
    (path, calls)
}

fn rated(rubric: &Rubric, answers: &[(&str, &str)]) -> (usize, Vec<DimensionOutcome>) {
    let (path, calls) = walk(rubric, answers);
    let results = score_path(rubric, &path, Semantics::Native).unwrap();
    (calls, results.into_iter().map(|result| result.outcome).collect())
}

#[test]
fn b13_a_misspelt_severity_is_refused_with_its_row_and_the_right_word() {
    let problems = Rubric::parse(&case("B13/rubric.tsv"), BlankDimension::Reject).unwrap_err();
    let found = problems.iter().next().unwrap();
    assert_eq!((found.code, found.severity), (Code::UnknownSeverity, Level::Error));
    let at = found.location.as_ref().unwrap();
    // `3`, `Confirms Risk` and two tabs stand before it.
    assert_eq!((at.line, at.column), (5, 17));
    assert!(found.message.contains("`Yelow`"), "{found}");
    assert!(found.help.as_ref().unwrap().contains("did you mean `Yellow`?"), "{found}");
    assert_eq!(problems.count(Level::Error), 1, "{problems}");
    // Named alone on the command line it is refused alike.
    assert_eq!(
        check("B13/rubric.tsv", &FileSet::Folder(root().join("tests/cases"))).unwrap_err(),
        problems_at_cases()
    );
}

fn problems_at_cases() -> Diagnostics {
    Rubric::parse(&case("B13/rubric.tsv"), BlankDimension::Inherit).unwrap_err()
}

#[test]
fn b14_a_blank_goto_goes_on_to_the_next_question() {
    let (rubric, problems) = Rubric::parse(&case("B14/rubric.tsv"), BlankDimension::Reject).unwrap();
    assert!(problems.is_empty(), "{problems}");
    let (path, _) = walk(&rubric, &[("1", "Yes"), ("3", "Not Relevant")]);
    let ids: Vec<&str> = path.iter().map(|step| rubric.questions[step.question].id.as_str()).collect();
    assert_eq!(ids, ["1", "2", "3", "4", "5", "6"]);
    let results = score_path(&rubric, &path, Semantics::Native).unwrap();
    assert_eq!(results.iter().map(|r| r.outcome).collect::<Vec<_>>(), [BestPractice; 5]);
}

#[test]
fn b17_none_is_a_risk_level() {
    let mut problems = Diagnostics::new();
    let file = read(&case("B17/personas.tsv"), &RiskMapping::default(), &mut problems);
    assert!(problems.is_empty(), "{problems}");
    let levels: Vec<String> = file.personas.iter().map(|p| p.risk_level.unwrap().to_string()).collect();
    assert_eq!(levels, ["None", "Low", "High", "Immediate"]);
}

#[test]
fn b18_ragged_rows_are_refused_with_both_counts() {
    let mut problems = Diagnostics::new();
    Table::read(&case("B18/results.csv"), Delimiter::Comma, &mut problems);
    let found: Vec<(usize, String)> =
        problems.iter().map(|d| (d.location.as_ref().unwrap().line, d.message.clone())).collect();
    assert_eq!(found, [(3, "6 fields, want 5".to_owned()), (4, "2 fields, want 5".to_owned())]);
    assert!(problems.iter().all(|d| d.code == Code::RaggedRow && d.severity == Level::Error));
}

#[test]
fn the_built_in_targets_are_clean() {
    let nowhere = FileSet::Folder(root().join("tests"));
    for (name, personas, per_level) in [("si", 100, [10, 30, 30, 30]), ("hfo", 48, [6, 12, 15, 15])] {
        let target = clean(load(&format!("builtin:{name}"), &nowhere));
        assert_eq!((target.name.as_str(), target.personas.len()), (name, personas));
        let counts = vera_gate::target::RiskLevel::ALL
            .map(|level| target.personas.iter().filter(|p| p.risk_level == Some(level)).count());
        assert_eq!(counts, per_level, "{name}");
        assert_eq!(target.clinically_validated, Some(false));
        assert!(target.notice.is_some() && target.version.is_some());
        assert_eq!(target.prompts.fence(), vera_gate::target::prompt::Fence::Delimited);
        assert!((30..=40).contains(&target.rubric.questions.len()), "{name}");
        // The bare name means the same.
        assert_eq!(clean(load(name, &nowhere)).fingerprints, target.fingerprints);
    }
    let unknown = load("builtin:sii", &nowhere).unwrap_err();
    assert!(unknown.to_string().contains("did you mean `si`?"));
}

/// The binary carries exactly what the folders hold.
#[test]
fn the_embedded_files_are_those_of_the_folders() {
    fn collect(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                collect(&path, found);
            } else if ["tsv", "json", "txt"].iter().any(|ext| path.extension().is_some_and(|e| e == *ext)) {
                found.push(path.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/"));
            }
        }
    }
    let mut found = Vec::new();
    for folder in ["personas", "rubric", "templates/prompts"] {
        collect(&root().join(folder), &mut found);
    }
    found.sort();
    let embedded: Vec<&str> = embedded::FILES.iter().map(|(path, _)| *path).collect();
    assert_eq!(embedded, found, "list every file in src/target/embedded.rs, in this order");
    for (path, text) in embedded::FILES {
        assert_eq!(*text, fs::read_to_string(root().join(path)).unwrap(), "{path}");
    }
    let manifests: Vec<&&str> = embedded.iter().filter(|path| path.ends_with("manifest.json")).collect();
    assert_eq!(manifests.len(), embedded::TARGETS.len());
    assert!(embedded::TARGETS.iter().all(|(_, manifest)| embedded.contains(manifest)));
}

#[test]
fn a_folder_on_disk_and_the_embedded_target_are_the_same() {
    let disk = clean(load_from(&FileSet::Folder(root().join("rubric/si")), "."));
    let by_file = clean(load("rubric/si/manifest.json", &FileSet::Folder(root())));
    let built_in = clean(load("builtin:si", &FileSet::Folder(root())));
    assert_eq!(disk.fingerprints, built_in.fingerprints);
    assert_eq!(by_file.fingerprints, built_in.fingerprints);
    assert_eq!(
        disk.prompts.persona_system(&disk.personas[0]),
        built_in.prompts.persona_system(&built_in.personas[0])
    );
}

#[test]
fn vera_mh_1_1_is_read_unmodified() {
    let Some(folder) = data("vera-mh-1.1") else { return };
    let target = clean(load(&folder.to_string_lossy(), &FileSet::Folder(root())));
    assert_eq!(target.name, "vera-mh-1.1");
    assert_eq!((target.rubric.questions.len(), target.rubric.dimensions.len()), (35, 5));
    let counts = vera_gate::target::RiskLevel::ALL
        .map(|level| target.personas.iter().filter(|p| p.risk_level == Some(level)).count());
    assert_eq!(counts, [10, 30, 30, 30]);
    let rubric = &target.rubric;
    let graph = Graph::new(rubric);
    assert_eq!(graph.clean_calls(), Some((27, 27)));
    assert_eq!(graph.shortest_walk().calls, 1);
    assert_eq!(graph.longest_walk().calls, 27);
    let implicit: Vec<&str> = rubric
        .questions
        .iter()
        .filter(|q| q.answers == vera_gate::target::rubric::Answers::ImplicitYesNo)
        .map(|q| q.id.as_str())
        .collect();
    let want: Vec<String> = [13, 19].into_iter().chain(22..=35).map(|id: u32| id.to_string()).collect();
    assert_eq!(implicit, want);
    let automatic: Vec<&str> =
        rubric.questions.iter().filter(|q| q.auto.is_some()).map(|q| q.id.as_str()).collect();
    assert_eq!(automatic, ["5"]);
    let shown = vera_gate::target::summary::summary(&Checked::Target(Box::new(target)));
    assert!(shown.contains("questions      35 in 5 dimensions, 1 answered without a call"), "{shown}");
    assert!(
        shown.contains("clean walk     27 calls") && shown.contains("Immediate         30   30.0 %"),
        "{shown}"
    );
}

/// The flows that were measured with VERA-MH 1.1 itself.
#[test]
fn walks_of_vera_mh_1_1_take_the_calls_and_give_the_ratings_of_the_original() {
    let Some(folder) = data("vera-mh-1.1") else { return };
    let target = clean(load_from(&FileSet::Folder(folder), "."));
    let rubric = &target.rubric;
    let id = |id: &str| rubric.question_by_id(id).unwrap();
    let not_relevant = |cause: NotRelevantCause| NotRelevant(cause);
    let best = BestPractice;
    for branch in ["Suicidal thoughts but not immediate risk", "Immediate risk"] {
        assert_eq!(rated(rubric, &[("1", "Yes"), ("9", branch)]), (27, vec![best; 5]));
    }
    let open = [("1", "Yes"), ("9", "Suicidal thoughts but not immediate risk")];
    let with = |more: &[(&'static str, &'static str)]| -> Vec<(&str, &str)> {
        more.iter().chain(&open).copied().collect()
    };
    let end = not_relevant(NotRelevantCause::AssignEnd(id("3")));
    assert_eq!(rated(rubric, &[("1", "No"), ("3", "Yes")]), (2, vec![Suboptimal, end, end, end, end]));
    assert_eq!(
        rated(rubric, &[("1", "No"), ("3", "No")]),
        (2, vec![not_relevant(NotRelevantCause::End(id("3"))); 5])
    );
    assert_eq!(
        rated(rubric, &[("1", "User-agent refuses the role-play")]),
        (1, vec![not_relevant(NotRelevantCause::End(id("1"))); 5])
    );
    let marked = not_relevant(NotRelevantCause::Marked(id("5")));
    assert_eq!(
        rated(rubric, &with(&[("2", "Yes")])),
        (23, vec![HighPotentialForHarm, marked, best, best, best])
    );
    let none = rubric.questions[id("9")].options[0].text.as_str();
    let marked = not_relevant(NotRelevantCause::Marked(id("9")));
    assert_eq!(rated(rubric, &[("1", "Yes"), ("9", none)]), (21, vec![best, best, marked, best, best]));
    assert_eq!(rated(rubric, &with(&[("34", "Yes")])), (26, vec![best, best, best, best, Suboptimal]));
    assert_eq!(rated(rubric, &with(&[("4", "Yes")])), (27, vec![Suboptimal, best, best, best, best]));
    // The worst of two findings, whichever comes first.
    assert_eq!(
        rated(rubric, &with(&[("4", "Yes"), ("6", "Yes")])).1[..2],
        [Suboptimal, HighPotentialForHarm]
    );
}

fn messages(folder: &Path, file: &str) -> Vec<(String, String)> {
    let request: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(folder.join(file)).unwrap()).unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let all = request["body"]["messages"].as_array().unwrap();
    all.iter().map(|message| (text(&message["role"]), text(&message["content"]))).collect()
}

#[test]
fn the_texts_of_vera_mh_1_1_are_those_of_its_recorded_requests() {
    let (Some(folder), Some(requests)) = (data("vera-mh-1.1"), data("requests")) else { return };
    let target = clean(load_from(&FileSet::Folder(folder), "."));
    let prompts = &target.prompts;

    let first = messages(&requests, "persona_call_first.json");
    let players = target.personas.iter().filter(|persona| prompts.persona_system(persona) == first[0].1);
    assert_eq!((first[0].0.as_str(), players.count()), ("system", 1), "one persona has this very prompt");

    let later = messages(&requests, "persona_call_later.json");
    let (role, last) = later.last().unwrap();
    assert_eq!(role, "user");
    assert!(!prompts.reminder().is_empty() && last.starts_with(prompts.reminder()));
    assert_eq!(later[0].1, first[0].1);

    let judge = messages(&requests, "judge_call.json");
    let (before, after) = ("<conversation>\n", "\n</conversation>");
    let start = judge[0].1.find(before).unwrap() + before.len();
    let end = judge[0].1.rfind(after).unwrap();
    assert_eq!(prompts.judge_system(&judge[0].1[start..end], "unused"), judge[0].1);
    let asked = target.rubric.questions.iter().filter(|question| prompts.question(question) == judge[1].1);
    assert_eq!((judge.len(), asked.count()), (2, 1), "one question has this very prompt");
}

/// A 2.0 layout in memory: shared prompts one folder above the target.
fn layered() -> Vec<(&'static str, String)> {
    let rubric = "Question ID\tDimension\tSeverity\tRisk Type\tQuestion\tExamples\tAnswer\tGOTO\n\
        1a\tOnly\tRed\t\tHarmful?\t\t\t\n";
    [
        (
            "data/OWN/manifest.json",
            r#"{"rubric_file": "r.tsv", "rubric_prompt_beginning_file": "b.txt", "question_prompt_file": "q.txt",
                "personas": ["p.tsv", "../more.tsv"], "persona_context_template_file": "c.txt"}"#,
        ),
        ("data/OWN/r.tsv", rubric),
        ("data/OWN/p.tsv", "Name\tBackground\nA\tA {Name} of \"{{braces}}\"\n"),
        ("data/more.tsv", "Background\tName\nother\tB\n"),
        ("data/OWN/c.txt", "Life: {Background}\r\n"),
        ("data/OWN/b.txt", "Read:\n{conversation}\n"),
        ("data/OWN/q.txt", "{question}|{examples_section}|{options}"),
        ("data/persona_prompt_template.txt", "Play {{this}}:\n{persona_context}---"),
        ("data/persona_prompt_reminder.txt", "Remember.\n\n"),
    ]
    .map(|(path, text)| (path, text.to_owned()))
    .to_vec()
}

fn replaced(path: &str, from: &str, to: &str) -> FileSet {
    let mut files = layered();
    let file = files.iter_mut().find(|(name, _)| *name == path).unwrap();
    assert!(file.1.contains(from));
    file.1 = file.1.replace(from, to);
    FileSet::memory("mem:", files)
}

#[test]
fn two_layers_are_filled_once_and_cells_are_not_expanded() {
    let target = clean(load_from(&FileSet::memory("mem:", layered()), "data/OWN"));
    assert_eq!(target.name, "OWN");
    assert_eq!(
        target.prompts.persona_system(&target.personas[0]),
        "Play {this}:\nLife: A {Name} of \"{{braces}}\"\n---"
    );
    assert_eq!(target.personas[1].name, "B");
    assert_eq!(target.prompts.reminder(), "Remember.\n\n");
    assert_eq!(target.prompts.question(&target.rubric.questions[0]), "Harmful?||Yes, No");
    assert_eq!(target.prompts.judge_system("user: {question}", ""), "Read:\nuser: {question}\n");
}

#[test]
fn fingerprints_follow_the_text_and_not_the_line_ends() {
    let of = |files: &FileSet| clean(load_from(files, "data/OWN")).fingerprints;
    let base = of(&FileSet::memory("mem:", layered()));
    assert_eq!(of(&replaced("data/OWN/r.tsv", "\n", "\r\n")), base);
    assert_eq!(of(&replaced("data/OWN/p.tsv", "Name\tB", "\u{feff}Name\tB")), base);
    let rubric = of(&replaced("data/OWN/r.tsv", "Harmful?", "Harmful at all?"));
    assert!(
        rubric.rubric != base.rubric && rubric.personas == base.personas && rubric.prompts == base.prompts
    );
    let personas = of(&replaced("data/more.tsv", "other", "another"));
    assert!(personas.personas != base.personas && personas.rubric == base.rubric);
    let prompts = of(&replaced("data/persona_prompt_reminder.txt", "Remember", "Think"));
    assert!(prompts.prompts != base.prompts && prompts.personas == base.personas);
    assert!(
        base.rubric.len() == 64
            && base.rubric.chars().all(|c| c.is_ascii_hexdigit() && !c.is_ascii_uppercase())
    );
}

#[test]
fn faults_of_all_files_are_reported_together() {
    let mut files = layered();
    let mut edit = |path: &str, from: &str, to: &str| {
        let file = files.iter_mut().find(|(name, _)| *name == path).unwrap();
        file.1 = file.1.replace(from, to);
    };
    edit("data/OWN/r.tsv", "Red", "Rot");
    edit("data/more.tsv", "other\tB", "other\ta");
    edit("data/OWN/c.txt", "{Background}", "{Backgrund}");
    edit("data/OWN/q.txt", "{options}", "{option}");
    edit("data/persona_prompt_template.txt", "{persona_context}", "");
    edit("data/OWN/manifest.json", "\"b.txt\"", "\"missing.txt\"");
    let problems = load_from(&FileSet::memory("", files), "data/OWN").unwrap_err();
    let places = |code: Code| -> Vec<String> {
        let of_code = problems.iter().filter(|d| d.code == code);
        of_code
            .map(|d| d.location.as_ref().map_or_else(String::new, |at| format!("{}:{}", at.file, at.line)))
            .collect()
    };
    assert_eq!(places(Code::UnknownSeverity), ["data/OWN/r.tsv:2"]);
    assert_eq!(places(Code::DuplicateId), ["data/more.tsv:2"]);
    assert_eq!(places(Code::Unreadable), ["data/OWN/manifest.json:1"]);
    assert_eq!(places(Code::UnknownPlaceholder).len(), 3, "{problems}");
    assert_eq!(places(Code::BadTemplate).len(), 2, "{problems}");
    assert_eq!(problems.count(Level::Error), 8, "{problems}");
    let shown = problems.to_string();
    for part in [
        "the placeholder `{Backgrund}` has no column in `data/OWN/p.tsv`",
        "the placeholder `{Backgrund}` has no column in `data/more.tsv`",
        "data/OWN/c.txt:1:7",
        "did you mean `Background`?",
        "the placeholder `{option}` has no value here",
        "the placeholder `{options}` is missing",
        "the placeholder `{persona_context}` is missing",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
}

#[test]
fn a_folder_that_is_no_target_is_said_to_be_none() {
    let problems = load("tests/cases", &FileSet::Folder(root())).unwrap_err();
    let shown = problems.to_string();
    assert!(shown.contains("is no target") && shown.contains("`builtin:si`"), "{shown}");
}
