//! Numbers over time: series for graphs (ADM-62) and reports for the books (ADM-05 to ADM-07).

use hyper::Response;
use hyper::header::{ACCEPT, CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue};
use qm_core::id::RoomId;
use qm_core::time::TimeMs;
use serde_json::{Value, json};

use super::super::answer;
use super::super::app::App;
use super::super::body::Body;
use super::super::error::ApiError;
use super::super::request::Ask;
use super::auth::unavailable;
use crate::rooms::RoomHandle;
use crate::side::history::{Bucket, Grain};

type Answer = Result<Response<Body>, ApiError>;

/// A range of the graphs: how far back, from which buckets, in which steps.
struct Range {
    word: &'static str,
    back_ms: u64,
    grain: Grain,
    step_ms: u64,
}

const MINUTE_MS: u64 = 60_000;
const HOUR_MS: u64 = 60 * MINUTE_MS;

const RANGES: [Range; 5] = [
    Range { word: "15m", back_ms: 15 * MINUTE_MS, grain: Grain::TenSeconds, step_ms: 10_000 },
    Range { word: "1h", back_ms: HOUR_MS, grain: Grain::Minute, step_ms: MINUTE_MS },
    Range { word: "6h", back_ms: 6 * HOUR_MS, grain: Grain::Minute, step_ms: 5 * MINUTE_MS },
    Range { word: "24h", back_ms: 24 * HOUR_MS, grain: Grain::Minute, step_ms: 15 * MINUTE_MS },
    Range { word: "7d", back_ms: 168 * HOUR_MS, grain: Grain::Hour, step_ms: HOUR_MS },
];

fn room_of(app: &App, ask: &Ask) -> Result<std::sync::Arc<RoomHandle>, ApiError> {
    let id = ask.parameter("roomId").unwrap_or_default();
    let id = RoomId::parse(&id).map_err(|_| ApiError::invalid_room_id())?;
    app.rooms.find(&id).ok_or_else(ApiError::room_not_found)
}

/// `GET /metrics?roomId=&range=`: even steps from the room's first up to now; `joins`, `passes` and
/// `abandoned` are a minute's.
pub(super) async fn series(app: &App, ask: &Ask) -> Answer {
    let room = room_of(app, ask)?;
    let asked = ask.parameter("range");
    let asked = asked.as_deref().unwrap_or("1h");
    let range = RANGES.iter().find(|range| range.word == asked);
    let range = range.ok_or_else(ApiError::invalid_range)?;
    let now = app.clock.now();
    let on_step = |at: TimeMs| TimeMs(at.0 - at.0 % range.step_ms);
    let created = room.look(|room, _, _| room.created_at());
    let from = on_step(TimeMs(now.0.saturating_sub(range.back_ms)).max(created));
    let buckets = app.side.history(room.id(), range.grain, from).await.map_err(unavailable)?;
    let mut buckets = buckets.into_iter().peekable();
    let per_minute = |count: u64| {
        // Two decimals; counts are far below the precision of a float.
        (count as f64 * 100.0 * MINUTE_MS as f64 / range.step_ms as f64).round() / 100.0
    };
    let mut points = Vec::new();
    let mut start = from;
    while start <= now {
        let end = start.plus_ms(range.step_ms);
        let mut step = Bucket::default();
        while let Some(bucket) = buckets.next_if(|bucket| bucket.start < end) {
            step.add(&bucket);
        }
        points.push(json!({
            "t": start,
            "joins": per_minute(step.joins),
            "passes": per_minute(step.passes),
            "waiting": step.waiting,
            "sessions": step.sessions,
            "abandoned": per_minute(step.abandoned),
        }));
        start = end;
    }
    let body = json!({
        "roomId": room.id().as_str(),
        "range": range.word,
        "stepSec": range.step_ms / 1000,
        "points": points,
    });
    Ok(answer::json(&body))
}

/// One row of a report.
struct ReportRow(Bucket);

const COLUMNS: [&str; 10] = [
    "t",
    "joins",
    "passes",
    "admitted",
    "abandoned",
    "expired",
    "waitP50",
    "waitP90",
    "waitP99",
    "peakWaiting",
];

impl ReportRow {
    fn numbers(&self) -> [Option<u64>; 9] {
        let bucket = &self.0;
        let wait = |percent| bucket.waits.percentile(percent).map(u64::from);
        [
            Some(bucket.joins),
            Some(bucket.passes),
            Some(bucket.admitted),
            Some(bucket.abandoned),
            Some(bucket.expired),
            wait(50),
            wait(90),
            wait(99),
            Some(bucket.peak_waiting),
        ]
    }

