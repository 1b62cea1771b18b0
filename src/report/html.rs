//! `report.html`: one file that needs nothing else and runs nothing.

use serde::Serialize;

use super::view::{Escaped as _, View};
use super::{ConversationRow, Report, templates, words};
use crate::escape::html::Html;
use crate::rating::RatingOutcome;

const STYLE: &str = include_str!("../../templates/report/style.css");

/// What the page's template sees.
#[derive(Serialize)]
struct Page {
    style: &'static str,
    view: View<Html>,
    has_reasons: bool,
    has_rules: bool,
    conversations: Vec<Conversation>,
}

#[derive(Serialize)]
struct Conversation {
    id: Html,
    persona: Html,
    risk: &'static str,
    user_model: Html,
    run: u32,
    outcomes: Vec<Outcome>,
}

#[derive(Serialize)]
struct Outcome {
    text: Html,
    harm: bool,
}

/// Renders the page, with every finding and every conversation. A team's own templates are for Markdown.
pub fn render(report: &Report) -> String {
    let view: View<Html> = View::of(report, usize::MAX);
    let page = Page {
        style: STYLE,
        has_reasons: !view.reasons.is_empty() || !view.other_reasons.is_empty(),
        has_rules: !view.broken.is_empty() || !view.holding.is_empty(),
        view,
        conversations: report.conversations.iter().map(conversation).collect(),
    };
    templates::render_builtin("page", &page)
}

fn conversation(row: &ConversationRow) -> Conversation {
    Conversation {
        id: Html::code(&row.conversation.0),
        persona: Html::text(&row.persona),
        risk: words::risk(row.risk_level),
        user_model: Html::text(&row.user_model),
        run: row.run,
        outcomes: row
            .outcomes
            .iter()
            .map(|outcome| Outcome { text: Html::text(&outcome_text(*outcome)), harm: outcome.is_harm() })
            .collect(),
    }
}

fn outcome_text(outcome: RatingOutcome) -> String {
    match outcome {
        RatingOutcome::Rated(rating) => words::short(rating).to_owned(),
        RatingOutcome::Unjudged(reason) => format!("no rating: {}", reason.word()),
    }
}
