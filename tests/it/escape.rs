//! A corpus of hostile strings goes through every sink, and a parser of that sink finds nothing but text.

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use quick_xml::Reader;
use quick_xml::events::Event as XmlEvent;
use vera_gate::escape::unicode::{Lines, plain};
use vera_gate::escape::workflow::{Command, Level};
use vera_gate::escape::{csv as csv_sink, html, markdown, terminal, workflow, xml};

/// The corpus, one string a line, with `\n`, `\r`, `\t`, `\\` and `\u{..}` as escapes.
pub(super) fn corpus() -> Vec<String> {
    let strings: Vec<String> = include_str!("../fixtures/hostile.txt").lines().map(unescape).collect();
    assert!(strings.len() >= 200, "the corpus shrank to {}", strings.len());
    strings
}

fn unescape(line: &str) -> String {
    let mut out = String::new();
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('r') => out.push('\r'),
            Some('t') => out.push('\t'),
            Some('\\') => out.push('\\'),
            Some('u') => {
                let digits: String = chars.by_ref().skip(1).take_while(|&c| c != '}').collect();
                out.push(char::from_u32(u32::from_str_radix(&digits, 16).unwrap()).unwrap());
            }
            other => panic!("unknown escape {other:?} in {line}"),
        }
    }
    out
}

/// What a reader sees of escaped text: without the separators that escaping put in, and with white space as shown.
fn seen(text: &str) -> String {
    text.replace('\u{200B}', "").trim().to_owned()
}

fn expected(text: &str, lines: Lines) -> String {
    plain(text, lines).trim().to_owned()
}

// ---- Markdown ----

pub(super) const GFM: Options = Options::ENABLE_TABLES
    .union(Options::ENABLE_STRIKETHROUGH)
    .union(Options::ENABLE_TASKLISTS)
    .union(Options::ENABLE_FOOTNOTES)
    .union(Options::ENABLE_MATH)
    .union(Options::ENABLE_GFM);

/// GitHub's references in rendered text outside of code: mention, issue, commit, link, emoji.
pub(super) fn github_reference(text: &str) -> Option<String> {
    let chars: Vec<char> = text.chars().collect();
    let word = |from: usize| chars.iter().skip(from).take_while(|c| c.is_alphanumeric()).collect::<String>();
    for i in 0..chars.len() {
        let next = chars.get(i + 1).copied().unwrap_or(' ');
        let rest: String = chars[i..].iter().take(12).collect::<String>().to_ascii_lowercase();
        let starts_word = i == 0 || !chars[i - 1].is_alphanumeric();
        let hit = chars[i] == '@' && (next.is_ascii_alphanumeric() || next == '_' || next == '-')
            || chars[i] == '#' && next.is_ascii_digit()
            || starts_word && rest.starts_with("gh-") && chars.get(i + 3).is_some_and(char::is_ascii_digit)
            || rest.starts_with("ghsa-") && chars.get(i + 5).is_some_and(|c| c.is_alphanumeric())
            || rest.starts_with("cve-") && chars.get(i + 4).is_some_and(char::is_ascii_digit)
            || rest.starts_with("://") && chars.get(i + 3).is_some_and(|c| !c.is_whitespace())
            || rest.starts_with("www.") && chars.get(i + 4).is_some_and(|c| !c.is_whitespace())
            || (rest.starts_with("mailto:") || rest.starts_with("xmpp:"))
                && rest.find(':').and_then(|at| chars.get(i + at + 1)).is_some_and(|c| c.is_alphanumeric())
            || chars[i] == ':' && {
                let name: String = chars[i + 1..]
                    .iter()
                    .take_while(|c| c.is_ascii_alphanumeric() || "_+-".contains(**c))
                    .collect();
                !name.is_empty() && chars.get(i + 1 + name.chars().count()) == Some(&':')
            }
            || starts_word && {
                let word = word(i);
                (7..=40).contains(&word.len()) && word.chars().all(|c| c.is_ascii_hexdigit())
            };
        if hit {
            return Some(chars[i..].iter().take(20).collect());
        }
    }
    None
}

/// Rendered text of a run of events, or the event that is more than text.
fn only_text<'a>(events: impl Iterator<Item = Event<'a>>) -> Result<String, String> {
    let mut text = String::new();
    for event in events {
        match event {
            Event::Text(part) => text.push_str(&part),
            Event::Start(Tag::Paragraph) | Event::End(TagEnd::Paragraph) => {}
            other => return Err(format!("{other:?}")),
        }
    }
    Ok(text)
}

