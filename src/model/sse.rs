//! Framing of streamed replies: server-sent events, over a complete text.

use serde_json::Value;

use super::Failure;
use super::wire::Fault;

/// One server-sent event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// Its `event` field; `message` when it has none.
    pub(crate) name: String,
    /// Its `data` lines, joined by line ends.
    pub(crate) data: String,
}

impl Event {
    /// Its data as JSON. A stream that was cut inside an event ends in half of it.
    pub(crate) fn json(&self) -> Result<Value, Fault> {
        serde_json::from_str(&self.data).map_err(|error| {
            Fault::new(Failure::Transport, format!("the stream was cut inside an event: {error}"))
        })
    }
}

/// A stream whose end is missing.
pub(crate) fn cut() -> Fault {
    Fault::new(Failure::Transport, "the stream ended before the reply did")
}

/// All events of a stream: line ends of all kinds, comments, several data lines. A last event without the closing
/// blank line is included, because some servers leave it out; whether it is whole shows in its data.
pub(crate) fn events(text: &str) -> Vec<Event> {
    let mut events = Vec::new();
    let mut name = String::new();
    let mut data: Vec<&str> = Vec::new();
    let unified = text.replace("\r\n", "\n").replace('\r', "\n");
    for line in unified.split('\n').chain([""]) {
        if line.is_empty() {
            if !data.is_empty() {
                let name = if name.is_empty() { "message".to_owned() } else { name.clone() };
                events.push(Event { name, data: data.join("\n") });
            }
            name.clear();
            data.clear();
            continue;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut name),
            "data" => data.push(value),
            // Comments have an empty field name; ids and retry times do not matter to a single reply.
            _ => {}
        }
    }
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(text: &str) -> Vec<String> {
        events(text).into_iter().map(|event| event.data).collect()
    }

    #[test]
    fn frames_of_all_kinds_are_read() {
        assert_eq!(data("data: a\n\ndata: b\n\n"), ["a", "b"]);
        assert_eq!(data(": keepalive\r\n\r\ndata: a\r\n\r\ndata:b\r\n\r\n"), ["a", "b"]);
        assert_eq!(data("data: a\rdata: b\r\r"), ["a\nb"]);
        assert_eq!(data("data: a\n\ndata: [DONE]"), ["a", "[DONE]"]);
        assert_eq!(data("id: 7\nretry: 10\n\n"), [""; 0]);
        assert_eq!(data("data\n\n"), [""]);
    }

    #[test]
    fn names_belong_to_their_event() {
        let read = events("event: delta\ndata: a\n\ndata: b\n\n");
        assert_eq!(read.iter().map(|e| e.name.as_str()).collect::<Vec<_>>(), ["delta", "message"]);
    }
}
