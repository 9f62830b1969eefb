//! The load client of `scripts/bench`. It speaks plain HTTP/1.1 over sockets, so that little of its
//! own cost is in what it measures.
//!
//! ```text
//! load ask     --server A --method M --path P [--body B]      one request; prints the raw answer
//! load fill    --server A --room R --count N [--from F] [--tokens FILE --keep K]
//! load streams --server A --room R --tokens FILE --count K --seconds S --pid P
//! ```
//!
//! Requests carry the key in `ADMIN_KEY`, if set. Every visitor has an address of its own in
//! `X-Forwarded-For`; the server trusts it with `TRUST_PROXY=1`.

use std::collections::HashMap;
use std::error::Error;
use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{Semaphore, mpsc};

type Fault = Box<dyn Error + Send + Sync>;

/// Keep-alive connections that fill a room.
const FILLERS: u64 = 64;
/// Streams opened from one address: far below the range of local ports.
const STREAMS_PER_SOURCE: usize = 5_000;
/// Connections being opened at one time: below the usual listen backlog.
const OPENING_MAX: usize = 128;
/// How long a change may take before it counts as lost.
const PATIENCE: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() -> Result<(), Fault> {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_default();
    let options = Options::parse(arguments)?;
    // The soft limit on descriptors is low by default.
    let _ = rlimit::increase_nofile_limit(u64::MAX);
    match command.as_str() {
        "ask" => ask(&options).await,
        "fill" => fill(&options).await,
        "streams" => streams(&options).await,
        _ => Err("usage: load ask|fill|streams --option value ...".into()),
    }
}

struct Options(HashMap<String, String>);

impl Options {
    fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Self, Fault> {
        let mut options = HashMap::new();
        while let Some(name) = arguments.next() {
            let name = name.strip_prefix("--").ok_or("an option begins with --")?.to_owned();
            let value = arguments.next().ok_or_else(|| format!("--{name} wants a value"))?;
            options.insert(name, value);
        }
        Ok(Self(options))
    }

    fn text(&self, name: &str) -> Result<&str, Fault> {
        let value = self.0.get(name).map(String::as_str);
        value.ok_or_else(|| format!("--{name} is missing").into())
    }

    fn number(&self, name: &str) -> Result<u64, Fault> {
        Ok(self.text(name)?.parse()?)
    }

    fn server(&self) -> Result<SocketAddr, Fault> {
        Ok(self.text("server")?.parse()?)
    }
}

// ---- one request -------------------------------------------------------------------------------

async fn ask(options: &Options) -> Result<(), Fault> {
    let mut client = Client::connect(options.server()?).await?;
    let body = options.text("body").unwrap_or_default();
    let raw = client.ask(options.text("method")?, options.text("path")?, "", body).await?;
    std::io::stdout().write_all(raw.as_bytes())?;
    if raw.starts_with("HTTP/1.1 2") { Ok(()) } else { Err("the answer is no success".into()) }
}

/// A keep-alive connection for requests in turn.
struct Client {
    stream: TcpStream,
    admin: String,
    buffer: Vec<u8>,
}

impl Client {
    async fn connect(server: SocketAddr) -> Result<Self, Fault> {
        let stream = TcpStream::connect(server).await?;
        stream.set_nodelay(true)?;
        let admin = std::env::var("ADMIN_KEY")
            .map_or_else(|_| String::new(), |key| format!("Authorization: Bearer {key}\r\n"));
        Ok(Self { stream, admin, buffer: Vec::new() })
    }