#[test]
fn markdown_inline_is_text() {
    for hostile in corpus() {
        check_inline(&hostile);
    }
}

/// Every form of Markdown at once.
pub(super) fn check_markdown(hostile: &str) {
    check_inline(hostile);
    check_cells(hostile);
    check_code(hostile);
}

fn check_inline(hostile: &str) {
    for (place, source) in [
        ("alone", markdown::inline(hostile).into_string()),
        ("in a sentence", format!("Reason: {} (end)", markdown::inline(hostile))),
        ("in emphasis", format!("x {}", markdown::element(hostile))),
    ] {
        let text = only_text(Parser::new_ext(&source, GFM))
            .unwrap_or_else(|event| panic!("{place}: {hostile:?} became {source:?} with {event}"));
        let want = match place {
            "alone" => expected(hostile, Lines::Join),
            "in a sentence" => format!("Reason: {} (end)", expected(hostile, Lines::Join)),
            _ => format!("x {}", expected(hostile, Lines::Join)),
        };
        assert_eq!(seen(&text), want.trim(), "{place}: {hostile:?} became {source:?}");
        assert_eq!(github_reference(&text), None, "{place}: {hostile:?} became {source:?}");
    }
}

#[test]
fn markdown_cells_stay_in_their_row() {
    for hostile in corpus() {
        check_cells(&hostile);
    }
}

fn check_cells(hostile: &str) {
    for (kind, cell) in [
        ("text", markdown::cell(hostile)),
        ("element", markdown::element(hostile)),
        ("code", markdown::code_cell(hostile)),
    ] {
        let source =
            format!("| a | b | c |\n| --- | --- | --- |\n| {cell} | mid | {cell} |\n| x | y | z |\n");
        let mut rows: Vec<Vec<String>> = Vec::new();
        for event in Parser::new_ext(&source, GFM) {
            match event {
                Event::Start(Tag::TableRow | Tag::TableHead) => rows.push(Vec::new()),
                Event::Start(Tag::TableCell) => rows.last_mut().unwrap().push(String::new()),
                Event::Text(text) => rows.last_mut().unwrap().last_mut().unwrap().push_str(&text),
                Event::Code(code) if kind == "code" => {
                    rows.last_mut().unwrap().last_mut().unwrap().push_str(&code);
                }
                Event::Start(Tag::Table(_)) | Event::End(_) => {}
                other => panic!("{kind}: {hostile:?} became {source:?} with {other:?}"),
            }
        }
        assert_eq!(rows.len(), 3, "{kind}: {hostile:?} became {source:?}");
        assert!(rows.iter().all(|row| row.len() == 3), "{kind}: {hostile:?} became {source:?}");
        assert_eq!(rows[2], ["x", "y", "z"]);
        assert_eq!(rows[1][1], "mid", "{kind}: {hostile:?}");
        for text in [&rows[1][0], &rows[1][2]] {
            assert_eq!(seen(text), expected(hostile, Lines::Join), "{kind}: {hostile:?} became {source:?}");
            if kind != "code" {
                assert_eq!(github_reference(text), None, "{kind}: {hostile:?} became {source:?}");
            }
        }
    }
}

#[test]
fn markdown_code_is_one_code() {
    for hostile in corpus() {
        check_code(&hostile);
    }
}

fn check_code(hostile: &str) {
    let source = format!("a {} b", markdown::code(hostile));
    let events: Vec<Event<'_>> = Parser::new_ext(&source, GFM).collect();
    let codes: Vec<String> = events
        .iter()
        .filter_map(|event| match event {
            Event::Code(code) => Some(code.to_string()),
            _ => None,
        })
        .collect();
    // Paragraph, text, code, text, end of paragraph.
    assert_eq!((events.len(), codes.len()), (5, 1), "{hostile:?} became {source:?} with {events:?}");
    assert_eq!(seen(&codes[0]), expected(hostile, Lines::Join), "{hostile:?}");

    let source = format!("before\n\n{}\nafter\n", markdown::code_block(hostile));
    let mut code = String::new();
    let mut outside = Vec::new();
    let mut inside = false;
    for event in Parser::new_ext(&source, GFM) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => inside = true,
            Event::End(TagEnd::CodeBlock) => inside = false,
            Event::Text(text) if inside => code.push_str(&text),
            Event::Text(text) => outside.push(text.to_string()),
            Event::Start(Tag::Paragraph) | Event::End(TagEnd::Paragraph) => {}
            other => panic!("{hostile:?} became {source:?} with {other:?}"),
        }
    }
    assert_eq!(outside, ["before", "after"], "{hostile:?} became {source:?}");
    assert_eq!(seen(&code), expected(hostile, Lines::Keep), "{hostile:?}");
    assert!(!source.contains("<!--"), "{hostile:?}");
}

