//! The command line: serving, checking the settings, and working with the rooms of a running server
//! at three in the morning. Keys come from the environment or a file, never from an argument, where
//! every process list would show them.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use hyper::Method;
use hyper::header::{AUTHORIZATION, HeaderValue};
use qm_core::id::RoomId;
use serde_json::{Value, json};

use crate::client::{Call, Client};

/// Self-hosted virtual waiting room.
///
/// Settings of the server are environment variables; docs/operations.md lists them.
#[derive(Debug, Parser)]
#[command(name = "queue-manager", version)]
pub struct Cli {
    /// What to do; without it the server starts.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start the server (what happens without a command, too).
    Serve,
    /// Read the settings, say what is wrong with them, and start nothing.
    CheckConfig,
    /// Work with the rooms of a running server.
    ///
    /// Exit codes: 0 done, 1 refused by the server, 2 wrong usage, 3 server not reached.
    Rooms(Rooms),
}

/// Work with the rooms of a running server.
#[derive(Debug, Args)]
pub struct Rooms {
    /// Where the server is.
    #[arg(long, global = true, default_value = "http://127.0.0.1:8080")]
    server: String,
    /// A file with the key; without it the environment variable `ADMIN_KEY` holds the key.
    #[arg(long, global = true)]
    key_file: Option<PathBuf>,
    /// Print the server's answer as JSON.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List all rooms with their numbers.
    List,
    /// Change settings of a room, or make it: `rooms set sale ratePerMinute=120 name='"Sale"'`.
    ///
    /// Values are JSON; what is no JSON is taken as text.
    Set {
        /// The room.
        room: String,
        /// Settings as name=value.
        #[arg(required = true)]
        settings: Vec<String>,
    },
    /// Stop releasing visitors; they keep their places.
    Pause {
        /// The room.
        room: String,
    },
    /// Set the state of a room.
    State {
        /// The room.
        room: String,
        /// The state.
        state: State,
    },
    /// Set how many visitors are released a minute.
    Rate {
        /// The room.
        room: String,
        /// Visitors a minute.
        per_minute: f64,
    },
    /// Release so many visitors now.
    Flush {
        /// The room.
        room: String,
        /// How many.
        count: u64,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum State {
    Active,
    Paused,
    Bypass,
}

impl State {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Paused => "paused",
            Self::Bypass => "bypass",
        }
    }
}

const REFUSED: u8 = 1;
const USAGE: u8 = 2;
const NOT_REACHED: u8 = 3;

/// Why a command was not done: an exit code and a line for people.
#[derive(Debug)]
struct Failure(u8, String);

impl Rooms {
    /// Does it and prints what came of it.
    pub async fn run(self) -> ExitCode {
        match self.work().await {
            Ok(text) => {
                // A closed pipe is no failure of the command.
                let _closed = writeln!(std::io::stdout(), "{text}");
                ExitCode::SUCCESS
            }
            Err(Failure(code, line)) => {
                let _closed = writeln!(std::io::stderr(), "queue-manager: {line}");
                ExitCode::from(code)
            }
        }
    }

    async fn work(self) -> Result<String, Failure> {
        let key = self.key()?;
        let (method, path, body) = self.action.request()?;
        let bearer = HeaderValue::from_str(&format!("Bearer {key}"))
            .map_err(|_| Failure(USAGE, "the key holds what no header can carry".into()))?;
        let url = format!("{}/api/v1/admin/{path}", self.server.trim_end_matches('/'));
        let call = Call {
            method,
            url: &url,
            headers: vec![(AUTHORIZATION, bearer)],
            json: body.map(|body| body.to_string()),
            time_max: Duration::from_secs(30),
        };
        let answered = Client::new().send(call).await;
        let answered =
            answered.map_err(|error| Failure(NOT_REACHED, format!("{}: {error}", self.server)))?;
        let answer: Value = serde_json::from_slice(&answered.body).unwrap_or_default();
        if !(200..300).contains(&answered.status) {
            let text = |name: &str| answer.get(name).and_then(Value::as_str).unwrap_or("unknown");
            let line = format!("{} {}: {}", answered.status, text("code"), text("error"));
            return Err(Failure(REFUSED, line));
        }
        Ok(match (self.json, &self.action) {
            (true, _) => answer.to_string(),
            (false, Action::List) => table(&answer),
            (false, _) => summary(&answer),
        })
    }

    fn key(&self) -> Result<String, Failure> {
        let text = match &self.key_file {
            Some(file) => std::fs::read_to_string(file)
                .map_err(|error| Failure(USAGE, format!("{}: {error}", file.display())))?,
            None => std::env::var("ADMIN_KEY").unwrap_or_default(),
        };
        let key = text.trim();
        if key.is_empty() {
            let line = "no key: set ADMIN_KEY, or name a file with --key-file";
            return Err(Failure(USAGE, line.into()));
        }
        Ok(key.to_owned())
    }
}