    /// Sends a request and reads the answer, which must have a `content-length`.
    async fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> Result<String, Fault> {
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n{}{headers}\r\n{body}",
            body.len(),
            self.admin,
        );
        self.stream.write_all(request.as_bytes()).await?;
        self.buffer.clear();
        loop {
            if self.stream.read_buf(&mut self.buffer).await? == 0 {
                return Err("the server closed the connection".into());
            }
            if let Some(end) = find(&self.buffer, b"\r\n\r\n") {
                let head = std::str::from_utf8(&self.buffer[..end])?;
                let length = head.split_once("content-length: ").map(|(_, rest)| rest);
                let length: usize = length
                    .and_then(|rest| rest.lines().next())
                    .ok_or("no content-length")?
                    .parse()?;
                if self.buffer.len() >= end + 4 + length {
                    return Ok(String::from_utf8(self.buffer[..end + 4 + length].to_vec())?);
                }
            }
        }
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

/// The `number`-th visitor's address, in 10.0.0.0/8.
fn visitor_address(number: u64) -> String {
    let [_, a, b, c] = u32::try_from(number % (1 << 24)).unwrap_or(0).to_be_bytes();
    format!("10.{a}.{b}.{c}")
}

// ---- filling a room ----------------------------------------------------------------------------

async fn fill(options: &Options) -> Result<(), Fault> {
    let (server, count) = (options.server()?, options.number("count")?);
    let body: Arc<str> = format!(r#"{{"roomId":"{}"}}"#, options.text("room")?).into();
    let from = options.number("from").unwrap_or(0);
    let keep = options.number("keep").unwrap_or(0);
    let taken = Arc::new(AtomicU64::new(0));
    let began = Instant::now();
    let fillers: Vec<_> = (0..FILLERS)
        .map(|_| {
            let (taken, body) = (Arc::clone(&taken), Arc::clone(&body));
            tokio::spawn(async move {
                let (mut client, mut tokens) = (Client::connect(server).await?, Vec::new());
                loop {
                    let number = taken.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return Ok::<_, Fault>(tokens);
                    }
                    let address = visitor_address(from + number);
                    let header = format!("X-Forwarded-For: {address}\r\nUser-Agent: bench\r\n");
                    let raw = client.ask("POST", "/api/v1/join", &header, &body).await?;
                    if !raw.starts_with("HTTP/1.1 200") {
                        return Err(format!("a join was refused: {raw}").into());
                    }
                    // The last ones: they wait longest.
                    if number + keep >= count {
                        tokens.push(token_in(&raw).ok_or("a join without a token")?.to_owned());
                    }
                }
            })
        })
        .collect();
    let mut tokens = Vec::new();
    for filler in fillers {
        tokens.extend(filler.await??);
    }
    let seconds = began.elapsed().as_secs_f64();
    if keep > 0 {
        std::fs::write(options.text("tokens")?, tokens.join("\n"))?;
    }
    #[expect(clippy::cast_precision_loss, reason = "a count of requests")]
    let rate = count as f64 / seconds;
    writeln!(
        std::io::stdout(),
        "fill_count={count} fill_seconds={seconds:.1} fill_rate={rate:.0}"
    )?;
    Ok(())
}

fn token_in(raw: &str) -> Option<&str> {
    raw.split_once(r#""token":""#)?.1.split('"').next()
}

// ---- streams -----------------------------------------------------------------------------------

/// Told by the streams to the one that counts.
enum Told {
    Opened,
    /// A change arrived after so many microseconds.
    Change(u64),
    Broken(String),
}

/// What all streams share.
struct Watch {
    began: Instant,
    /// When the latest change was asked for, in microseconds since `began`.
    asked_at: Vec<AtomicU64>,
}

async fn streams(options: &Options) -> Result<(), Fault> {
    let (server, count) = (options.server()?, usize::try_from(options.number("count")?)?);
    let (seconds, pid) = (options.number("seconds")?, options.number("pid")?);
    let tokens = std::fs::read_to_string(options.text("tokens")?)?;
    let tokens: Vec<String> = tokens.lines().take(count).map(str::to_owned).collect();
    if tokens.len() < count {
        return Err("fewer tokens than streams".into());
    }
    let asked_at = (0..seconds).map(|_| AtomicU64::new(0)).collect();
    let watch = Arc::new(Watch { began: Instant::now(), asked_at });
    let before = resident_kb(pid)?;
    let (tell, mut told) = mpsc::unbounded_channel();
    let opening = Arc::new(Semaphore::new(OPENING_MAX));
    for (number, token) in tokens.into_iter().enumerate() {
        let (watch, tell) = (Arc::clone(&watch), tell.clone());
        let permit = Arc::clone(&opening).acquire_owned().await?;
        tokio::spawn(async move {
            let opened = open(server, number, &token).await;
            drop(permit);
            let outcome = match opened {
                Ok(stream) => follow(stream, &watch, &tell).await,
                Err(error) => Err(error),
            };
            if let Err(error) = outcome {
                // Nobody listens any more once everything is counted.
                let _ = tell.send(Told::Broken(error.to_string()));
            }
        });
    }
    let mut opened = 0;
    while opened < count {
        match tokio::time::timeout(PATIENCE, told.recv()).await? {
            Some(Told::Opened) => opened += 1,
            Some(Told::Broken(error)) => return Err(error.into()),
            Some(Told::Change(_)) | None => {}
        }
    }
    let open_seconds = watch.began.elapsed().as_secs_f64();
    let room = options.text("room")?.to_owned();
    let changer = tokio::spawn(make_changes(server, room, Arc::clone(&watch)));
    let latencies = count_changes(&mut told, count, seconds).await?;
    changer.await??;
    let after = resident_kb(pid)?;
    report(count, seconds, open_seconds, &latencies, (before, after))
}

async fn open(server: SocketAddr, number: usize, token: &str) -> Result<TcpStream, Fault> {
    let socket = TcpSocket::new_v4()?;
    let source = u8::try_from(2 + number / STREAMS_PER_SOURCE)?;
    socket.bind(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, source)), 0))?;
    let mut stream = socket.connect(server).await?;
    let request = format!(
        "GET /api/v1/events?token={token} HTTP/1.1\r\nHost: bench\r\nX-Forwarded-For: {}\r\n\
         User-Agent: bench\r\nAccept: text/event-stream\r\n\r\n",
        visitor_address(u64::try_from(number)?),
    );
    stream.write_all(request.as_bytes()).await?;
    Ok(stream)
}

