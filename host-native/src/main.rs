//! The queue server binary: reads the settings, starts serving, and stops gracefully on a signal.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use qm_host_native::cli::journal::{rebuild, verify};
use qm_host_native::config::{Config, LogFormat, ProcessEnv};
use qm_host_native::http::app::{App, VERSION};
use qm_host_native::http::asset;
use qm_host_native::http::router::respond;
use qm_host_native::http::server::{ServerLimits, connection_cap, serve};
use qm_host_native::log::journal::Journal;
use qm_host_native::log::valkey::Valkey;
use qm_host_native::rooms::Store;
use qm_host_native::telemetry::{StoreHealth, init_logging};
use rand::Rng as _;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

/// The exit code for settings that do not fit.
const BAD_SETTINGS: u8 = 2;

fn main() -> ExitCode {
    let mut random = [0; 32];
    rand::rng().fill_bytes(&mut random);
    let config = match Config::parse(&ProcessEnv, random) {
        Ok(config) => config,
        Err(errors) => {
            init_logging(LogFormat::Text, "error");
            for line in errors.0 {
                tracing::error!("{line}");
            }
            return ExitCode::from(BAD_SETTINGS);
        }
    };
    init_logging(config.log_format, &config.log_filter);
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let job = match words[..] {
        [] | ["serve"] => Job::Serve,
        ["check-config"] => {
            tracing::info!("the settings are fine");
            return ExitCode::SUCCESS;
        }
        ["journal", "verify"] => Job::Verify,
        ["rebuild"] => Job::Rebuild,
        _ => {
            tracing::error!(
                "unknown subcommand {words:?}: serve (the default), check-config, journal verify \
                 or rebuild"
            );
            return ExitCode::from(BAD_SETTINGS);
        }
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "failed to start the runtime");
            return ExitCode::FAILURE;
        }
    };
    match job {
        Job::Serve => runtime.block_on(run(config)),
        Job::Verify | Job::Rebuild => runtime.block_on(inspect(config, &job)),
    }
}

/// What the process was started for.
enum Job {
    Serve,
    Verify,
    Rebuild,
}

/// Works on the journal alone; 0 when it is whole.
async fn inspect(config: Config, job: &Job) -> ExitCode {
    let Some(database) = &config.stores.database_url else {
        tracing::error!("DATABASE_URL is required: there is no journal without it");
        return ExitCode::from(BAD_SETTINGS);
    };
    let journal = match Journal::new(database.reveal(), StoreHealth::default()) {
        Ok(journal) => journal,
        Err(error) => {
            tracing::error!("{error}");
            return ExitCode::from(BAD_SETTINGS);
        }
    };
    let whole = match job {
        Job::Verify => verify(&journal).await,
        Job::Rebuild | Job::Serve => rebuild(&journal).await,
    };
    if whole == Ok(true) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn run(config: Config) -> ExitCode {
    let bind = config.bind;
    let listener = match TcpListener::bind(bind).await {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(%bind, %error, "failed to listen: is the address in use?");
            return ExitCode::FAILURE;
        }
    };
    let address = listener.local_addr().unwrap_or(bind);
    let cap = connection_cap(config.limits.connections);
    warn_of(&config);
    let health = StoreHealth::default();
    let store = match open_store(&config, &health).await {
        Ok(store) => store,
        Err(error) => {
            tracing::error!("failed to open the stores: {error}");
            return ExitCode::FAILURE;
        }
    };
    let app = Arc::new(App::new(config, cap.descriptors, store, health));
    app.rooms.start().await;
    // Compressing takes a moment; the first visitor should not pay for it.
    tokio::task::spawn_blocking(asset::warm);
    let store = app.config.stores.store.as_str();
    tracing::info!(%address, version = VERSION, store, "serving");
    let service = {
        let app = Arc::clone(&app);
        move |request| respond(Arc::clone(&app), request)
    };
    let stopping = Arc::clone(&app);
    let shutdown = async move {
        stop_signal().await;
        stopping.draining.store(true, Ordering::Relaxed);
        tracing::info!("stopping: no new connections, streams end");
    };
    serve(listener, service, ServerLimits::new(cap.connections), shutdown).await;
    tracing::info!("stopped");
    ExitCode::SUCCESS
}

/// The shared store with its schema brought up, when the settings name one. A store that does not
/// answer yet is waited for; one that cannot be used stops the start.
async fn open_store(config: &Config, health: &StoreHealth) -> Result<Option<Store>, String> {
    let urls = (&config.stores.valkey_url, &config.stores.database_url);
    let (Some(valkey), Some(database)) = urls else { return Ok(None) };
    if config.stores.store == qm_host_native::config::Store::Memory {
        return Ok(None);
    }
    // Only fails when another part of the process installed one, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let journal = Journal::new(database.reveal(), health.clone())?;
    loop {
        match journal.migrate().await {
            Ok(()) => break,
            Err(error) if error.starts_with("the database has schema") => return Err(error),
            Err(error) => tracing::error!(%error, "postgres cannot be used yet, trying again"),
        }
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
    loop {
        match Valkey::connect(valkey.reveal(), health.clone()).await {
            Ok(valkey) => return Ok(Some(Store { valkey, journal })),
            Err(error) => tracing::error!(%error, "valkey cannot be used yet, trying again"),
        }
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
}

fn warn_of(config: &Config) {
    if config.keys.admin_is_default {
        tracing::warn!("ADMIN_KEY is the default, so only this machine can connect");
    }
    if config.keys.signing_is_random {
        tracing::warn!("SECRET is not set: a restart makes every visitor queue again");
    }
}

/// Ready at the first SIGTERM or SIGINT.
async fn stop_signal() {
    let signals = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
    let (Ok(mut terminate), Ok(mut interrupt)) = signals else {
        tracing::error!("signals cannot be received here: stop the process by other means");
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
