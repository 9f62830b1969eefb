//! The series of `/metrics` (HOL-44, OPS-21 to OPS-24). Routes and rooms hold the handles they
//! count with; only a scrape walks all of them.

use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Instant;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::bounded::{BoundedCounter, BoundedPairCounter};

/// The content type of [`Metrics::encode`].
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRoom {
    room: Box<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Version {
    version: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCheck {
    action: &'static str,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRequest {
    route: &'static str,
    code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfSurface {
    surface: &'static str,
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRoute {
    route: &'static str,
}

/// The series of one room; a room keeps them for as long as it lives.
#[derive(Clone, Debug)]
pub struct RoomMetrics {
    /// `qm_joins_total`.
    pub joins: Counter,
    /// `qm_passes_total`.
    pub passes: Counter,
    /// `qm_admissions_total`.
    pub admissions: Counter,
    /// `qm_waiting`.
    pub waiting: Gauge,
    /// `qm_prequeue`.
    pub prequeue: Gauge,
    /// `qm_sessions`.
    pub sessions: Gauge,
    /// `qm_slots_used`.
    pub slots_used: Gauge,
}

#[derive(Debug, Default)]
struct RoomFamilies {
    joins: Family<OfRoom, Counter>,
    passes: Family<OfRoom, Counter>,
    admissions: Family<OfRoom, Counter>,
    waiting: Family<OfRoom, Gauge>,
    prequeue: Family<OfRoom, Gauge>,
    sessions: Family<OfRoom, Gauge>,
    slots_used: Family<OfRoom, Gauge>,
}

/// All metrics of this process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    rooms: RoomFamilies,
    checks: Family<OfCheck, Counter>,
    http_requests: Family<OfRequest, Counter>,
    fail_open: Family<OfSurface, Counter>,
    /// The sum of the family, which cannot be walked; not a series.
    fail_opens: Counter,
    rate_limited: Family<OfRoute, Counter>,
    /// `qm_status_total`.
    pub status: Counter,
    /// `qm_sse_streams`.
    pub sse_streams: Gauge,
    /// `qm_outflow_lag_seconds`: how late a due release was made.
    pub outflow_lag_seconds: Histogram,
    /// `qm_join_seconds`.
    pub join_seconds: Histogram,
    /// `qm_check_seconds`.
    pub check_seconds: Histogram,
    /// `qm_rate_limited_checks_total`.
    pub rate_limited_checks: Counter,
    /// `qm_unknown_room_checks_total`.
    pub unknown_room_checks: Arc<BoundedCounter>,
    /// `qm_refused_origin_checks_total`.
    pub refused_origin_checks: Arc<BoundedPairCounter>,
    /// `qm_refused_key_checks_total`.
    pub refused_key_checks: Arc<BoundedCounter>,
}

impl Metrics {
    /// Registers every series; one for the whole process.
    #[must_use]
    pub fn new(version: &'static str) -> Self {
        let seconds = || Histogram::new(SECONDS_BUCKETS);
        let mut metrics = Self {
            registry: Registry::with_prefix("qm"),
            rooms: RoomFamilies::default(),
            checks: Family::default(),
            http_requests: Family::default(),
            fail_open: Family::default(),
            fail_opens: Counter::default(),
            rate_limited: Family::default(),
            status: Counter::default(),
            sse_streams: Gauge::default(),
            outflow_lag_seconds: seconds(),
            join_seconds: seconds(),
            check_seconds: seconds(),
            rate_limited_checks: Counter::default(),
            unknown_room_checks: Arc::new(BoundedCounter::new(
                "unknown_room_checks",
                "Checks of rooms that do not exist",
            )),
            refused_origin_checks: Arc::new(BoundedPairCounter::new(
                "refused_origin_checks",
                "Checks from origins the room does not allow",
            )),
            refused_key_checks: Arc::new(BoundedCounter::new(
                "refused_key_checks",
                "Vouched checks without a valid key",
            )),
        };
        metrics.register_rooms();
        metrics.register_process(version);
        metrics
    }

    fn register_rooms(&mut self) {
        let (registry, rooms) = (&mut self.registry, &self.rooms);
        registry.register("joins", "Places handed out", rooms.joins.clone());
        registry.register("passes", "Tickets let through", rooms.passes.clone());
        registry.register("admissions", "First admissions at the door", rooms.admissions.clone());
        registry.register("waiting", "Tickets waiting", rooms.waiting.clone());
        registry.register("prequeue", "Places before the opening", rooms.prequeue.clone());
        registry.register("sessions", "Open door sessions", rooms.sessions.clone());
        registry.register("slots_used", "Slots in use", rooms.slots_used.clone());
    }

    fn register_process(&mut self, version: &'static str) {
        let registry = &mut self.registry;
        registry.register("checks", "Door checks", self.checks.clone());
        registry.register("status", "Status answers", self.status.clone());
        registry.register("sse_streams", "Open visitor streams", self.sse_streams.clone());
        registry.register("http_requests", "Requests", self.http_requests.clone());
        registry.register("fail_open", "Visitors let through in an outage", self.fail_open.clone());
        registry.register("rate_limited", "Requests over a quota", self.rate_limited.clone());
        registry.register(
            "rate_limited_checks",
            "Checks over the quota",
            self.rate_limited_checks.clone(),
        );
        for (name, help, histogram) in [
            ("outflow_lag_seconds", "How late releases were", &self.outflow_lag_seconds),
            ("join_seconds", "Time to answer a join", &self.join_seconds),
            ("check_seconds", "Time to answer a check", &self.check_seconds),
        ] {
            registry.register(name, help, histogram.clone());
        }
        let build_info = Family::<Version, Gauge<u64, AtomicU64>>::default();
        build_info.get_or_create(&Version { version }).set(1);
        registry.register("build_info", "The version running", build_info);
        registry.register_collector(Box::new(self.unknown_room_checks.clone()));
        registry.register_collector(Box::new(self.refused_origin_checks.clone()));
        registry.register_collector(Box::new(self.refused_key_checks.clone()));
    }

    /// The handles of a room.
    #[must_use]
    pub fn room(&self, id: &str) -> RoomMetrics {
        let label = OfRoom { room: id.into() };
        RoomMetrics {
            joins: self.rooms.joins.get_or_create_owned(&label),
            passes: self.rooms.passes.get_or_create_owned(&label),
            admissions: self.rooms.admissions.get_or_create_owned(&label),
            waiting: self.rooms.waiting.get_or_create_owned(&label),
            prequeue: self.rooms.prequeue.get_or_create_owned(&label),
            sessions: self.rooms.sessions.get_or_create_owned(&label),
            slots_used: self.rooms.slots_used.get_or_create_owned(&label),
        }
    }

    /// Drops the series of a deleted room.
    pub fn forget_room(&self, id: &str) {
        let label = OfRoom { room: id.into() };
        self.rooms.joins.remove(&label);
        self.rooms.passes.remove(&label);
        self.rooms.admissions.remove(&label);
        self.rooms.waiting.remove(&label);
        self.rooms.prequeue.remove(&label);
        self.rooms.sessions.remove(&label);
        self.rooms.slots_used.remove(&label);
    }

    /// Counts a door check.
    pub fn count_check(&self, action: &'static str, reason: &'static str) {
        self.checks.get_or_create(&OfCheck { action, reason }).inc();
    }

    /// Counts a request by the name of its route, never by its path.
    pub fn count_request(&self, route: &'static str, code: u16) {
        self.http_requests.get_or_create(&OfRequest { route, code }).inc();
    }

    /// Counts a visitor let through because something was down.
    pub fn count_fail_open(&self, surface: &'static str, reason: &'static str) {
        self.fail_open.get_or_create(&OfSurface { surface, reason }).inc();
        self.fail_opens.inc();
    }

    /// All visitors let through because something was down.
    #[must_use]
    pub fn fail_opens(&self) -> u64 {
        self.fail_opens.get()
    }

    /// Counts a request over its quota.
    pub fn count_rate_limited(&self, route: &'static str) {
        self.rate_limited.get_or_create(&OfRoute { route }).inc();
    }

    /// The exposition, of type [`CONTENT_TYPE`].
    #[must_use]
    pub fn encode(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("writing to a String cannot fail");
        text
    }
}

/// Seconds since `start`, for the histograms.
#[must_use]
pub fn since(start: Instant) -> f64 {
    start.elapsed().as_secs_f64()
}

/// From a check answered from memory to a join that waited for a journal.
const SECONDS_BUCKETS: [f64; 14] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_series_has_its_exact_name() {
        let metrics = Metrics::new("1.2.3");
        let room = metrics.room("r1");
        room.joins.inc();
        room.waiting.set(3);
        metrics.count_check("queue", "waiting");
        metrics.count_request("join", 200);
        metrics.count_fail_open("edge", "timeout");
        metrics.count_rate_limited("check");
        metrics.unknown_room_checks.increment("no\"ne");
        metrics.refused_origin_checks.increment("r1", "https://a.example");
        metrics.refused_key_checks.increment("r1");
        metrics.rate_limited_checks.inc();
        metrics.join_seconds.observe(0.003);
        let text = metrics.encode();
        for line in [
            r#"qm_joins_total{room="r1"} 1"#,
            r#"qm_passes_total{room="r1"} 0"#,
            r#"qm_admissions_total{room="r1"} 0"#,
            r#"qm_checks_total{action="queue",reason="waiting"} 1"#,
            "qm_status_total 0",
            "qm_sse_streams 0",
            r#"qm_waiting{room="r1"} 3"#,
            r#"qm_prequeue{room="r1"} 0"#,
            r#"qm_sessions{room="r1"} 0"#,
            r#"qm_slots_used{room="r1"} 0"#,
            "qm_outflow_lag_seconds_count 0",
            "qm_join_seconds_count 1",
            "# TYPE qm_join_seconds histogram",
            r#"qm_join_seconds_bucket{le="+Inf"} 1"#,
            "qm_check_seconds_count 0",
            r#"qm_http_requests_total{route="join",code="200"} 1"#,
            r#"qm_fail_open_total{surface="edge",reason="timeout"} 1"#,
            r#"qm_rate_limited_total{route="check"} 1"#,
            r#"qm_build_info{version="1.2.3"} 1"#,
            r#"qm_unknown_room_checks_total{room="no\"ne"} 1"#,
            r#"qm_refused_origin_checks_total{room="r1",origin="https://a.example"} 1"#,
            r#"qm_refused_key_checks_total{room="r1"} 1"#,
            "qm_rate_limited_checks_total 1",
            "# EOF",
        ] {
            assert!(text.lines().any(|l| l == line), "no line {line} in\n{text}");
        }
        metrics.forget_room("r1");
        assert!(!metrics.encode().contains(r#"qm_joins_total{room="r1"}"#));
    }
}
