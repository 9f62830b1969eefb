//! `GET /api/v1/openapi.json`: every API route with what it takes and answers. Operators' routes
//! come from the table the router reads; a test proves that the rest agrees with the router too.

use std::sync::LazyLock;

use hyper::Response;
use serde_json::{Map, Value, json};

use super::admin::route::{Access, METRICS, Row, TABLE};
use super::answer;
use super::app::VERSION;
use super::body::Body;
use super::error::TABLE as ERRORS;

/// A route that needs no operator.
struct Public {
    method: &'static str,
    path: &'static str,
    says: &'static str,
    query: &'static [&'static str],
    body: &'static [&'static str],
    errors: &'static [u16],
}

const fn get(
    path: &'static str,
    says: &'static str,
    query: &'static [&'static str],
    errors: &'static [u16],
) -> Public {
    Public { method: "get", path, says, query, body: &[], errors }
}

const fn post(
    path: &'static str,
    says: &'static str,
    body: &'static [&'static str],
    errors: &'static [u16],
) -> Public {
    Public { method: "post", path, says, query: &[], body, errors }
}

/// The routes of visitors, connectors and monitors.
const PUBLIC: &[Public] = &[
    post("/api/v1/join", "Take a place, or get one's own back", &["roomId", "token"], BODY_ERRORS),
    post("/api/v1/leave", "Give a place up", &["token", "roomId"], BODY_ERRORS),
    post(
        "/api/v1/notify",
        "Ask for a mail when the turn comes, or withdraw that",
        &["token", "roomId", "email"],
        BODY_ERRORS,
    ),
    get("/api/v1/status", "Where a place stands", &["token", "roomId"], &[400, 401, 403, 429]),
    get("/api/v1/events", "The same as a stream", &["token", "roomId"], &[400, 401, 403, 429, 503]),
    get(
        "/api/v1/check",
        "The door: pass or queue",
        &["roomId", "token", "url", "sess", "ip", "agent", "targeting"],
        &[400, 401, 403, 404, 429, 503],
    ),
    get("/api/v1/targeting", "The URL rules of a room", &["roomId"], &[400, 403, 404, 429]),
    get(
        "/api/v1/verify",
        "Check an installation",
        &["roomId", "url", "origin", "connector", "version"],
        &[400, 403, 429],
    ),
    get(
        "/api/v1/verify.gif",
        "The same verdict as a status",
        &["roomId", "origin", "connector", "version"],
        &[400, 403, 424, 429],
    ),
    get("/api/v1/connectors", "What can be installed from here", &[], &[403, 429]),
    get("/api/v1/health", "Readiness", &[], &[403, 503]),
    get("/api/v1/version", "The same data, always 200", &[], &[403]),
    get("/api/v1/openapi.json", "This document", &[], &[403]),
    get("/healthz", "Readiness", &[], &[403, 503]),
];

const BODY_ERRORS: &[u16] = &[400, 401, 403, 404, 408, 409, 413, 429, 503];

/// Query parameters of operators' routes.
const ADMIN_QUERY: &[(&str, &str, &[&str])] = &[
    ("audit", "GET", &["before", "limit"]),
    ("events", "GET", &["ticket"]),
    ("metrics", "GET", &["roomId", "range"]),
    ("monitor-token", "DELETE", &["id", "all"]),
    ("reports", "GET", &["roomId", "bucket", "format"]),
    ("rooms/:id/targeting", "GET", &["url"]),
    ("rooms/:id/visitors", "GET", &["ticket", "ref"]),
];

/// Body members of operators' routes.
const ADMIN_BODY: &[(&str, &[&str])] = &[
    ("monitor-token", &["label", "ttlSec"]),
    ("operators", &["name", "role"]),
    ("rooms/:id/eject", &["ticket"]),
    ("rooms/:id/flush", &["count"]),
    ("rooms/:id/rate", &["ratePerMinute", "rate"]),
    ("rooms/:id/schedule", &["opensAt", "preQueueMaxPerIp"]),
    ("rooms/:id/state", &["state"]),
    ("session", &["key"]),
    (
        "rooms",
        &[
            "id",
            "name",
            "targetUrl",
            "proxyOrigin",
            "ratePerMinute",
            "rate",
            "maxConcurrent",
            "passedTtlSec",
            "sessionTtlSec",
            "sessionMaxSec",
            "branding",
            "returnOrigins",
            "tagOrigins",
            "autotune",
            "protection",
            "autoActivate",
            "urlPatterns",
            "opensAt",
            "preQueueMaxPerIp",
            "queueMaxPerIp",
            "presenceSec",
            "state",
            "onBackendDown",
        ],
    ),
];

static DOCUMENT: LazyLock<Value> = LazyLock::new(document);

/// Answers with the document.
pub fn openapi() -> Response<Body> {
    answer::json(&*DOCUMENT)
}

fn document() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    let mut add = |path: &str, method: &str, operation: Value| {
        let item = paths.entry(path.to_owned()).or_insert_with(|| json!({}));
        if let Some(item) = item.as_object_mut() {
            item.insert(method.to_owned(), operation);
        }
    };
    for route in PUBLIC {
        add(route.path, route.method, public_operation(route));
    }
    for row in TABLE.iter().chain([&METRICS]) {
        let path = match row.path.strip_prefix('/') {
            Some(outside) => format!("/{outside}"),
            None => format!("/api/v1/admin/{}", row.path.replace(":id", "{id}")),
        };
        add(&path, &row.method.to_ascii_lowercase(), admin_operation(row));
    }
    let codes: Vec<&str> = ERRORS.iter().map(|(_, code)| *code).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Queue Manager",
            "version": VERSION,
            "description": "Every path below /api/v1 answers below /api too. HEAD is answered \
                            like GET, without a body.",
        },
        "paths": paths,
        "components": {
            "securitySchemes": {
                "key": { "type": "http", "scheme": "bearer" },
                "console": { "type": "apiKey", "in": "cookie", "name": "qm_console" },
            },
            "schemas": {
                "Error": {
                    "type": "object",
                    "required": ["error", "code"],
                    "properties": {
                        "error": { "type": "string" },
                        "code": { "type": "string", "examples": codes },
                    },
                },
            },
        },
    })
}

