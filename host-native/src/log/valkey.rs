//! Valkey: the order of batches, the feed of settled ones, what instances saw of visitors, and the
//! one time. A single node or a cluster, by the address.

use std::time::Duration;

use futures_util::StreamExt as _;
use qm_core::id::RoomId;
use qm_core::room::News;
use qm_core::time::TimeMs;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::cluster::ClusterClientBuilder;
use redis::cluster_async::ClusterConnection;
use redis::{
    Client, Cmd, FromRedisValue, RedisError, RedisResult, Script, ScriptInvocation, Value,
};
use tokio::sync::mpsc;

use super::{Ask, Down, ORPHAN_AFTER, Reply, Settle};
use crate::telemetry::StoreHealth;

/// A call that takes longer counts as lost.
const CALL_MAX: Duration = Duration::from_secs(1);

/// What instances tell each other.
const FEED: &str = "qm:feed";
const SEEN: &str = "qm:seen";
const ROOMS: &str = "qm:rooms";

/// Who is here is forgotten when nobody was seen for this long.
const SEEN_TTL_SECONDS: u64 = 2 * 86_400;

/// A message of another instance, or of this one.
#[derive(Clone, Debug)]
pub enum Message {
    /// A batch was settled; no rows: look for yourself.
    Settled {
        /// The room.
        room: RoomId,
        /// Its generation.
        generation: u64,
        /// The first seq.
        from: u64,
        /// The rows.
        rows: String,
    },
    /// Visitors were seen.
    Seen {
        /// The room.
        room: RoomId,
        /// Its generation.
        generation: u64,
        /// Which instance saw them.
        by: String,
        /// Who was seen.
        news: News,
    },
    /// A room was made.
    Rooms,
    /// Messages may have been missed.
    Missed,
}

#[derive(Clone)]
enum Connection {
    Single(ConnectionManager),
    Cluster(ClusterConnection),
}

/// Access to Valkey. Copies share connections.
#[derive(Clone)]
pub struct Valkey {
    connection: Connection,
    /// One for each node named in the address.
    nodes: Vec<Client>,
    append: Script,
    health: StoreHealth,
}

/// The addresses in `VALKEY_URL`, and whether they are of a cluster.
fn nodes_of(url: &str) -> (Vec<String>, bool) {
    let nodes: Vec<String> = url
        .split(',')
        .map(str::trim)
        .map(|node| match node.strip_prefix("valkey-cluster://") {
            Some(rest) => format!("redis://{rest}"),
            None => node.to_owned(),
        })
        .collect();
    let cluster = nodes.len() > 1 || url.starts_with("valkey-cluster://");
    (nodes, cluster)
}

impl Valkey {
    /// Connects.
    ///
    /// # Errors
    /// A text for the operator.
    pub async fn connect(url: &str, health: StoreHealth) -> Result<Self, String> {
        let (addresses, cluster) = nodes_of(url);
        let text = |error: RedisError| error.to_string();
        let open = |address: &String| Client::open(address.as_str()).map_err(text);
        let nodes = addresses.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let connection = if cluster {
            let client = ClusterClientBuilder::new(addresses)
                .connection_timeout(CALL_MAX)
                .response_timeout(CALL_MAX)
                .build()
                .map_err(text)?;
            Connection::Cluster(client.get_async_connection().await.map_err(text)?)
        } else {
            let config = ConnectionManagerConfig::new()
                .set_response_timeout(Some(CALL_MAX))
                .set_connection_timeout(Some(CALL_MAX))
                .set_number_of_retries(1)
                .set_max_delay(Duration::from_millis(200));
            let first = nodes.first().cloned().ok_or("VALKEY_URL names no server")?;
            let made = ConnectionManager::new_with_config(first, config).await;
            Connection::Single(made.map_err(text)?)
        };
        let append = Script::new(include_str!("append.lua"));
        Ok(Self { connection, nodes, append, health })
    }

    async fn within<T>(&self, call: impl Future<Output = RedisResult<T>>) -> Result<T, Down> {
        match tokio::time::timeout(CALL_MAX, call).await {
            Ok(Ok(value)) => {
                self.health.valkey_answered();
                Ok(value)
            }
            Ok(Err(error)) => {
                self.health.valkey_failed(&error);
                Err(Down)
            }
            Err(late) => {
                self.health.valkey_failed(&late);
                Err(Down)
            }
        }
    }

