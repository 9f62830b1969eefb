//! What one isolate keeps between requests: the door, what was verified and what was logged.

use std::cell::RefCell;

use qm_core::edge::{BUDGET_MS, Edge, Note, NoteKind, Step, Written, failed_checks};
use worker::{AnalyticsEngineDataPointBuilder, Context, Env, console_error, console_warn};

use super::ask::{Got, ask};
use super::{VERSION, now};

pub(super) struct Isolate {
    pub(super) edge: Edge,
    is_verified: bool,
    said: Vec<NoteKind>,
}

thread_local! {
    static ISOLATE: RefCell<Option<Isolate>> = const { RefCell::new(None) };
}

/// Reads the settings, at the first request.
pub(super) fn open(env: &Env) {
    if ISOLATE.with_borrow(Option::is_some) {
        return;
    }
    let text = |name: &str| env.var(name).map(|value| value.to_string()).unwrap_or_default();
    let (edge, faults) = Edge::new(&Written {
        server: &text("QM_SERVER"),
        room: &text("QM_ROOM"),
        public_api_key: &text("QM_PUBLIC_API_KEY"),
        gate: &text("QM_GATE"),
        visitor_key: &text("QM_VISITOR_KEY"),
        token_max_age_seconds: &text("QM_TOKEN_MAX_AGE_SEC"),
        trust_proxy: "cf",
        passes_server_host: true,
        ..Written::default()
    });
    for fault in faults {
        console_error!("queue-manager: {fault}");
    }
    let isolate = Isolate { edge, is_verified: false, said: Vec::new() };
    ISOLATE.set(Some(isolate));
}

/// Works with the isolate's state; never across an `await`.
pub(super) fn with<T>(work: impl FnOnce(&mut Isolate) -> T) -> T {
    ISOLATE.with_borrow_mut(|isolate| {
        work(isolate.as_mut().expect("every request opens the isolate first"))
    })
}

/// Learns the room's rules again when it is time, beside the request.
pub(super) fn refresh_rules(context: &Context) {
    let Some(query) = with(|isolate| isolate.edge.rules_query(now())) else { return };
    context.wait_until(async move {
        if let Got::Http { status, body, etag } = ask(&query, BUDGET_MS).await {
            let learn = |isolate: &mut Isolate| {
                isolate.edge.learn_rules(status, etag.as_deref(), &body, now());
            };
            with(learn);
        }
    });
}

/// Once per isolate: the failed points of this installation go to the log (CFW-15).
pub(super) fn verify_once(context: &Context, url: &str) {
    let query = with(|isolate| {
        let is_first = !std::mem::replace(&mut isolate.is_verified, true);
        is_first.then(|| isolate.edge.verify_query(url, "cloudflare", VERSION)).flatten()
    });
    let Some(query) = query else { return };
    context.wait_until(async move {
        let failed = match ask(&query, 5 * BUDGET_MS).await {
            Got::Http { status: 200, body, .. } => failed_checks(&body),
            _ => None,
        };
        match failed {
            None => console_error!("queue-manager: this installation could not be verified"),
            Some(lines) => {
                for line in lines {
                    console_error!("queue-manager: verification failed: {line}");
                }
            }
        }
    });
}

/// Logs and counts what the core notes.
pub(super) fn note(env: &Env, step: &Step) {
    let (note, failover) = match step {
        Step::Forward(forward) => (&forward.note, forward.failover.as_deref()),
        Step::Respond(respond) => (&respond.note, None),
        Step::Ask(_) => return,
    };
    let Some(Note { kind, text }) = note else { return };
    if let Some(failover) = failover {
        console_error!("queue-manager: {text}");
        count(env, failover);
        return;
    }
    let is_new = with(|isolate| {
        let is_new = !isolate.said.contains(kind);
        isolate.said.push(*kind);
        isolate.said.dedup();
        is_new
    });
    if is_new {
        console_warn!("queue-manager: {text}");
    }
}

/// Counts a fail-open where a dataset is bound.
fn count(env: &Env, failover: &str) {
    let Ok(dataset) = env.analytics_engine("QM_ANALYTICS") else { return };
    let room = with(|isolate| {
        isolate.edge.settings().map(|settings| settings.room.to_string()).unwrap_or_default()
    });
    let point = AnalyticsEngineDataPointBuilder::new()
        .indexes([room.as_str()])
        .add_blob("failover")
        .add_blob(failover)
        .add_blob(room.as_str())
        .add_double(1)
        .build();
    if dataset.write_data_point(&point).is_err() {
        console_error!("queue-manager: could not count a fail-open");
    }
}
