//! The operators' routes in one table: path, method, what answers, and who may (AUT-14 to AUT-16,
//! HOL-49). The router takes its `Allow` from here and nothing else decides a role.

use std::sync::LazyLock;

use hyper::Method;

use crate::side::credential::Role;

/// What answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the table below says what each is")]
pub enum Endpoint {
    AlertState,
    AlertTest,
    Audit,
    CheckIns,
    Eject,
    Events,
    Flush,
    Health,
    LinkAdd,
    LinkList,
    LinkRemove,
    Metrics,
    OperatorAdd,
    OperatorList,
    OperatorRemove,
    Purge,
    Reports,
    RoomDelete,
    RoomList,
    RoomSave,
    Schedule,
    Security,
    Series,
    SessionClose,
    SessionOpen,
    SetRate,
    SetState,
    Shutdown,
    StreamTicket,
    Targeting,
    Visitor,
}

/// Who may use a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Whoever asks: the route reads the credential itself.
    Open,
    /// Operators from this role up.
    From(Role),
    /// Those, and the holders of monitor links.
    Shared(Role),
}

impl Access {
    /// Whether `role` is enough.
    #[must_use]
    pub fn allows(self, role: Role) -> bool {
        match self {
            Self::Open => true,
            Self::From(least) => role >= least,
            Self::Shared(least) => role == Role::Monitor || role >= least,
        }
    }
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The path below `/api/admin/`; `:id` is one segment.
    pub path: &'static str,
    /// The method; `GET` answers `HEAD` too.
    pub method: &'static str,
    /// What answers.
    pub endpoint: Endpoint,
    /// Who may.
    pub access: Access,
}

/// `GET /metrics`, which lies outside of `/api/admin` (OPS-20).
pub const METRICS: Row = row("/metrics", "GET", Endpoint::Metrics, Access::Shared(Role::Viewer));

const fn row(path: &'static str, method: &'static str, endpoint: Endpoint, access: Access) -> Row {
    Row { path, method, endpoint, access }
}

const OWNER: Access = Access::From(Role::Owner);
const OPERATOR: Access = Access::From(Role::Operator);
const VIEWER: Access = Access::From(Role::Viewer);
const SHARED: Access = Access::Shared(Role::Viewer);

/// Every route below `/api/admin/`.
pub const TABLE: &[Row] = &[
    row("alerts", "GET", Endpoint::AlertState, SHARED),
    row("alerts", "POST", Endpoint::AlertTest, OPERATOR),
    row("audit", "GET", Endpoint::Audit, VIEWER),
    row("connectors", "GET", Endpoint::CheckIns, VIEWER),
    row("events", "GET", Endpoint::Events, SHARED),
    row("health", "GET", Endpoint::Health, SHARED),
    row("metrics", "GET", Endpoint::Series, SHARED),
    row("monitor-token", "GET", Endpoint::LinkList, VIEWER),
    row("monitor-token", "POST", Endpoint::LinkAdd, OPERATOR),
    row("monitor-token", "DELETE", Endpoint::LinkRemove, OPERATOR),
    row("operators", "GET", Endpoint::OperatorList, OWNER),
    row("operators", "POST", Endpoint::OperatorAdd, OWNER),
    row("operators/:id", "DELETE", Endpoint::OperatorRemove, OWNER),
    row("reports", "GET", Endpoint::Reports, SHARED),
    row("rooms", "GET", Endpoint::RoomList, SHARED),
    row("rooms", "POST", Endpoint::RoomSave, OPERATOR),
    row("rooms/:id", "DELETE", Endpoint::RoomDelete, OWNER),
    row("rooms/:id/eject", "POST", Endpoint::Eject, OPERATOR),
    row("rooms/:id/flush", "POST", Endpoint::Flush, OPERATOR),
    row("rooms/:id/purge", "POST", Endpoint::Purge, OPERATOR),
    row("rooms/:id/rate", "POST", Endpoint::SetRate, OPERATOR),
    row("rooms/:id/schedule", "POST", Endpoint::Schedule, OPERATOR),
    row("rooms/:id/state", "POST", Endpoint::SetState, OPERATOR),
    row("rooms/:id/targeting", "GET", Endpoint::Targeting, VIEWER),
    row("rooms/:id/visitors", "GET", Endpoint::Visitor, VIEWER),
    row("security", "GET", Endpoint::Security, SHARED),
    row("session", "POST", Endpoint::SessionOpen, Access::Open),
    row("session", "DELETE", Endpoint::SessionClose, Access::From(Role::Monitor)),
    row("shutdown", "POST", Endpoint::Shutdown, OWNER),
    row("sse-ticket", "POST", Endpoint::StreamTicket, SHARED),
];