    async fn call<T: FromRedisValue>(&self, command: &Cmd) -> Result<T, Down> {
        match self.connection.clone() {
            Connection::Single(mut c) => self.within(command.query_async(&mut c)).await,
            Connection::Cluster(mut c) => self.within(command.query_async(&mut c)).await,
        }
    }

    async fn invoke(&self, script: &ScriptInvocation<'_>) -> Result<Vec<Value>, Down> {
        match self.connection.clone() {
            Connection::Single(mut c) => self.within(script.invoke_async(&mut c)).await,
            Connection::Cluster(mut c) => self.within(script.invoke_async(&mut c)).await,
        }
    }

    /// Calls the append function.
    ///
    /// # Errors
    /// [`Down`]: whether it ran is unknown.
    pub async fn ask(&self, room: &RoomId, ask: &Ask) -> Result<Reply, Down> {
        let (settle, settled) = match &ask.settle {
            None => ("", ""),
            Some(Settle::Keep(id)) => ("keep", id.as_str()),
            Some(Settle::Drop(id)) => ("drop", id.as_str()),
            Some(Settle::Refuse(id)) => ("refuse", id.as_str()),
        };
        let none = (String::new(), 0, String::new());
        let (id, to, rows) = ask.batch.as_ref().unwrap_or(&none);
        let mut script = self.append.prepare_invoke();
        for part in ["head", "log", "line"] {
            script.key(format!("qm:{{{room}}}:{part}"));
        }
        script.arg(ask.generation).arg(ask.head).arg(&ask.caller).arg(settle).arg(settled);
        script.arg(id).arg(*to).arg(rows);
        script.arg(u64::try_from(ORPHAN_AFTER.as_millis()).unwrap_or(u64::MAX));
        script.arg(ask.trim).arg(FEED).arg(room.as_str());
        let values = self.invoke(&script).await?;
        read_reply(&values).ok_or_else(|| {
            tracing::error!(%room, "valkey gave an unknown answer");
            Down
        })
    }

    /// Valkey's time.
    ///
    /// # Errors
    /// [`Down`].
    pub async fn time(&self) -> Result<TimeMs, Down> {
        let time = match self.connection.clone() {
            Connection::Single(mut c) => {
                self.within(redis::cmd("TIME").query_async::<(u64, u64)>(&mut c)).await
            }
            // Every node has its own; they are near enough to each other.
            Connection::Cluster(mut c) => {
                let script = Script::new("return redis.call('TIME')");
                let mut call = script.prepare_invoke();
                call.key("qm:{time}");
                self.within(call.invoke_async::<(u64, u64)>(&mut c)).await
            }
        };
        time.map(|(seconds, micros)| TimeMs(seconds * 1000 + micros / 1000))
    }

    /// Tells other instances who was seen, and keeps it for those that start later.
    ///
    /// # Errors
    /// [`Down`]: some may not have heard.
    pub async fn tell_seen(
        &self,
        room: &RoomId,
        generation: u64,
        by: &str,
        news: &News,
        at: TimeMs,
    ) -> Result<(), Down> {
        let text = serde_json::to_string(news).unwrap_or_default();
        let message = format!("{room}\n{generation}\n{by}\n{text}");
        self.call::<Value>(redis::cmd("PUBLISH").arg(SEEN).arg(message)).await?;
        let key = format!("qm:{{{room}}}:seen:{generation}");
        let mut keep = redis::cmd("HSET");
        keep.arg(&key).arg("at").arg(at.0);
        for (n, seen, told) in news.tickets() {
            keep.arg(format!("t{n}")).arg(format!("{} {}", seen.0, u8::from(told)));
        }
        for (q, seen) in news.references() {
            keep.arg(format!("q{q}")).arg(seen.0);
        }
        for (n, used) in news.touches() {
            keep.arg(format!("s{n}")).arg(used.0);
        }
        self.call::<Value>(&keep).await?;
        self.call::<Value>(redis::cmd("EXPIRE").arg(&key).arg(SEEN_TTL_SECONDS)).await.map(drop)
    }

