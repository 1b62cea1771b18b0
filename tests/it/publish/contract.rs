//! Holds requests and answers against GitHub's own description of its interface.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};

use jsonschema::Validator;
use serde_json::{Value, json};

fn slice() -> &'static Value {
    static SLICE: OnceLock<Value> = OnceLock::new();
    SLICE.get_or_init(|| {
        let mut slice: Value =
            serde_json::from_str(include_str!("../../fixtures/github/openapi-slice.json")).unwrap();
        let components = slice.get_mut("components").unwrap();
        as_json_schema(components);
        as_json_schema(slice.get_mut("paths").unwrap());
        slice
    })
}

/// OpenAPI 3.0 says `nullable: true` where JSON Schema has a union of types.
fn as_json_schema(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.values_mut().for_each(as_json_schema);
            if map.get("nullable") == Some(&Value::Bool(true)) {
                let inner = Value::Object(std::mem::take(map));
                map.clone_from(json!({"anyOf": [{"type": "null"}, inner]}).as_object().unwrap());
                map["anyOf"][1].as_object_mut().unwrap().remove("nullable");
            }
        }
        Value::Array(list) => list.iter_mut().for_each(as_json_schema),
        _ => {}
    }
}

/// An example of the description, by its name.
pub(super) fn example(name: &str) -> Value {
    slice()["components"]["examples"][name]["value"].clone()
}

fn resolve(value: &'static Value) -> &'static Value {
    match value.get("$ref").and_then(Value::as_str) {
        Some(reference) => slice().pointer(reference.strip_prefix('#').unwrap()).unwrap(),
        None => value,
    }
}

/// The operation of a method and path; `{path}` spans several segments.
fn operation(method: &str, path: &str) -> Option<(&'static str, &'static Value)> {
    let segments: Vec<&str> = path.split('/').collect();
    slice()["paths"].as_object().unwrap().iter().find_map(|(template, methods)| {
        let wanted: Vec<&str> = template.split('/').collect();
        let open_end = wanted.last() == Some(&"{path}") && segments.len() >= wanted.len();
        let matches = (segments.len() == wanted.len() || open_end)
            && wanted.iter().zip(&segments).all(|(want, have)| {
                // "If you omit the path parameter, you will receive the contents of the root directory."
                want.starts_with('{') && (!have.is_empty() || *want == "{path}") || want == have
            });
        let operation = methods.get(method.to_ascii_lowercase())?;
        matches.then_some((template.as_str(), operation))
    })
}

fn violations(key: String, schema: &'static Value, instance: &Value) -> Vec<String> {
    static VALIDATORS: OnceLock<Mutex<HashMap<String, Validator>>> = OnceLock::new();
    let mut validators = VALIDATORS.get_or_init(Mutex::default).lock().unwrap();
    let validator = validators.entry(key).or_insert_with(|| {
        let schema = json!({"allOf": [schema], "components": slice()["components"]});
        jsonschema::draft7::new(&schema).unwrap()
    });
    validator.iter_errors(instance).map(|e| format!("{}: {e}", e.instance_path())).collect()
}

/// What is wrong with a request, by the description; empty when nothing is.
pub(super) fn request_faults(
    method: &str,
    path: &str,
    query: &[(String, String)],
    body: Option<&Value>,
) -> Vec<String> {
    let Some((template, operation)) = operation(method, path) else {
        return vec![format!("{method} {path}: there is no such operation")];
    };
    let mut faults = Vec::new();
    let parameters: Vec<&Value> =
        operation["parameters"].as_array().map(|list| list.iter().map(resolve).collect()).unwrap_or_default();
    let segments: Vec<(&str, &str)> = template.split('/').zip(path.split('/')).collect();
    for parameter in &parameters {
        let name = parameter["name"].as_str().unwrap();
        let value = match parameter["in"].as_str().unwrap() {
            "query" => query.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()),
            "path" => segments.iter().find(|(t, _)| *t == format!("{{{name}}}")).map(|(_, value)| *value),
            _ => continue,
        };
        let Some(value) = value else { continue };
        // A number in an address is text until its type is known.
        let typed = value.parse::<i64>().map_or_else(|_| json!(value), |number| json!(number));
        let schema = &parameter["schema"];
        let instance = if schema["type"] == "string" { json!(value) } else { typed };
        let key = format!("{method} {template} {name}");
        faults
            .extend(violations(key, schema, &instance).into_iter().map(|v| format!("parameter {name}: {v}")));
    }
    for (name, _) in query {
        if !parameters.iter().any(|p| p["in"] == "query" && p["name"] == name.as_str()) {
            faults.push(format!("{method} {template} has no parameter {name}"));
        }
    }
    let schema = operation.pointer("/requestBody/content/application~1json/schema");
    match (schema, body) {
        (Some(schema), Some(body)) => {
            faults.extend(violations(format!("{method} {template}"), schema, body));
            let known = schema.get("properties").and_then(Value::as_object);
            for key in body.as_object().into_iter().flatten().map(|(key, _)| key) {
                if known.is_some_and(|known| !known.contains_key(key)) {
                    faults.push(format!("{method} {template} has no field {key}"));
                }
            }
            // Written only in the prose of the description.
            if body["status"] == "completed" && body["conclusion"].is_null() {
                faults.push("a completed check has no conclusion".to_owned());
            }
        }
        (Some(_), None) => faults.push(format!("{method} {template} without a body")),
        (None, Some(_)) => faults.push(format!("{method} {template} takes no body")),
        (None, None) => {}
    }
    faults
}

