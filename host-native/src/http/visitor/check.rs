//! `GET /api/check`: the door (CHK-*). Everything is decided in the core; here the request is read,
//! an admission is recorded before it is answered, and what happened is counted.

use std::borrow::Cow;

use hyper::Response;
use hyper::header::USER_AGENT;
use qm_core::digest::Digest16;
use qm_core::door::gate::{self, CheckQuery, Gate, Settled, Surroundings};
use qm_core::door::reply::{CheckAnswer, OpenSession, check_reply, targeting};
use qm_core::door::{self, Channel, Knock, Shown, Verdict};
use qm_core::id::RoomId;
use qm_core::room::{Command, Outcome, Refusal};
use qm_core::target::{Scope, ScopeDecision};

use super::super::answer::from_reply;
use super::super::app::App;
use super::super::body::Body;
use super::super::error::ApiError;
use super::super::request::{Ask, client_of};
use super::claim::owners;
use super::join::refusal;
use super::session::fresh_door_key;
use super::status::readers_of;
use crate::guard::auth::{Credential, bearer};
use crate::rooms::RoomHandle;

/// Answers a door check.
///
/// # Errors
/// `invalid_room_id`, `rate_limited`, `unauthorized`, `credential_in_query`.
pub async fn check(app: &App, ask: &Ask) -> Result<Response<Body>, ApiError> {
    let started = std::time::Instant::now();
    let query = CheckQuery::parse(ask.query());
    let room = query.room().map_err(|_| ApiError::invalid_room_id())?;
    let voucher = if query.vouches() { voucher(app, ask) } else { Voucher::None };
    take_quota(app, ask, &query, voucher)?;
    let answered = match app.rooms.find(&room) {
        None => {
            app.metrics.unknown_room_checks.increment(room.as_str());
            Answered::new(CheckAnswer::Pass { reason: "no_room", session: None })
        }
        Some(handle) => {
            if voucher == Voucher::Refused {
                return Err(refuse_key(app, ask, &query, &room));
            }
            answer_room(app, ask, &query, &handle).await?
        }
    };
    app.metrics.count_check(answered.answer.action(), answered.answer.reason());
    app.metrics.check_seconds.observe(started.elapsed().as_secs_f64());
    let Answered { answer, targeting, allow_origin } = answered;
    Ok(from_reply(check_reply(&answer, &room, "", targeting, allow_origin)))
}

/// Who may read a check across origins, refusals and preflights included (API-09). A room that does
/// not exist lets everybody pass, and says so to everybody.
#[must_use]
pub fn readers(app: &App, ask: &Ask) -> Option<Cow<'static, str>> {
    let room = CheckQuery::parse(ask.query()).room().ok();
    match room.and_then(|room| app.rooms.find(&room)) {
        Some(room) => readers_of(&room, ask),
        None => Some("*".into()),
    }
}

struct Answered {
    answer: CheckAnswer,
    targeting: Option<serde_json::Value>,
    allow_origin: Option<Cow<'static, str>>,
}

impl Answered {
    fn new(answer: CheckAnswer) -> Self {
        Self { answer, targeting: None, allow_origin: Some("*".into()) }
    }
}

/// Whether the caller may vouch for a visitor.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Voucher {
    /// The check comes from the visitor.
    None,
    /// A valid key (CHK-17).
    Accepted,
    /// No key, or a wrong one.
    Refused,
}

fn voucher(app: &App, ask: &Ask) -> Voucher {
    match bearer(&ask.headers) {
        Credential::Key(key) if app.public_keys.matches(key) || app.admin_key.matches(key) => {
            Voucher::Accepted
        }
        _ => Voucher::Refused,
    }
}

fn refuse_key(app: &App, ask: &Ask, query: &CheckQuery<'_>, room: &RoomId) -> ApiError {
    let credential = bearer(&ask.headers);
    // The first characters, told once a room, help to find the deployment that sends it (CHK-28).
    let start: Option<String> = match credential {
        Credential::Key(key) => Some(key.chars().take(4).collect()),
        _ => None,
    };
    app.metrics.refused_key_checks.increment_with(room.as_str(), start.as_deref());
    if credential == Credential::Absent && query.has_key {
        ApiError::credential_in_query()
    } else {
        ApiError::unauthorized()
    }
}

/// A vouched check counts for the visitor it vouches for, not for its caller (CHK-19).
fn take_quota(
    app: &App,
    ask: &Ask,
    query: &CheckQuery<'_>,
    voucher: Voucher,
) -> Result<(), ApiError> {
    let vouched = query.vouched_address().filter(|_| voucher == Voucher::Accepted);
    let group = vouched.unwrap_or(ask.address).group();
    app.check_quota.take(group, ask.now).map_err(|wait| {
        app.metrics.rate_limited_checks.inc();
        app.metrics.count_rate_limited("check");
        ApiError::rate_limited(wait.0)
    })
}