/// Reads a stream until it ends, looking for the changes' messages.
async fn follow(
    mut stream: TcpStream,
    watch: &Watch,
    tell: &mpsc::UnboundedSender<Told>,
) -> Result<(), Fault> {
    let mut buffer = Vec::with_capacity(1024);
    let (mut is_open, mut awaited) = (false, 0);
    loop {
        if stream.read_buf(&mut buffer).await? == 0 {
            return Err("a stream ended".into());
        }
        let now = micros(watch.began.elapsed());
        // A frame ends with an empty line; what comes behind it is the next one's.
        while let Some(end) = find(&buffer, b"\n\n") {
            let frame = String::from_utf8_lossy(&buffer[..end]);
            if !is_open && frame.contains("event: status") {
                is_open = true;
                tell.send(Told::Opened)?;
            }
            // A heartbeat repeats what was said: only the first arrival counts.
            if let Some(change) = change_in(&frame).filter(|change| *change >= awaited)
                && let Some(asked_at) = watch.asked_at.get(usize::try_from(change)?)
            {
                let took = now.saturating_sub(asked_at.load(Ordering::Acquire));
                awaited = change + 1;
                tell.send(Told::Change(took))?;
            }
            buffer.drain(..end + 2);
        }
    }
}

fn change_in(frame: &str) -> Option<u64> {
    let (_, rest) = frame.split_once(r#""message":"change "#)?;
    rest.split('"').next()?.parse().ok()
}

/// Changes the operator's message once a second.
async fn make_changes(server: SocketAddr, room: String, watch: Arc<Watch>) -> Result<(), Fault> {
    let mut client = Client::connect(server).await?;
    let mut second = tokio::time::interval(Duration::from_secs(1));
    for (number, asked_at) in watch.asked_at.iter().enumerate() {
        second.tick().await;
        let body = format!(r#"{{"id":"{room}","branding":{{"message":"change {number}"}}}}"#);
        asked_at.store(micros(watch.began.elapsed()), Ordering::Release);
        let raw = client.ask("POST", "/api/v1/admin/rooms", "", &body).await?;
        if !raw.starts_with("HTTP/1.1 200") {
            return Err(format!("a change was refused: {raw}").into());
        }
    }
    Ok(())
}

/// Collects the latencies of the changes until all arrived, or nothing does any more.
async fn count_changes(
    told: &mut mpsc::UnboundedReceiver<Told>,
    count: usize,
    seconds: u64,
) -> Result<Vec<u64>, Fault> {
    let wanted = count * usize::try_from(seconds)?;
    let mut latencies = Vec::with_capacity(wanted);
    let give_up = tokio::time::Instant::now() + Duration::from_secs(seconds) + PATIENCE;
    while latencies.len() < wanted {
        match tokio::time::timeout_at(give_up, told.recv()).await {
            Ok(Some(Told::Change(took))) => latencies.push(took),
            Ok(Some(Told::Broken(error))) => return Err(error.into()),
            Ok(Some(Told::Opened)) => {}
            Ok(None) | Err(_) => break,
        }
    }
    latencies.sort_unstable();
    Ok(latencies)
}

fn report(
    count: usize,
    seconds: u64,
    open_seconds: f64,
    latencies: &[u64],
    (before, after): (u64, u64),
) -> Result<(), Fault> {
    let at =
        |percent: usize| latencies.get((latencies.len() * percent / 100).min(latencies.len() - 1));
    let ms = |percent| at(percent).map_or(0, |micros| micros / 1000);
    let lost = (count * usize::try_from(seconds)?).saturating_sub(latencies.len());
    let per_stream = after.saturating_sub(before) * 1024 / u64::try_from(count.max(1))?;
    writeln!(
        std::io::stdout(),
        "streams={count} open_seconds={open_seconds:.1} p50_ms={} p99_ms={} max_ms={} lost={lost} \
         stream_octets={per_stream} rss_before_kb={before} rss_after_kb={after}",
        ms(50),
        ms(99),
        ms(100),
    )?;
    Ok(())
}

/// The resident memory of a process.
fn resident_kb(pid: u64) -> Result<u64, Fault> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
