//! What the operator sees: log lines on standard error, and metrics.

mod bounded;
mod metrics;
mod store;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

use crate::config::LogFormat;
pub use bounded::{BoundedCounter, BoundedPairCounter, OTHER};
pub use metrics::{CONTENT_TYPE, Metrics, RoomMetrics, since};
pub use store::StoreHealth;

/// Starts logging to standard error, panics included; a second call changes nothing.
///
/// `filter` was checked when the settings were read; should it not parse, `info` is used.
pub fn init_logging(format: LogFormat, filter: &str) {
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // The outcome tells only whether logging was running already.
    let _running = match format {
        LogFormat::Text => builder.with_ansi(false).try_init(),
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    // A panic is a line like any other, so that a JSON log stays one.
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        let reason = panic.payload_as_str().unwrap_or("unknown");
        tracing::error!(place, reason, "a fault of ours was caught");
    }));
}