// ---- HTML ----

struct Tokens(RefCell<Vec<Token>>);

impl TokenSink for Tokens {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        self.0.borrow_mut().push(token);
        TokenSinkResult::Continue
    }
}

pub(super) fn html_tokens(source: &str) -> Vec<Token> {
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(source));
    let tokenizer = Tokenizer::new(Tokens(RefCell::new(Vec::new())), TokenizerOpts::default());
    let _script = tokenizer.feed(&input);
    tokenizer.end();
    tokenizer.sink.0.take()
}

/// Tag names, attribute values and text of a fragment; anything else fails.
fn html_parts(source: &str) -> (Vec<String>, Vec<(String, String)>, String) {
    let (mut tags, mut attributes, mut text) = (Vec::new(), Vec::new(), String::new());
    for token in html_tokens(source) {
        match token {
            Token::TagToken(tag) => {
                tags.push(tag.name.to_string());
                attributes.extend(tag.attrs.iter().map(|a| (a.name.local.to_string(), a.value.to_string())));
            }
            Token::CharacterTokens(part) => text.push_str(&part),
            Token::EOFToken => {}
            other => panic!("{source:?} has {other:?}"),
        }
    }
    (tags, attributes, text)
}

#[test]
fn html_is_text() {
    for hostile in corpus() {
        check_html(&hostile);
    }
}

fn check_html(hostile: &str) {
    let source = format!("<p title=\"{}\">{}</p>", html::attribute(hostile), html::text(hostile));
    let (tags, attributes, text) = html_parts(&source);
    assert_eq!(tags, ["p", "p"], "{hostile:?} became {source:?}");
    assert_eq!(attributes, [("title".to_owned(), plain(hostile, Lines::Join))], "{hostile:?}");
    assert_eq!(text, plain(hostile, Lines::Keep), "{hostile:?}");

    // In Markdown, between tags where Markdown is not read.
    let source = format!("<summary>{}</summary>", markdown::element(hostile));
    let (tags, attributes, text) = html_parts(&source);
    assert_eq!((tags.len(), attributes.len()), (2, 0), "{hostile:?} became {source:?}");
    assert_eq!(seen(&text), expected(hostile, Lines::Join), "{hostile:?} became {source:?}");
    assert_eq!(github_reference(&text), None, "{hostile:?} became {source:?}");

    if let Some(address) = html::address(hostile) {
        let (tags, attributes, _) = html_parts(&format!("<a href=\"{address}\">x</a>"));
        assert_eq!((tags.len(), attributes.len()), (2, 1), "{hostile:?}");
    }
}

#[test]
fn json_in_a_page_is_data() {
    let value = serde_json::json!(corpus());
    let escaped = html::json(&value.to_string());
    let (tags, _, text) = html_parts(&format!("<script type=\"application/json\">{escaped}</script>"));
    assert_eq!(tags, ["script", "script"]);
    assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
}

// ---- The runner's log ----

/// What the runner would take for a command in one line: `::name props::message` at the start after white space,
/// `##[name props]` anywhere. Stricter than the runner: any name counts, and invisible characters are white space.
pub(super) fn runner_command(line: &str) -> Option<String> {
    let start = line.trim_start_matches(|c: char| c.is_whitespace() || "\u{FEFF}\u{200B}\u{0}".contains(c));
    if let Some(rest) = start.strip_prefix("::")
        && let Some(end) = rest.find("::")
    {
        return Some(rest[..end].to_owned());
    }
    let at = line.find("##[")?;
    line[at + 3..].find(']').map(|end| line[at + 3..at + 3 + end].to_owned())
}

/// The runner reads a stream of lines, and obeys nothing between `stop-commands` and the closing word.
pub(super) fn commands_of(log: &str) -> Vec<String> {
    let mut stopped: Option<String> = None;
    let mut commands = Vec::new();
    for line in log.split(['\n', '\r']) {
        let Some(command) = runner_command(line) else { continue };
        match &stopped {
            Some(word) if *word == command => stopped = None,
            Some(_) => {}
            None if command == "stop-commands" => {
                stopped = Some(line.rsplit("::").next().unwrap().to_owned());
            }
            None => commands.push(command),
        }
    }
    commands
}