fn public_operation(route: &Public) -> Value {
    let id = format!("{}_{}", route.method, name_of(route.path));
    let content = match route.path {
        "/api/v1/events" => "text/event-stream",
        "/api/v1/verify.gif" => "image/gif",
        _ => "application/json",
    };
    operation(
        &id,
        route.says,
        "public",
        &Shape {
            query: route.query,
            body: route.body,
            has_id: false,
            errors: route.errors,
            content,
        },
    )
}

fn admin_operation(row: &Row) -> Value {
    let house = if row.path.starts_with('/') { "" } else { "admin_" };
    let id = format!("{}_{house}{}", row.method.to_ascii_lowercase(), name_of(row.path));
    let query =
        ADMIN_QUERY.iter().find(|(path, method, _)| (*path, *method) == (row.path, row.method));
    let body =
        ADMIN_BODY.iter().filter(|_| row.method == "POST").find(|(path, _)| *path == row.path);
    let content = match row.path {
        "events" => "text/event-stream",
        "/metrics" => "application/openmetrics-text",
        _ => "application/json",
    };
    let says = match row.access {
        Access::Open => "Anybody may ask; the key is in the body".to_owned(),
        Access::From(role) => format!("Role {} and up", role.as_str()),
        Access::Shared(role) => format!("Role {} and up, and monitor links", role.as_str()),
    };
    let mut operation = operation(
        &id,
        &says,
        "operators",
        &Shape {
            query: query.map_or(&[], |(_, _, query)| query),
            body: body.map_or(&[], |(_, body)| body),
            has_id: row.path.contains(":id"),
            errors: &[400, 401, 403, 404, 408, 413, 429, 502, 503],
            content,
        },
    );
    if let Some(operation) = operation.as_object_mut()
        && row.access != Access::Open
    {
        operation.insert("security".into(), json!([{ "key": [] }, { "console": [] }]));
    }
    operation
}

struct Shape {
    query: &'static [&'static str],
    body: &'static [&'static str],
    has_id: bool,
    errors: &'static [u16],
    content: &'static str,
}

fn operation(id: &str, says: &str, tag: &str, shape: &Shape) -> Value {
    let query = shape
        .query
        .iter()
        .map(|name| json!({ "name": name, "in": "query", "schema": { "type": "string" } }));
    let path = shape.has_id.then(
        || json!({ "name": "id", "in": "path", "required": true, "schema": { "type": "string" } }),
    );
    let parameters: Vec<Value> = path.into_iter().chain(query).collect();
    let error = json!({
        "description": "Refused; `code` says why",
        "content": { "application/json": {
            "schema": { "$ref": "#/components/schemas/Error" },
        } },
    });
    let mut responses = Map::new();
    let ok = json!({ "description": "Done", "content": { shape.content: {} } });
    responses.insert("200".into(), ok);
    let always = [405, 414, 431, 500];
    for status in shape.errors.iter().chain(&always) {
        responses.insert(status.to_string(), error.clone());
    }
    let mut operation = json!({
        "operationId": id,
        "summary": says,
        "tags": [tag],
        "parameters": parameters,
        "responses": responses,
    });
    if let Some(operation) = operation.as_object_mut()
        && !shape.body.is_empty()
    {
        let members: Map<String, Value> =
            shape.body.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
        let schema = json!({ "type": "object", "properties": members });
        let body = json!({ "content": { "application/json": { "schema": schema } } });
        operation.insert("requestBody".into(), body);
    }
    operation
}

fn name_of(path: &str) -> String {
    let word = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    path.trim_start_matches("/api/v1").trim_matches('/').chars().map(word).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::router::tests_support::{allowed, is_known};
    use super::*;

    #[test]
    fn the_document_and_the_router_agree() {
        let paths = DOCUMENT["paths"].as_object().unwrap();
        for (path, item) in paths {
            let path = path.replace("{id}", "x");
            assert!(is_known(&path), "the router has no {path}");
            let told: BTreeSet<String> =
                item.as_object().unwrap().keys().map(|m| m.to_ascii_uppercase()).collect();
            let served = allowed(&path).split(", ");
            let served: BTreeSet<String> =
                served.filter(|m| !matches!(*m, "HEAD" | "OPTIONS")).map(str::to_owned).collect();
            assert_eq!(told, served, "{path}");
        }
        let ids: Vec<&str> = paths
            .values()
            .flat_map(|item| item.as_object().unwrap().values())
            .map(|operation| operation["operationId"].as_str().unwrap())
            .collect();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "operation ids repeat");
    }

    #[test]
    fn every_api_route_is_documented() {
        for route in [
            "join",
            "leave",
            "status",
            "events",
            "check",
            "targeting",
            "notify",
            "verify",
            "verify.gif",
            "connectors",
            "health",
            "version",
            "openapi.json",
        ] {
            let path = format!("/api/v1/{route}");
            assert!(DOCUMENT["paths"].get(&path).is_some(), "{path} is not documented");
        }
        for (path, _) in ADMIN_BODY {
            assert!(TABLE.iter().any(|row| row.path == *path && row.method == "POST"), "{path}");
        }
        for (path, method, _) in ADMIN_QUERY {
            let row = TABLE.iter().find(|row| (row.path, row.method) == (*path, *method));
            assert!(row.is_some(), "{path}");
        }
    }
}
