//! `vera-gate publish`: shows the result of a run folder on the pull request, in a check and in the job.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::load::Overrides;
use super::{Global, conclude, output, policy};
use crate::config::Evidence;
use crate::error::Error;
use crate::escape::workflow::{Command, Level};
use crate::exit::Exit;
use crate::model::{self, Certificates, EnvLookup};
use crate::publish::context::{self, Env};
use crate::publish::preview::Preview;
use crate::publish::publisher::{Gravity, Warning};
use crate::publish::sticky::Marker;
use crate::publish::{
    ActionsContext, Forge, GitHub, Options, Publication, Published, Publisher, annotations, handover, session,
};
use crate::report::{self, Templates};
use crate::run::RunFolder;

/// Longest wait for a connection to the forge.
const CONNECT: Duration = Duration::from_secs(10);

/// Where a result is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Audience {
    /// Comment, check, job summary, annotations and outputs.
    #[default]
    All,
    /// Job summary, annotations and outputs.
    Summary,
    /// Outputs only.
    None,
}

/// Arguments of `publish`.
#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  vera-gate publish --start vera-gate-run\n  vera-gate publish vera-gate-run --exit-code 1\n  \
vera-gate publish vera-gate-run --preview preview\n\nRuns in a GitHub workflow, with GITHUB_TOKEN. Elsewhere the files \
of the run folder and the exit code of `run` are what to show; see docs/github.md."
)]
pub(super) struct PublishArgs {
    /// A run folder; for `--start`, the one that the run will have.
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Opens the check and says in the comment that the run has started.
    #[arg(long, conflicts_with = "exit_code")]
    start: bool,
    /// How `run` ended. A result that contradicts it is not shown. Without it, what the report says.
    #[arg(long, value_name = "N")]
    exit_code: Option<u8>,
    /// Where the result is shown.
    #[arg(long, value_enum, default_value_t)]
    to: Audience,
    /// Name of the comment, when a repository has several gates: small letters, digits and hyphens.
    #[arg(long, value_name = "ID", default_value = "default")]
    comment_id: String,
    /// Name of the check.
    #[arg(long, value_name = "NAME", default_value = "vera-gate")]
    check_name: String,
    /// Login that the token writes as, for the token of a GitHub App.
    #[arg(long, value_name = "LOGIN")]
    comment_author: Option<String>,
    /// Folder with the `pr.json` of the first of two stages. Without a report and an exit code of the second stage, its
    /// `comment.md` is shown, as text that nobody vouches for.
    #[arg(long, value_name = "FOLDER")]
    hand_over: Option<PathBuf>,
    /// Writes comment and check into this folder and calls nobody.
    #[arg(long, value_name = "FOLDER")]
    preview: Option<PathBuf>,
}

/// Runs the command.
pub(super) fn run(args: &PublishArgs, global: &Global) -> Result<Exit, Error> {
    if !Marker::is_id(&args.comment_id) {
        return Err(Error::Usage(format!(
            "--comment-id {:?} is not made of small letters, digits and single hyphens",
            args.comment_id
        )));
    }
    let env = environment();
    if !ActionsContext::is_present(&env) {
        let help = "publish shows results in a GitHub workflow, and GITHUB_ACTIONS is not `true`\n  help: elsewhere use the \
                    files of the run folder and the exit code of `vera-gate run`";
        return Err(Error::Usage(help.to_owned()));
    }
    let mut context = ActionsContext::load(&env).map_err(|error| Error::Usage(error.to_string()))?;
    if args.to == Audience::None {
        context.files.summary = None;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Error::Internal(format!("no runtime: {error}")))?;
    let work = async {
        match (args.to, &args.preview) {
            (Audience::All, Some(folder)) => {
                let preview = Preview::new(folder, context.head_sha()).map_err(|e| Error::io(folder, e))?;
                drive(Some(&preview), args, global, &context, Vec::new()).await
            }
            (Audience::All, None) => {
                let (forge, warnings) = match connect(&context, &env) {
                    Ok(forge) => (Some(forge), Vec::new()),
                    Err(text) => {
                        let text = format!("{text}: neither comment nor check can be written");
                        (None, vec![Warning { gravity: Gravity::Failure, text }])
                    }
                };
                drive(forge.as_ref(), args, global, &context, warnings).await
            }
            _ => drive::<GitHub>(None, args, global, &context, Vec::new()).await,
        }
    };
    runtime.block_on(work)
}

