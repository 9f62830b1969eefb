//! The queue server binary: reads the settings, starts serving, and stops gracefully on a signal.
//! The commands of `cli` work with a server that runs.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use clap::Parser as _;
use qm_host_native::cli::{Cli, Command};
use qm_host_native::config::{Config, LogFormat, ProcessEnv};
use qm_host_native::http::admin::board::Board;
use qm_host_native::http::app::{App, VERSION};
use qm_host_native::http::asset;
use qm_host_native::http::router::respond;
use qm_host_native::http::server::{ServerLimits, connection_cap, serve};
use qm_host_native::job;
use qm_host_native::telemetry::init_logging;
use rand::Rng as _;
use tokio::net::TcpListener;

/// Joins allocate much, partly on one thread what another one frees: the system's allocator costs
/// about a fifth of their rate (docs/performance.md).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The exit code for settings that do not fit.
const BAD_SETTINGS: u8 = 2;

fn main() -> ExitCode {
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command.unwrap_or(Command::Serve),
        // Help and version are asked for; everything else is wrong usage.
        Err(told) => {
            let _closed = told.print();
            return ExitCode::from(u8::try_from(told.exit_code()).unwrap_or(BAD_SETTINGS));
        }
    };
    let check_only = match command {
        Command::Rooms(rooms) => return block_on(rooms.run()),
        Command::CheckConfig => true,
        Command::Serve => false,
    };
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
    if check_only {
        tracing::info!("the settings are fine");
        return ExitCode::SUCCESS;
    }
    block_on(run(config))
}

fn block_on(work: impl Future<Output = ExitCode>) -> ExitCode {
    match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime.block_on(work),
        Err(error) => {
            tracing::error!(%error, "failed to start the runtime");
            ExitCode::FAILURE
        }
    }
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
    let app = Arc::new(App::new(config, cap.descriptors));
    // Compressing takes a moment; the first visitor should not pay for it.
    tokio::task::spawn_blocking(asset::warm);
    let store = app.config.stores.store.as_str();
    tracing::info!(%address, version = VERSION, store, "serving");
    let service = {
        let app = Arc::clone(&app);
        move |request, facts| respond(Arc::clone(&app), request, facts)
    };
    let stopping = Arc::clone(&app);
    tokio::spawn(Board::run(Arc::clone(&app)));
    let jobs = job::start(&job_parts(&app));
    let shutdown = async move {
        tokio::select! {
            () = stop_signal() => {}
            () = stopping.stop.notified() => {}
        }
        stopping.draining.store(true, Ordering::Relaxed);
        tracing::info!("stopping: no new connections, streams end");
    };
    serve(listener, service, ServerLimits::new(cap.connections), shutdown).await;
    jobs.finish().await;
    tracing::info!("stopped");
    ExitCode::SUCCESS
}

/// What the jobs share with the routes.
fn job_parts(app: &App) -> job::Parts {
    job::Parts {
        clock: app.clock,
        rooms: Arc::clone(&app.rooms),
        side: Arc::clone(&app.side),
        history_retain_days: app.config.history_retain_days,
        metrics: Arc::clone(&app.metrics),
        client: app.client.clone(),
        webhook: app.webhook.clone(),
        server: app.server_name(),
        origins: Arc::default(),
        mail: app.config.mail.clone(),
        notice_retain_ms: app.token_max_age_ms,
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

cfg_if::cfg_if! {
    if #[cfg(unix)] {
        /// Ready at the first SIGTERM or SIGINT.
        async fn stop_signal() {
            use tokio::signal::unix::{SignalKind, signal};
            let signals = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()));
            let (Ok(mut terminate), Ok(mut interrupt)) = signals else {
                tracing::error!("signals cannot be received here: stop it by other means");
                return std::future::pending().await;
            };
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        }
    } else {
        /// Ready at Ctrl-C, the only signal every system has.
        async fn stop_signal() {
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}