#[test]
fn the_runner_reads_no_command_in_printed_text() {
    let mut log = String::new();
    for hostile in corpus() {
        let line = workflow::log_text(&hostile);
        assert_eq!(commands_of(&line), Vec::<String>::new(), "{hostile:?} became {line:?}");
        assert_eq!(line.replace('\u{200B}', ""), plain(&hostile, Lines::Keep), "{hostile:?}");

        // Pages that are printed as they are keep their meaning.
        let page = format!("\n{hostile}\n");
        assert_eq!(commands_of(&workflow::break_commands(&page)), Vec::<String>::new(), "{hostile:?}");
        let json = serde_json::to_string_pretty(&serde_json::json!([hostile])).unwrap();
        let broken = workflow::break_commands_in_json(&json);
        assert_eq!(commands_of(&broken), Vec::<String>::new(), "{hostile:?} became {broken:?}");
        assert_eq!(serde_json::from_str::<Vec<String>>(&broken).unwrap(), [hostile.as_str()]);
        let markup = format!("<p>\n{}\n</p>", html::text(&hostile));
        let broken = workflow::break_commands_in_markup(&markup);
        assert_eq!(commands_of(&broken), Vec::<String>::new(), "{hostile:?} became {broken:?}");
        assert_eq!(html_parts(&broken).2, html_parts(&markup).2, "{hostile:?}");
        log.push_str(&line);
        log.push('\n');
    }
    assert_eq!(commands_of(&log), Vec::<String>::new());
}

#[test]
fn our_commands_carry_text_and_stay_one_command() {
    for hostile in corpus() {
        let command =
            Command::annotation(Level::Error, hostile.as_str()).with("title", hostile.as_str()).to_string();
        assert_eq!(command.lines().count(), 1, "{hostile:?}");
        assert!(!command.contains("##["), "{hostile:?}");
        let rest = command.strip_prefix("::error title=").unwrap();
        // The first `::` ends the properties, so neither a property nor a second one can be made up.
        let (title, message) = rest.split_once("::").unwrap();
        assert!(!title.contains([',', ':']), "{hostile:?}");
        let decoded = |text: &str| {
            text.replace("%3A", ":")
                .replace("%2C", ",")
                .replace("%0A", "\n")
                .replace("%0D", "\r")
                .replace("%25", "%")
        };
        let want = plain(&hostile, Lines::Keep);
        assert_eq!(decoded(title).replace('\u{200B}', ""), want, "{hostile:?}");
        assert_eq!(decoded(message).replace('\u{200B}', ""), want, "{hostile:?}");
    }
}

/// Reads `GITHUB_OUTPUT` as the runner does.
fn read_file_command(text: &str) -> Vec<(String, String)> {
    let mut entries = Vec::new();
    let mut lines = text.split('\n');
    while let Some(line) = lines.next() {
        if line.is_empty() {
            continue;
        }
        let equals = line.find('=').unwrap_or(usize::MAX);
        let heredoc = line.find("<<").unwrap_or(usize::MAX);
        if heredoc < equals {
            let delimiter = &line[heredoc + 2..];
            let value: Vec<&str> = lines.by_ref().take_while(|l| *l != delimiter).collect();
            entries.push((line[..heredoc].to_owned(), value.join("\n")));
        } else {
            assert_ne!(equals, usize::MAX, "the runner would refuse {line:?}");
            entries.push((line[..equals].to_owned(), line[equals + 1..].to_owned()));
        }
    }
    entries
}

#[test]
fn outputs_hold_exactly_their_value() {
    let mut file = String::new();
    let mut want = Vec::new();
    for (i, hostile) in corpus().iter().enumerate() {
        let name = format!("value-{i}");
        file.push_str(&workflow::file_entry(&name, hostile).unwrap());
        want.push((name, plain(hostile, Lines::Keep)));
    }
    assert_eq!(read_file_command(&file), want);
}

// ---- Terminal, CSV, XML ----

#[test]
fn a_terminal_is_given_nothing_to_obey() {
    for hostile in corpus() {
        for text in [terminal::block(&hostile).into_string(), terminal::line(&hostile).into_string()] {
            let obeyed = text.chars().find(|&c| {
                c.is_control() && c != '\n' && c != '\t'
                    || matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{200B}' | '\u{FEFF}')
            });
            assert_eq!(obeyed, None, "{hostile:?}");
        }
        assert!(!terminal::line(&hostile).as_str().contains(['\n', '\t']), "{hostile:?}");
    }
}