    fn to_json(&self) -> Value {
        let mut row = json!({ "t": self.0.start });
        if let Some(row) = row.as_object_mut() {
            let named = COLUMNS.iter().skip(1).zip(self.numbers());
            row.extend(named.map(|(name, number)| ((*name).to_owned(), number.into())));
        }
        row
    }
}

/// `GET /reports?roomId=&bucket=hour|day`, as JSON or CSV.
pub(super) async fn reports(app: &App, ask: &Ask) -> Answer {
    let room = room_of(app, ask)?;
    let asked = ask.parameter("bucket");
    let length_ms = match asked.as_deref().unwrap_or("hour") {
        "hour" => HOUR_MS,
        "day" => 24 * HOUR_MS,
        _ => return Err(ApiError::invalid_bucket()),
    };
    let as_csv = match ask.parameter("format").as_deref() {
        Some("csv") => true,
        Some("json") => false,
        Some(_) => {
            return Err(ApiError::invalid_field("invalid_format", "format must be json or csv"));
        }
        None => ask.header(ACCEPT).is_some_and(|accept| accept.contains("text/csv")),
    };
    let retained_ms = u64::from(app.config.history_retain_days) * 24 * HOUR_MS;
    let from = TimeMs(app.clock.now().0.saturating_sub(retained_ms));
    let hours = app.side.history(room.id(), Grain::Hour, from).await.map_err(unavailable)?;
    let mut rows: Vec<ReportRow> = Vec::new();
    for hour in hours {
        let start = TimeMs(hour.start.0 - hour.start.0 % length_ms);
        match rows.last_mut().filter(|row| row.0.start == start) {
            Some(row) => row.0.add(&hour),
            None => rows.push(ReportRow(Bucket { start, ..hour })),
        }
    }
    let bucket = asked.as_deref().unwrap_or("hour");
    if as_csv {
        return csv_answer(room.id(), bucket, &rows);
    }
    let rows: Vec<Value> = rows.iter().map(ReportRow::to_json).collect();
    Ok(answer::json(&json!({
        "roomId": room.id().as_str(),
        "bucket": bucket,
        "percentiles": PERCENTILES,
        "retainDays": app.config.history_retain_days,
        "rows": rows,
    })))
}

fn csv_answer(room: &RoomId, bucket: &str, rows: &[ReportRow]) -> Answer {
    let text = csv_text(room, rows).map_err(|error| {
        tracing::error!(%error, "a report cannot be written as CSV");
        ApiError::internal()
    })?;
    let mut response = Response::new(Body::from(text));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/csv; charset=utf-8"));
    headers.insert("x-qm-percentiles", HeaderValue::from_static(PERCENTILES));
    headers.insert("cache-control", HeaderValue::from_static("no-store"));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    let name = format!("attachment; filename=\"{room}-{bucket}.csv\"");
    if let Ok(name) = HeaderValue::from_str(&name) {
        headers.insert(CONTENT_DISPOSITION, name);
    }
    Ok(response)
}

fn csv_text(room: &RoomId, rows: &[ReportRow]) -> Result<Vec<u8>, csv::Error> {
    let mut octets = Vec::from(BYTE_ORDER_MARK);
    let mut writer =
        csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).from_writer(&mut octets);
    writer.write_record(COLUMNS.iter().copied().chain(["roomId", "percentiles"]))?;
    for row in rows {
        let numbers = row.numbers();
        let numbers = numbers.iter().map(|n| n.map_or_else(String::new, |n| n.to_string()));
        let time = row.0.start.0.to_string();
        let texts = [neutral(room.as_str()), neutral(PERCENTILES)];
        writer.write_record(std::iter::once(time).chain(numbers).chain(texts))?;
    }
    writer.flush()?;
    drop(writer);
    Ok(octets)
}

/// A text that no spreadsheet takes for a formula.
fn neutral(text: &str) -> String {
    let mark = if text.starts_with(['=', '+', '-', '@', '\t']) { "'" } else { "" };
    format!("{mark}{text}")
}

const PERCENTILES: &str = "reservoir-estimate";
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_keeps_numbers_and_disarms_texts() {
        let mut bucket = Bucket { start: TimeMs(3_600_000), joins: 3, ..Bucket::default() };
        bucket.waits.offer(12, 1, 0);
        let room = RoomId::parse("-room").unwrap();
        let text = String::from_utf8(csv_text(&room, &[ReportRow(bucket)]).unwrap()).unwrap();
        let lines: Vec<&str> = text.trim_start_matches('\u{feff}').split("\r\n").collect();
        assert!(text.starts_with('\u{feff}'));
        assert!(lines[0].starts_with("t,joins,passes,admitted,abandoned,expired,waitP50"));
        assert_eq!(lines[1], "3600000,3,0,0,0,0,12,12,12,0,'-room,reservoir-estimate");
    }
}