/// What is wrong with an answer of the test server, by the description.
pub(super) fn response_faults(method: &str, path: &str, status: u16, body: Option<&Value>) -> Vec<String> {
    let Some((template, operation)) = operation(method, path) else { return Vec::new() };
    let Some(response) = operation["responses"].get(status.to_string()).map(resolve) else {
        // The description does not list every error: a removed comment is answered by 404 all the same.
        if status >= 400 {
            return Vec::new();
        }
        return vec![format!("{method} {template} never answers {status}")];
    };
    match (response.pointer("/content/application~1json/schema"), body) {
        (Some(schema), Some(body)) => violations(format!("{method} {template} {status}"), schema, body),
        (Some(_), None) => vec![format!("{method} {template} {status} without a body")],
        _ => Vec::new(),
    }
}

#[test]
fn the_description_refuses_wrong_requests() {
    let comments = "/repos/acme/bot/issues/1/comments";
    let comment = "/repos/acme/bot/issues/comments/1";
    let ok = |faults: Vec<String>| assert_eq!(faults, Vec::<String>::new());
    ok(request_faults("POST", comments, &[], Some(&json!({"body": "x"}))));
    ok(request_faults("PATCH", comment, &[], Some(&json!({"body": "x"}))));
    ok(request_faults("GET", "/repos/acme/bot/contents/a/b.yaml", &[("ref".into(), "main".into())], None));
    ok(request_faults("GET", comments, &[("per_page".into(), "100".into())], None));
    let check = json!({"name": "v", "head_sha": "a", "conclusion": "bad"});
    let many: Vec<Value> = (0..51)
        .map(|_| json!({"path": "p", "start_line": 1, "end_line": 1, "annotation_level": "notice", "message": "m"}))
        .collect();
    for (what, faults) in [
        ("update by POST", request_faults("POST", comment, &[], Some(&json!({"body": "x"})))),
        ("no text", request_faults("POST", comments, &[], Some(&json!({"text": "x"})))),
        ("text is a number", request_faults("POST", comments, &[], Some(&json!({"body": 1})))),
        ("no body", request_faults("PATCH", comment, &[], None)),
        ("page is no number", request_faults("GET", comments, &[("page".into(), "x".into())], None)),
        ("unknown parameter", request_faults("GET", comments, &[("limit".into(), "1".into())], None)),
        ("issue is no number", request_faults("GET", "/repos/acme/bot/issues/x/comments", &[], None)),
        ("unknown conclusion", request_faults("POST", "/repos/acme/bot/check-runs", &[], Some(&check))),
        (
            "51 annotations",
            request_faults(
                "PATCH",
                "/repos/acme/bot/check-runs/1",
                &[],
                Some(&json!({"output": {"summary": "s", "annotations": many}})),
            ),
        ),
        (
            "completed without conclusion",
            request_faults(
                "PATCH",
                "/repos/acme/bot/check-runs/1",
                &[],
                Some(&json!({"status": "completed"})),
            ),
        ),
    ] {
        assert!(!faults.is_empty(), "{what} was accepted");
    }
}

#[test]
fn the_description_refuses_wrong_answers() {
    let path = "/repos/acme/bot/issues/1/comments";
    let mut comment = example("issue-comment");
    assert_eq!(response_faults("POST", path, 201, Some(&comment)), Vec::<String>::new());
    comment.as_object_mut().unwrap().remove("created_at");
    assert!(!response_faults("POST", path, 201, Some(&comment)).is_empty());
    assert!(!response_faults("POST", path, 299, None).is_empty());
}