async fn answer_room(
    app: &App,
    ask: &Ask,
    query: &CheckQuery<'_>,
    handle: &RoomHandle,
) -> Result<Answered, ApiError> {
    let (gate, targeting, allow_origin) = handle.look(|room, _, _| {
        let settings = room.settings();
        let around = Surroundings { settings, query, origin: ask.origin(), referer: ask.referer() };
        let Settled { gate, scope, readers, is_origin_refused } =
            gate::settle(&around, room.is_bypass());
        if is_origin_refused {
            let origin = ask.origin().unwrap_or_default();
            app.metrics.refused_origin_checks.increment(handle.id().as_str(), origin);
        }
        let targeting = targeting(settings, scope, query.wants_rules);
        count_rule(handle, ask, query, scope, settings);
        (gate, targeting, readers)
    });
    let answer = match gate {
        Gate::Pass(reason) => {
            if reason == "bypass" {
                handle.count_arrival();
            }
            CheckAnswer::Pass { reason, session: None }
        }
        Gate::Queue(reason) => CheckAnswer::Queue { reason, clear_token: false },
        Gate::AskPlace => ask_place(app, ask, query, handle).await?,
    };
    Ok(Answered { answer, targeting, allow_origin })
}

/// Keeps the counts that show an operator which rules ever match (TGT-16).
fn count_rule(
    handle: &RoomHandle,
    ask: &Ask,
    query: &CheckQuery<'_>,
    scope: Option<ScopeDecision>,
    settings: &qm_core::room::Settings,
) {
    let Some(decision) = scope.filter(|_| !settings.url_patterns.is_empty()) else { return };
    let rule = decision.rule.and_then(|index| settings.url_patterns.as_written().nth(index));
    if query.url.is_none() && decision.scope == Scope::Unknown {
        let agent = ask.header(USER_AGENT);
        let sender = ask.origin().or(agent).unwrap_or("(no agent)");
        handle.rule_hits.count_without_url(sender);
    } else {
        handle.rule_hits.count(rule.as_deref(), ask.now);
    }
}

async fn ask_place(
    app: &App,
    ask: &Ask,
    query: &CheckQuery<'_>,
    handle: &RoomHandle,
) -> Result<CheckAnswer, ApiError> {
    let shown = shown(app, ask, query, handle);
    let settled =
        handle.look(|room, presence, now| door::decide_without_proof(room, presence, shown, now));
    if let Some(verdict) = settled {
        return Ok(plain_answer(verdict));
    }
    let knock = knock(ask, query, handle, shown);
    let verdict = handle.look(|room, presence, now| {
        let verdict = door::decide_place(room, presence, &knock, now);
        if let Verdict::Session { n } = verdict
            && !ask.is_head()
        {
            presence.touch(n, now);
        }
        verdict
    });
    let opens = matches!(verdict, Verdict::Admit { .. } | Verdict::Reclaim { .. });
    if !opens || ask.is_head() {
        // A HEAD never uses a pass up: it tells what a GET would meet.
        return Ok(plain_answer(verdict));
    }
    let key = fresh_door_key();
    let command = Command::Enter { knock, fresh_key: Digest16::of_door_key(&key) };
    let outcome = match handle.submit(command).await {
        // Deleted at this very moment: as if it had never been there.
        Err(Refusal::Closed) => return Ok(CheckAnswer::Pass { reason: "no_room", session: None }),
        outcome => outcome.map_err(refusal)?,
    };
    let Outcome::Door { verdict, key_issued } = outcome else { return Err(ApiError::internal()) };
    let reason = match verdict {
        Verdict::Admit { .. } => "admitted",
        Verdict::Reclaim { .. } => "reclaimed",
        _ => return Ok(plain_answer(verdict)),
    };
    let ttl = handle.look(|room, _, _| room.settings().session_ttl_seconds);
    let session = OpenSession { ttl_seconds: Some(ttl), key: key_issued.then_some(key) };
    Ok(CheckAnswer::Pass { reason, session: Some(session) })
}

fn plain_answer(verdict: Verdict) -> CheckAnswer {
    let session = Some(OpenSession { ttl_seconds: None, key: None });
    match verdict {
        Verdict::Queue { reason, clear_token } => CheckAnswer::Queue { reason, clear_token },
        Verdict::Session { .. } => CheckAnswer::Pass { reason: "session", session },
        Verdict::Admit { .. } => CheckAnswer::Pass { reason: "admitted", session: None },
        Verdict::Reclaim { .. } => CheckAnswer::Pass { reason: "reclaimed", session: None },
    }
}

fn knock(ask: &Ask, query: &CheckQuery<'_>, handle: &RoomHandle, shown: Shown) -> Knock {
    let channel = match query.vouched_address() {
        Some(address) => {
            let agent = query.agent.as_deref().unwrap_or_default();
            Channel::Vouched { client: client_of(address, agent.as_bytes()) }
        }
        None => {
            // The header decides before the query (HOL-22).
            let header = ask.headers.get("x-qm-session").map(|v| v.to_str().unwrap_or_default());
            let key = header.or(query.sess.as_deref()).filter(|key| !key.is_empty());
            Channel::Direct { client: ask.client(), key: key.map(Digest16::of_door_key) }
        }
    };
    Knock { shown, owners: owners(ask, handle.id()), channel }
}

fn shown(app: &App, ask: &Ask, query: &CheckQuery<'_>, handle: &RoomHandle) -> Shown {
    let Some(text) = query.token.as_deref().filter(|text| !text.is_empty()) else {
        return Shown::Nothing;
    };
    match app.keys.verify_visitor(text, ask.now, app.token_max_age_ms) {
        Ok(token) if token.room != *handle.id() || token.generation > handle.generation() => {
            Shown::Useless
        }
        Ok(token) if token.generation < handle.generation() => Shown::Outdated,
        Ok(token) => Shown::Place(token.place),
        Err(_) => Shown::Useless,
    }
}
