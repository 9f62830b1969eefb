//! The Cloudflare Worker: sockets and nothing else. The core plans and concludes; here its steps
//! are taken. Requests and answers of the site pass as the runtime's own objects, so that bodies,
//! upgrades and streams are not touched.

mod ask;
mod isolate;

use js_sys::global;
use qm_core::edge::{Ask, BUDGET_MS, FAILOVER_HEADER, Facts, Forward, HEADERS_READ, Step};
use qm_core::reply::Reply;
use qm_core::time::TimeMs;
use wasm_bindgen::{JsCast, JsValue};
use worker::wasm_bindgen_futures::JsFuture;
use worker::{Context, Date, Env, Headers, Response, event, web_sys};

/// This connector's version, that of its releases.
const VERSION: &str = "1.2.1";

/// A visitor's request.
#[event(fetch)]
async fn fetch(
    request: web_sys::Request,
    env: Env,
    context: Context,
) -> worker::Result<web_sys::Response> {
    match decide(&request, &env, &context).await {
        Step::Respond(respond) => answer(&respond.reply),
        Step::Forward(how) => forward(request, &how).await,
        // `decide` ends in one of the others; should that ever change, nobody is locked out.
        Step::Ask(_) => forward(request, &Forward::default()).await,
    }
}

fn now() -> TimeMs {
    TimeMs(Date::now().as_millis())
}

async fn decide(request: &web_sys::Request, env: &Env, context: &Context) -> Step {
    isolate::open(env);
    let (url, method) = (request.url(), request.method());
    let sent = request.headers();
    let headers: Vec<(&str, String)> = HEADERS_READ
        .iter()
        .filter_map(|name| Some((*name, sent.get(name).ok().flatten()?)))
        .collect();
    let headers: Vec<(&str, &str)> =
        headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let facts = Facts { method: &method, url: &url, headers: &headers, peer: None, address: None };
    let step = isolate::with(|isolate| isolate.edge.plan(&facts, now()));
    isolate::refresh_rules(context);
    let step = match step {
        Step::Ask(question) => {
            isolate::verify_once(context, &url);
            ask_until_clear(question).await
        }
        step => step,
    };
    isolate::note(env, &step);
    step
}

/// Asks the queue server until the core knows, within one budget.
async fn ask_until_clear(mut question: Ask) -> Step {
    let began = now();
    loop {
        let spent = u32::try_from(now().ms_since(began)).unwrap_or(BUDGET_MS);
        let got = ask::ask(&question.query, BUDGET_MS.saturating_sub(spent)).await;
        let step =
            isolate::with(|isolate| isolate.edge.conclude(question.pending, &got.answer(), false));
        match step {
            Step::Ask(next) => question = next,
            step => return step,
        }
    }
}

fn answer(reply: &Reply) -> worker::Result<web_sys::Response> {
    let headers = Headers::new();
    for (name, value) in &reply.headers {
        headers.append(name, value)?;
    }
    let response = Response::empty()?.with_status(reply.status).with_headers(headers);
    Ok(response.into())
}

/// To the site.
async fn forward(request: web_sys::Request, how: &Forward) -> worker::Result<web_sys::Response> {
    let outgoing = match &how.url {
        None if !request.headers().has(FAILOVER_HEADER)? => request,
        url => {
            let url = url.clone().unwrap_or_else(|| request.url());
            // `new Request(url, request)` takes method, body and the rest from the request.
            let copy = web_sys::Request::new_with_str_and_init(&url, request.unchecked_ref())?;
            copy.headers().delete(FAILOVER_HEADER)?;
            copy
        }
    };
    let scope: web_sys::WorkerGlobalScope = global().unchecked_into();
    let response: JsValue = JsFuture::from(scope.fetch_with_request(&outgoing)).await?;
    let response: web_sys::Response = response.unchecked_into();
    let is_untouched = how.failover.is_none()
        && how.cookies.is_empty()
        && !response.headers().has(FAILOVER_HEADER)?;
    if is_untouched || response.status() == 101 {
        return Ok(response);
    }
    let copy = web_sys::Response::new_with_opt_readable_stream_and_init(
        response.body().as_ref(),
        response.unchecked_ref(),
    )?;
    let headers = copy.headers();
    headers.delete(FAILOVER_HEADER)?;
    if let Some(failover) = &how.failover {
        headers.set(FAILOVER_HEADER, failover)?;
    }
    for cookie in &how.cookies {
        headers.append("set-cookie", cookie)?;
    }
    Ok(copy)
}