#[test]
fn a_spreadsheet_finds_no_formula() {
    let corpus = corpus();
    let mut writer = csv::WriterBuilder::new().flexible(false).from_writer(Vec::new());
    for hostile in &corpus {
        writer.write_record([csv_sink::cell(hostile), "mid".to_owned(), csv_sink::cell(hostile)]).unwrap();
    }
    let bytes = writer.into_inner().unwrap();
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(bytes.as_slice());
    let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), corpus.len());
    for (row, hostile) in rows.iter().zip(&corpus) {
        assert_eq!((row.len(), &row[1]), (3, "mid"), "{hostile:?}");
        let shown = row[0].trim_start();
        assert!(
            !shown.starts_with(['=', '+', '-', '@', '\u{FF1D}', '\u{FF0B}', '\u{FF0D}', '\u{FF20}']),
            "{hostile:?}"
        );
        assert_eq!(csv_sink::read(&row[0]), hostile.replace('\0', "\u{FFFD}"), "{hostile:?}");
    }
}

#[test]
fn xml_is_text() {
    for hostile in corpus() {
        check_xml(&hostile);
    }
}

fn check_xml(hostile: &str) {
    let source =
        format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?><t m=\"{0}\">{0}</t>", xml::text(hostile));
    assert!(source.chars().all(xml::is_allowed), "{hostile:?}");
    let mut reader = Reader::from_str(&source);
    reader.config_mut().check_end_names = true;
    let (mut depth, mut attribute, mut text) = (0, String::new(), String::new());
    loop {
        match reader.read_event().unwrap_or_else(|e| panic!("{hostile:?} became {source:?}: {e}")) {
            XmlEvent::Decl(_) => {}
            XmlEvent::Start(start) => {
                depth += 1;
                let attributes: Vec<_> = start.attributes().map(Result::unwrap).collect();
                assert_eq!(attributes.len(), 1, "{hostile:?}");
                attribute = quick_xml::escape::unescape(&attributes[0].value).unwrap().into_owned();
            }
            XmlEvent::End(_) => depth -= 1,
            XmlEvent::Text(part) => text.push_str(&part.xml10_content()),
            XmlEvent::GeneralRef(name) => match name.resolve_char_ref().unwrap() {
                Some(c) => text.push(c),
                None => text
                    .push_str(quick_xml::escape::resolve_predefined_entity(&name.xml10_content()).unwrap()),
            },
            XmlEvent::Eof => break,
            other => panic!("{hostile:?} became {source:?} with {other:?}"),
        }
    }
    assert_eq!(depth, 0);
    assert_eq!(attribute, plain(hostile, Lines::Keep), "{hostile:?}");
    assert_eq!(text, plain(hostile, Lines::Keep), "{hostile:?}");
}

// ---- Random mixtures ----

/// Signs that mean something to some sink, strings of the corpus, and any character.
fn mixture() -> impl Strategy<Value = String> {
    let signs =
        "\\ ` * _ [ ] ( ) ~ | # ! < > & ; : / @ $ ^ = + - . \" ' { } % , ::".split(' ').map(str::to_owned);
    let spaces = [" ", "\n", "\r", "\t", "\u{200B}", "\u{200D}", "\u{2028}"].map(str::to_owned);
    let pieces: Vec<String> = signs.chain(spaces).chain(corpus()).collect();
    let piece = prop_oneof![
        4 => proptest::sample::select(pieces),
        1 => any::<char>().prop_map(String::from),
        1 => "[a-f0-9]{1,9}",
    ];
    proptest::collection::vec(piece, 0..9).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn every_mixture_is_text(hostile in mixture()) {
        check_inline(&hostile);
        check_cells(&hostile);
        check_code(&hostile);
        check_html(&hostile);
        check_xml(&hostile);
        let printed = workflow::log_text(&hostile);
        prop_assert_eq!(commands_of(&printed), Vec::<String>::new());
        let entry = workflow::file_entry("name", &hostile).unwrap();
        prop_assert_eq!(read_file_command(&entry), [("name".to_owned(), plain(&hostile, Lines::Keep))]);
        let cell = csv_sink::cell(&hostile);
        prop_assert_eq!(csv_sink::read(&cell), hostile.replace('\0', "\u{FFFD}"));
    }
}