    /// Who was seen lately, and when that was told last; `None` when nobody was.
    ///
    /// # Errors
    /// [`Down`].
    pub async fn seen(
        &self,
        room: &RoomId,
        generation: u64,
    ) -> Result<Option<(TimeMs, News)>, Down> {
        let key = format!("qm:{{{room}}}:seen:{generation}");
        let fields: Vec<(String, String)> = self.call(redis::cmd("HGETALL").arg(key)).await?;
        let (mut told_at, mut news) = (None, News::default());
        for (field, value) in &fields {
            if field == "at" {
                told_at = value.parse().ok().map(TimeMs);
            }
            let Some((kind, number)) = field.split_at_checked(1) else { continue };
            let (at, told) = value.split_once(' ').unwrap_or((value, "0"));
            let (Ok(number), Ok(at)) = (number.parse(), at.parse().map(TimeMs)) else { continue };
            match kind {
                "t" => news.saw_ticket(number, at, told == "1"),
                "q" => news.saw_reference(number, at),
                "s" => news.touched(number, at),
                _ => {}
            }
        }
        Ok(told_at.map(|at| (at, news)))
    }

    /// Tells other instances that a room was made.
    pub async fn tell_rooms(&self) {
        // Whoever misses it finds the room in the register soon.
        let _ = self.call::<Value>(redis::cmd("PUBLISH").arg(ROOMS).arg("")).await;
    }

    /// Listens for ever; ends when the receiver is gone.
    pub async fn listen(self, to: mpsc::UnboundedSender<Message>) {
        let mut nodes = self.nodes.iter().cycle();
        while !to.is_closed() {
            let Some(node) = nodes.next() else { return };
            if let Err(error) = listen_at(node, &to).await {
                self.health.valkey_failed(&error);
            }
            if to.send(Message::Missed).is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

async fn listen_at(node: &Client, to: &mpsc::UnboundedSender<Message>) -> RedisResult<()> {
    let mut feed = node.get_async_pubsub().await?;
    feed.subscribe(&[FEED, SEEN, ROOMS]).await?;
    // What was told before this is found by asking.
    let _ = to.send(Message::Missed);
    let mut messages = feed.on_message();
    while let Some(message) = messages.next().await {
        let text: String = message.get_payload()?;
        let read = match message.get_channel_name() {
            FEED => read_settled(&text),
            SEEN => read_seen(&text),
            _ => Some(Message::Rooms),
        };
        if let Some(read) = read
            && to.send(read).is_err()
        {
            return Ok(());
        }
    }
    Ok(())
}

fn read_settled(text: &str) -> Option<Message> {
    let mut parts = text.splitn(4, '\n');
    Some(Message::Settled {
        room: RoomId::parse(parts.next()?).ok()?,
        generation: parts.next()?.parse().ok()?,
        from: parts.next()?.parse().ok()?,
        rows: parts.next()?.to_owned(),
    })
}

fn read_seen(text: &str) -> Option<Message> {
    let mut parts = text.splitn(4, '\n');
    Some(Message::Seen {
        room: RoomId::parse(parts.next()?).ok()?,
        generation: parts.next()?.parse().ok()?,
        by: parts.next()?.to_owned(),
        news: serde_json::from_str(parts.next()?).ok()?,
    })
}

fn text_of(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::Int(number) => Some(number.to_string()),
        other => String::from_redis_value_ref(other).ok(),
    }
}

fn read_reply(values: &[Value]) -> Option<Reply> {
    let at = |index: usize| text_of(values.get(index));
    Some(match at(0)?.as_str() {
        "appended" => Reply::Appended,
        "current" => Reply::Current(at(2)?),
        "behind" => {
            // Pairs of an entry id and rows follow the word and the seq.
            let rows = values.iter().skip(3).step_by(2).map(|rows| text_of(Some(rows)));
            Reply::Behind(rows.collect::<Option<_>>()?)
        }
        "lost" => Reply::Lost(at(1)?.parse().ok()?),
        "fresh" => Reply::Fresh,
        "busy" => Reply::Busy(at(2)?),
        "orphan" => Reply::Orphan {
            id: at(2)?,
            from: at(3)?.parse().ok()?,
            rows: at(5)?,
            refused: !at(6)?.is_empty(),
        },
        "newer" => Reply::Newer,
        _ => return None,
    })
}