impl Action {
    fn request(&self) -> Result<(Method, String, Option<Value>), Failure> {
        let of_room = |room: &str, action: &str, body: Value| {
            let room = checked(room)?;
            Ok((Method::POST, format!("rooms/{room}/{action}"), Some(body)))
        };
        match self {
            Self::List => Ok((Method::GET, "rooms".into(), None)),
            Self::Pause { room } => of_room(room, "state", json!({ "state": "paused" })),
            Self::State { room, state } => {
                of_room(room, "state", json!({ "state": state.as_str() }))
            }
            Self::Rate { room, per_minute } => {
                of_room(room, "rate", json!({ "ratePerMinute": per_minute }))
            }
            Self::Flush { room, count } => of_room(room, "flush", json!({ "count": count })),
            Self::Set { room, settings } => {
                let mut body = serde_json::Map::new();
                body.insert("id".into(), checked(room)?.as_str().into());
                for setting in settings {
                    let Some((name, value)) = setting.split_once('=') else {
                        let line = format!("{setting:?} is not name=value");
                        return Err(Failure(USAGE, line));
                    };
                    let value = serde_json::from_str(value).unwrap_or_else(|_| value.into());
                    body.insert(name.into(), value);
                }
                Ok((Method::POST, "rooms".into(), Some(body.into())))
            }
        }
    }
}

fn checked(room: &str) -> Result<RoomId, Failure> {
    RoomId::parse(room).map_err(|_| Failure(USAGE, format!("{room:?} is no room id")))
}

/// One line for each room.
fn table(answer: &Value) -> String {
    let rooms = answer.get("rooms").and_then(Value::as_array).cloned().unwrap_or_default();
    let head = ["ROOM", "STATE", "WAITING", "SESSIONS", "RATE/MIN", "PASSED/MIN", "WAIT"];
    let mut rows = vec![head.map(str::to_owned)];
    for room in &rooms {
        let text = |name: &str| match room.get(name) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => "-".into(),
            Some(other) => other.to_string(),
        };
        let names = ["id", "effectiveState", "waiting", "sessions", "rate", "passedLastMin"];
        let [id, state, waiting, sessions, rate, passed] = names.map(text);
        let wait = room.get("estWaitSec").and_then(Value::as_u64);
        let wait = wait.map_or_else(|| "-".into(), |seconds| format!("{seconds} s"));
        rows.push([id, state, waiting, sessions, rate, passed, wait]);
    }
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let line = |row: &[String; 7]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// What a change came to.
fn summary(answer: &Value) -> String {
    let room = answer.get("stats").or_else(|| answer.get("room"));
    let text = |name: &str| room.and_then(|room| room.get(name)).cloned().unwrap_or_default();
    let released = answer.get("released").map(|n| format!(", {n} released")).unwrap_or_default();
    format!(
        "{}: {}, {} waiting, {} a minute{released}",
        text("id").as_str().unwrap_or("?"),
        text("effectiveState").as_str().unwrap_or("?"),
        text("waiting"),
        text("rate"),
    )
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn request(words: &[&str]) -> Result<(Method, String, Option<Value>), u8> {
        let words = ["queue-manager", "rooms"].into_iter().chain(words.iter().copied());
        let cli = Cli::try_parse_from(words).map_err(|_| USAGE)?;
        let Some(Command::Rooms(rooms)) = cli.command else { return Err(USAGE) };
        rooms.action.request().map_err(|failure| failure.0)
    }

    #[test]
    fn the_commands_are_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn words_become_requests() {
        for (words, path, body) in [
            (&["list"][..], "rooms", None),
            (&["pause", "a"], "rooms/a/state", Some(json!({ "state": "paused" }))),
            (&["rate", "a", "1.5"], "rooms/a/rate", Some(json!({ "ratePerMinute": 1.5 }))),
            (&["flush", "a", "9"], "rooms/a/flush", Some(json!({ "count": 9 }))),
            (
                &["set", "a", "name=Big sale", "maxConcurrent=null", "ratePerMinute=5"],
                "rooms",
                Some(json!({
                    "id": "a", "name": "Big sale", "maxConcurrent": null, "ratePerMinute": 5,
                })),
            ),
        ] {
            let (_, got_path, got_body) = request(words).unwrap();
            assert_eq!((&*got_path, got_body), (path, body), "{words:?}");
        }
        for words in [&["flush", "a"][..], &["pause", "../x"], &["set", "a", "name"], &["nope"]] {
            assert_eq!(request(words).unwrap_err(), USAGE, "{words:?}");
        }
    }

    #[test]
    fn rooms_are_told_in_columns() {
        let answer = json!({ "rooms": [{
            "id": "sale", "effectiveState": "active", "waiting": 12, "sessions": 3, "rate": 60,
            "passedLastMin": 60, "estWaitSec": null,
        }] });
        let text = table(&answer);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("ROOM  STATE   WAITING"), "{text}");
        assert!(lines[1].starts_with("sale  active  12"), "{text}");
    }
}