/// The `:id` segment of `rest` when it has the form of `path`; empty when the form has none.
fn matches<'a>(path: &str, rest: &'a str) -> Option<&'a str> {
    let (mut wanted, mut given) = (path.split('/'), rest.split('/'));
    let mut id = "";
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return Some(id),
            (Some(":id"), Some(segment)) if !segment.is_empty() => id = segment,
            (Some(wanted), Some(given)) if wanted == given => {}
            _ => return None,
        }
    }
}

/// Whether there is such a route.
#[must_use]
pub fn knows(rest: &str) -> bool {
    TABLE.iter().any(|row| matches(row.path, rest).is_some())
}

/// The row of a request, and its `:id`.
#[must_use]
pub fn find<'a>(rest: &'a str, method: &Method) -> Option<(&'static Row, &'a str)> {
    let method = if method == Method::HEAD { "GET" } else { method.as_str() };
    let of_method = TABLE.iter().filter(|row| row.method == method);
    of_method.into_iter().find_map(|row| Some((row, matches(row.path, rest)?)))
}

/// The methods of a route, as `Allow` lists them.
#[must_use]
pub fn methods(rest: &str) -> &'static str {
    static ALLOW: LazyLock<Vec<(&str, String)>> = LazyLock::new(|| {
        let mut all: Vec<(&str, String)> = Vec::new();
        for row in TABLE {
            let method = if row.method == "GET" { "GET, HEAD" } else { row.method };
            match all.last_mut().filter(|(path, _)| *path == row.path) {
                Some((_, methods)) => {
                    methods.push_str(", ");
                    methods.push_str(method);
                }
                None => all.push((row.path, method.to_owned())),
            }
        }
        all
    });
    let found = ALLOW.iter().find(|(path, _)| matches(path, rest).is_some());
    found.map_or("GET, HEAD", |(_, methods)| methods.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_matched_whole() {
        for (rest, known) in [
            ("rooms", true),
            ("rooms/a", true),
            ("rooms/a/flush", true),
            ("rooms/", false),
            ("/rooms", false),
            ("rooms//flush", false),
            ("rooms/a/flush/", false),
            ("rooms/a/b", false),
            ("", false),
            ("nothing", false),
        ] {
            assert_eq!(knows(rest), known, "{rest}");
        }
        assert_eq!(methods("monitor-token"), "GET, HEAD, POST, DELETE");
        assert_eq!(methods("rooms/x"), "DELETE");
        let (row, id) = find("rooms/x/rate", &Method::POST).unwrap();
        assert_eq!((row.endpoint, id), (Endpoint::SetRate, "x"));
        assert_eq!(find("rooms", &Method::HEAD).unwrap().0.endpoint, Endpoint::RoomList);
        assert!(find("rooms/x/rate", &Method::GET).is_none());
    }

    /// The matrix as the contract words it, walked for every route and every role.
    #[test]
    fn every_route_and_every_role() {
        let reads_for_all =
            ["rooms", "events", "metrics", "/metrics", "health", "security", "reports", "alerts"];
        let owner_only = ["operators", "operators/:id", "rooms/:id", "shutdown"];
        for row in TABLE.iter().chain([&METRICS]) {
            for role in [Role::Monitor, Role::Viewer, Role::Operator, Role::Owner] {
                let expected = match (row.path, row.method) {
                    ("session", _) => true,
                    ("sse-ticket", _) => true,
                    (path, _) if owner_only.contains(&path) => role == Role::Owner,
                    (path, "GET") if reads_for_all.contains(&path) => true,
                    (_, "GET") => role >= Role::Viewer,
                    _ => role >= Role::Operator,
                };
                assert_eq!(row.access.allows(role), expected, "{row:?} {role:?}");
            }
        }
    }
}