/// The environment, as far as it is text.
pub(super) fn environment() -> Env {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

pub(super) fn connect(context: &ActionsContext, env: &Env) -> Result<GitHub, String> {
    let token = env
        .get("GITHUB_TOKEN")
        .filter(|token| !token.is_empty())
        .ok_or_else(|| "GITHUB_TOKEN is not set".to_owned())?;
    let lookup = env.clone();
    let lookup = EnvLookup::new(move |name| lookup.get(name).cloned());
    let ca_cert = env.get("VERA_GATE_CA_CERT").filter(|path| !path.is_empty()).map(|path| {
        let pem = std::fs::read(path).map_err(|error| format!("VERA_GATE_CA_CERT {path}: {error}"))?;
        Certificates::read(path, &pem)
    });
    let connection = model::http_client(&lookup, ca_cert.transpose()?.as_ref(), CONNECT)?;
    GitHub::new(context, token, connection).map_err(|error| error.to_string())
}

async fn drive<F: Forge>(
    forge: Option<&F>,
    args: &PublishArgs,
    global: &Global,
    context: &ActionsContext,
    mut warnings: Vec<Warning>,
) -> Result<Exit, Error> {
    let mut options = Options {
        comment_id: args.comment_id.clone(),
        check_name: args.check_name.clone(),
        author: args.comment_author.clone(),
        ..Options::default()
    };
    if let (Some(folder), Some(forge)) = (&args.hand_over, forge)
        && let Err(text) = session::take_over(forge, context, folder, &mut options).await
    {
        let text = format!("the pull request of the first stage is not known: {text}");
        warnings.push(Warning { gravity: Gravity::Failure, text });
    }
    if args.start {
        if let Some(forge) = forge {
            let (state, published) = Publisher::new(forge, context, options).start().await;
            session::save(&args.run, context, &state).map_err(|error| Error::io(&args.run, error))?;
            warnings.extend(published.warnings);
        }
        tell(&warnings)?;
        return Ok(Exit::Success);
    }
    let found = publication(&args.run, global, context, &mut warnings).or_else(|| unverified(args));
    let gate = match (args.exit_code, &found) {
        // A shell reports a signal as 128 and more: no code of ours.
        (Some(code), _) => Exit::ALL.into_iter().find(|exit| exit.code() == code).unwrap_or(Exit::Internal),
        (None, Some(publication)) => publication.exit,
        (None, None) => {
            return Err(Error::Usage(format!(
                "`{}` holds no report\n  help: give the folder of a finished run, or say with --exit-code how it ended",
                args.run.display()
            )));
        }
    };
    let mut publication = session::settle(gate, found);
    publication.annotations = annotations::in_repository(publication.annotations, &context.workspace);
    let exit = session::exit_of(gate, &publication);
    session::add_outputs(&mut publication, exit, &args.run);
    let mut published = session::finish(forge, context, &options, &args.run, &publication).await;
    published.warnings.splice(0..0, warnings);
    tell(&published.warnings)?;
    if args.to != Audience::None {
        annotate(&publication, &published)?;
    }
    Ok(published.exit(exit))
}

/// What the first of two stages wrote, for a second stage that runs no gate of its own.
fn unverified(args: &PublishArgs) -> Option<Publication> {
    let folder = args.hand_over.as_deref().filter(|_| args.exit_code.is_none())?;
    handover::unverified(folder).ok()
}

/// What the run folder's report says; nothing when it has none that can be read.
fn publication(
    run: &Path,
    global: &Global,
    context: &ActionsContext,
    warnings: &mut Vec<Warning>,
) -> Option<Publication> {
    let text = RunFolder::at(run).read("report.json").ok()?;
    let mut report = report::json::read(&text).ok()?;
    if report.evidence == Evidence::Quotes && context.audience == context::Audience::Public {
        report = report.without_quotes();
        let text = "the repository is public, so the quotes of conversations that `report.evidence: quotes` asks for stay in \
                    the run folder";
        warnings.push(Warning { gravity: Gravity::Expected, text: text.to_owned() });
    }
    // A team's own templates are in reach only when the configuration is; a publication needs neither.
    let templates = policy::judging(global, &Overrides::default())
        .and_then(|loaded| conclude::templates(&loaded))
        .unwrap_or_else(|_unreadable| Templates::builtin());
    Some(Publication::of_report(&report, &templates))
}

fn tell(warnings: &[Warning]) -> Result<(), Error> {
    for warning in warnings {
        output::command(
            &Command::annotation(Level::Warning, warning.text.as_str()).with("title", "vera-gate"),
        )?;
    }
    Ok(())
}

/// Remarks in the log, unless the check carries them: GitHub would show each twice.
fn annotate(publication: &Publication, published: &Published) -> Result<(), Error> {
    if published.check_id.is_none() {
        for command in annotations::commands(&publication.annotations) {
            output::command(&command)?;
        }
    }
    Ok(())
}
