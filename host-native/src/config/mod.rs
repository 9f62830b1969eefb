//! The settings of a server, read once at the start. `main` hands the result to whoever needs a
//! part of it; nothing else looks at the process environment.

mod read;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use tracing_subscriber::EnvFilter;
use url::Url;

use crate::guard::address::TrustProxy;
pub use read::{ConfigError, ConfigErrors, ProcessEnv, Secret, Strings};
use read::{Reader, clean_secret, whole_within};

/// A limit that can be switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// No limit.
    Off,
    /// At most this many; what is counted (a minute's calls, open streams, …) the setting says.
    At(u32),
}

impl Limit {
    /// The number, unless switched off.
    #[must_use]
    pub const fn number(self) -> Option<u32> {
        match self {
            Self::Off => None,
            Self::At(number) => Some(number),
        }
    }
}

/// Where the live queue is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// In this process; gone when it ends.
    Memory,
    /// In Valkey.
    Valkey,
}

impl Store {
    /// The word of `STORE`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Valkey => "valkey",
        }
    }
}

/// Where everything that is not the live queue is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SideStore {
    /// In this process; gone when it ends.
    Memory,
    /// In Postgres.
    Postgres,
}

impl SideStore {
    /// The word of `SIDESTORE`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Postgres => "pg",
        }
    }
}

/// The form of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Keys and what is derived from `SECRET`.
#[derive(Clone, Debug)]
pub struct Keys {
    /// `ADMIN_KEY`.
    pub admin: Secret,
    /// Whether the admin key is the well-known default.
    pub admin_is_default: bool,
    /// `SECRET`, as octets: the operator's text, or random ones made at this start.
    pub signing: Vec<u8>,
    /// Whether the signing secret was made at this start, so that tokens die with the process.
    pub signing_is_random: bool,
    /// `SECRET_PREVIOUS`.
    pub signing_previous: Option<Secret>,
    /// `PUBLIC_API_KEY`, a comma list.
    pub public_api: Vec<Secret>,
    /// `EDGE_SECRET`.
    pub edge: Option<Secret>,
}

/// Lifetimes and form of tokens and cookies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenSettings {
    /// `TOKEN_SIGN_V2`.
    pub sign_v2: bool,
    /// `TOKEN_MAX_AGE_SEC`.
    pub max_age_seconds: u32,
    /// `QUEUE_COOKIE_MAX_AGE_SEC`.
    pub cookie_max_age_seconds: u32,
    /// `ROOM_COOKIE_CAP`.
    pub room_cookie_cap: u32,
}

/// Quotas and caps of this instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// `JOIN_LIMIT_PER_MIN`.
    pub join_per_minute: Limit,
    /// `CHECK_LIMIT_PER_MIN`.
    pub check_per_minute: Limit,
    /// `NOTIFY_LIMIT_PER_MIN`.
    pub notify_per_minute: Limit,
    /// `ADMIN_AUTH_FAIL_PER_MIN`.
    pub admin_auth_failures_per_minute: Limit,
    /// `SSE_MAX_TOTAL`.
    pub streams_total: Limit,
    /// `SSE_PER_IP`.
    pub streams_per_address: Limit,
    /// `MAX_CONNECTIONS`.
    pub connections: Limit,
    /// `PREQUEUE_MAX`, for each room.
    pub prequeue_per_room: Limit,
}

/// `SMTP_URL` and `SMTP_FROM`, given when `EMAIL_NOTIFY=1`.
#[derive(Clone, Debug)]
pub struct MailSettings {
    /// `SMTP_URL`; it may hold a password.
    pub smtp_url: Secret,
    /// `SMTP_FROM`.
    pub from: String,
}

/// `VALKEY_URL` and `DATABASE_URL`; both may hold a password.
#[derive(Clone, Debug)]
pub struct StoreSettings {
    /// `STORE`.
    pub store: Store,
    /// `SIDESTORE`.
    pub side_store: SideStore,
    /// `VALKEY_URL`.
    pub valkey_url: Option<Secret>,
    /// `DATABASE_URL`.
    pub database_url: Option<Secret>,
}

/// All settings of a server.
#[derive(Clone, Debug)]
pub struct Config {
    /// `HOST` and `PORT`.
    pub bind: SocketAddr,
    /// `NODE_ENV=production` or `QM_ENV=production`.
    pub production: bool,
    /// Where data is kept.
    pub stores: StoreSettings,
    /// Keys.
    pub keys: Keys,
    /// Tokens and cookies.
    pub tokens: TokenSettings,
    /// Quotas and caps.
    pub limits: Limits,
    /// `TRUST_PROXY`.
    pub trust_proxy: TrustProxy,
    /// `PUBLIC_ORIGIN`, as `scheme://host[:port]`.
    pub public_origin: Option<String>,
    /// Mail, when `EMAIL_NOTIFY=1`.
    pub mail: Option<MailSettings>,
    /// `ALERT_WEBHOOK_URL`; such addresses often carry a credential.
    pub alert_webhook: Option<Secret>,
    /// `HISTORY_RETAIN_DAYS`.
    pub history_retain_days: u32,
    /// `LOG_FORMAT`.
    pub log_format: LogFormat,
    /// `RUST_LOG`.
    pub log_filter: String,
}

impl Config {
    /// Reads all settings. `random` signs when `SECRET` is unset; a fresh one for every start.
    ///
    /// # Errors
    /// [`ConfigErrors`] with one line for everything that is wrong.
    pub fn parse(strings: &dyn Strings, random: [u8; 32]) -> Result<Self, ConfigErrors> {
        let r = &mut Reader::new(strings);
        r.refuse_unknown("QM_", &["QM_ENV"]);
        let production = production(r);
        let stores = stores(r, production);
        let keys = keys(r, random, stores.side_store);
        let config = Self {
            bind: bind(r, keys.admin_is_default),
            production,
            stores,
            keys,
            tokens: tokens(r),
            limits: limits(r),
            trust_proxy: r.parsed(
                "TRUST_PROXY",
                TrustProxy::None,
                "must be cf, or the number of trusted proxies from 0 to 32",
                TrustProxy::parse,
            ),
            public_origin: r.parsed(
                "PUBLIC_ORIGIN",
                None,
                "must be an http or https origin without a path",
                |text| parse_origin(text).map(Some),
            ),
            mail: mail(r),
            alert_webhook: r.secret("ALERT_WEBHOOK_URL", "must be an http or https URL", |text| {
                url_with_scheme(text, &["http", "https"])
            }),
            history_retain_days: r.whole_u32("HISTORY_RETAIN_DAYS", 90, 1, 3650),
            log_format: r.parsed("LOG_FORMAT", LogFormat::Text, "must be text or json", |text| {
                match text {
                    "text" => Some(LogFormat::Text),
                    "json" => Some(LogFormat::Json),
                    _ => None,
                }
            }),
            log_filter: r.parsed(
                "RUST_LOG",
                "info".to_owned(),
                "must be a list of log directives such as info or warn,queue=debug",
                |text| EnvFilter::try_new(text).is_ok().then(|| text.to_owned()),
            ),
        };
        if r.errors.is_empty() {
            Ok(config)
        } else {
            Err(ConfigErrors(std::mem::take(&mut r.errors)))
        }
    }
}

fn production(r: &mut Reader<'_>) -> bool {
    // NODE_ENV belongs to everybody, so any word is fine there; a misspelled QM_ENV would silently
    // run a production server as a development one.
    let ours =
        r.parsed("QM_ENV", false, "must be production, development or test", |text| match text {
            "production" => Some(true),
            "development" | "test" => Some(false),
            _ => None,
        });
    ours || r.text("NODE_ENV").as_deref() == Some("production")
}

fn stores(r: &mut Reader<'_>, production: bool) -> StoreSettings {
    let store = r.parsed("STORE", Store::Memory, "must be memory or valkey", |text| match text {
        "memory" => Some(Store::Memory),
        "valkey" => Some(Store::Valkey),
        _ => None,
    });
    let side_store =
        r.parsed("SIDESTORE", SideStore::Memory, "must be memory or pg", |text| match text {
            "memory" => Some(SideStore::Memory),
            "pg" => Some(SideStore::Postgres),
            _ => None,
        });
    let valkey_url = r.secret(
        "VALKEY_URL",
        "must be redis:// or rediss:// URLs in a comma list, or one valkey-cluster:// URL",
        |text| {
            let schemes = ["redis", "rediss", "valkey-cluster"];
            let fits = text.split(',').all(|url| url_with_scheme(url.trim(), &schemes).is_some());
            fits.then(|| Secret::new(text))
        },
    );
    let database_url = r.secret("DATABASE_URL", "must be a postgres:// URL", |text| {
        url_with_scheme(text, &["postgres", "postgresql"])
    });
    if production && store != Store::Valkey {
        r.refuse_value("STORE", "memory", "must be valkey in production");
    }
    if production && side_store != SideStore::Postgres {
        r.refuse_value("SIDESTORE", "memory", "must be pg in production");
    }
    if store == Store::Valkey && side_store != SideStore::Postgres && !production {
        r.refuse_value("SIDESTORE", "memory", "must be pg when STORE=valkey");
    }
    if store == Store::Valkey && r.text("VALKEY_URL").is_none() {
        r.refuse("VALKEY_URL", "is required when STORE=valkey");
    }
    if side_store == SideStore::Postgres && r.text("DATABASE_URL").is_none() {
        r.refuse("DATABASE_URL", "is required when SIDESTORE=pg");
    }
    StoreSettings { store, side_store, valkey_url, database_url }
}

fn keys(r: &mut Reader<'_>, random: [u8; 32], side_store: SideStore) -> Keys {
    const ADMIN_KEY_DEFAULT: &str = "admin-dev";
    let admin = r.key("ADMIN_KEY").unwrap_or_else(|| Secret::new(ADMIN_KEY_DEFAULT));
    let signing = r.key("SECRET");
    if side_store == SideStore::Postgres && r.text("SECRET").is_none() {
        r.refuse("SECRET", "is required when SIDESTORE=pg");
    }
    let signing_previous = r.key("SECRET_PREVIOUS");
    let public_api = r.secret(
        "PUBLIC_API_KEY",
        "must be a comma list of keys without control characters",
        |text| text.split(',').map(|key| clean_secret(key.trim())).collect(),
    );
    Keys {
        admin_is_default: admin.reveal() == ADMIN_KEY_DEFAULT,
        admin,
        signing_is_random: signing.is_none(),
        signing: signing.map_or_else(|| random.to_vec(), |s| s.reveal().as_bytes().to_vec()),
        signing_previous,
        public_api: public_api.unwrap_or_default(),
        edge: r.key("EDGE_SECRET"),
    }
}

fn bind(r: &mut Reader<'_>, admin_is_default: bool) -> SocketAddr {
    let host = r.parsed("HOST", None, "must be an IP address or localhost", |text| {
        let text = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
        match text {
            "localhost" => Some(Some(IpAddr::V4(Ipv4Addr::LOCALHOST))),
            _ => text.parse().ok().map(Some),
        }
    });
    let loopback = host.is_some_and(|host: IpAddr| host.to_canonical().is_loopback());
    if admin_is_default && host.is_some() && !loopback {
        let text = r.text("HOST").unwrap_or_default();
        r.refuse_value("HOST", &text, "must be a loopback address while ADMIN_KEY is the default");
    }
    let host = host.unwrap_or(IpAddr::V4(if admin_is_default {
        Ipv4Addr::LOCALHOST
    } else {
        Ipv4Addr::UNSPECIFIED
    }));
    // 0 lets the system choose a free port, which tests want.
    let port = u16::try_from(r.whole("PORT", 8080, 0, 65535)).unwrap_or_default();
    SocketAddr::new(host, port)
}

fn tokens(r: &mut Reader<'_>) -> TokenSettings {
    const YEAR: u32 = 31_536_000;
    TokenSettings {
        sign_v2: r.switch("TOKEN_SIGN_V2"),
        max_age_seconds: r.whole_u32("TOKEN_MAX_AGE_SEC", 86_400, 60, YEAR),
        cookie_max_age_seconds: r.whole_u32("QUEUE_COOKIE_MAX_AGE_SEC", 86_400, 60, YEAR),
        room_cookie_cap: r.whole_u32("ROOM_COOKIE_CAP", 8, 1, 50),
    }
}

fn limits(r: &mut Reader<'_>) -> Limits {
    let mut limit = |name, default, max: u32| {
        let bound = format!("must be a whole number from 1 to {max}, or off");
        r.parsed(name, Limit::At(default), &bound, |text| {
            if text.eq_ignore_ascii_case("off") {
                return Some(Limit::Off);
            }
            let number = whole_within(text, 1, max.into())?;
            u32::try_from(number).ok().map(Limit::At)
        })
    };
    Limits {
        join_per_minute: limit("JOIN_LIMIT_PER_MIN", 60, 1_000_000),
        check_per_minute: limit("CHECK_LIMIT_PER_MIN", 600, 1_000_000),
        notify_per_minute: limit("NOTIFY_LIMIT_PER_MIN", 10, 1_000_000),
        admin_auth_failures_per_minute: limit("ADMIN_AUTH_FAIL_PER_MIN", 10, 1_000_000),
        streams_total: limit("SSE_MAX_TOTAL", 100_000, 10_000_000),
        streams_per_address: limit("SSE_PER_IP", 64, 1_000_000),
        connections: limit("MAX_CONNECTIONS", 120_000, 10_000_000),
        prequeue_per_room: limit("PREQUEUE_MAX", 2_000_000, 100_000_000),
    }
}

fn mail(r: &mut Reader<'_>) -> Option<MailSettings> {
    let on = r.switch("EMAIL_NOTIFY");
    let smtp_url = r.secret("SMTP_URL", "must be an smtp:// or smtps:// URL", |text| {
        url_with_scheme(text, &["smtp", "smtps"])
    });
    let from = r.parsed("SMTP_FROM", None, "must be a mail address", |text| {
        let fits = text.contains('@') && !text.chars().any(char::is_control);
        fits.then(|| Some(text.to_owned()))
    });
    if !on {
        return None;
    }
    for name in ["SMTP_URL", "SMTP_FROM"] {
        if r.text(name).is_none() {
            r.refuse(name, "is required when EMAIL_NOTIFY=1");
        }
    }
    Some(MailSettings { smtp_url: smtp_url?, from: from? })
}

fn url_with_scheme(text: &str, schemes: &[&str]) -> Option<Secret> {
    let url = Url::parse(text).ok()?;
    (schemes.contains(&url.scheme()) && url.has_host()).then(|| Secret::new(text))
}

fn parse_origin(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    let anonymous = url.username().is_empty() && url.password().is_none();
    let web = matches!(url.scheme(), "http" | "https");
    (web && bare && anonymous).then(|| url.origin().ascii_serialization())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    const RANDOM: [u8; 32] = [7; 32];

    fn parse(settings: &[(&str, &str)]) -> Result<Config, Vec<String>> {
        let map: BTreeMap<String, String> =
            settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Config::parse(&map, RANDOM).map_err(|e| e.0.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn defaults() {
        let config = parse(&[]).unwrap();
        assert_eq!(config.bind.to_string(), "127.0.0.1:8080");
        assert!(config.keys.admin_is_default && config.keys.signing_is_random);
        assert_eq!((config.keys.admin.reveal(), &*config.keys.signing), ("admin-dev", &RANDOM[..]));
        assert_eq!(
            config.limits,
            Limits {
                join_per_minute: Limit::At(60),
                check_per_minute: Limit::At(600),
                notify_per_minute: Limit::At(10),
                admin_auth_failures_per_minute: Limit::At(10),
                streams_total: Limit::At(100_000),
                streams_per_address: Limit::At(64),
                connections: Limit::At(120_000),
                prequeue_per_room: Limit::At(2_000_000),
            }
        );
        assert_eq!(
            config.tokens,
            TokenSettings {
                sign_v2: false,
                max_age_seconds: 86_400,
                cookie_max_age_seconds: 86_400,
                room_cookie_cap: 8
            }
        );
        assert_eq!((config.history_retain_days, &*config.log_filter), (90, "info"));
        assert_eq!(config.trust_proxy, TrustProxy::None);
        assert!(config.mail.is_none() && config.public_origin.is_none() && !config.production);
    }

    #[test]
    fn values() {
        let config = parse(&[
            ("ADMIN_KEY", "  mine "),
            ("SECRET", " s3cret\n"),
            ("SECRET_PREVIOUS", ""),
            ("PUBLIC_API_KEY", "one, two"),
            ("PORT", "0"),
            ("JOIN_LIMIT_PER_MIN", "off"),
            ("SSE_PER_IP", "1"),
            ("TOKEN_SIGN_V2", "1"),
            ("TRUST_PROXY", "cf"),
            ("PUBLIC_ORIGIN", "https://Queue.Example:443/"),
            ("EMAIL_NOTIFY", "1"),
            ("SMTP_URL", "smtp://127.0.0.1:25"),
            ("SMTP_FROM", "Queue <queue@example.test>"),
            ("LOG_FORMAT", "json"),
            ("QM_ENV", "test"),
        ])
        .unwrap();
        assert_eq!(config.bind.to_string(), "0.0.0.0:0");
        assert_eq!((config.keys.admin.reveal(), &*config.keys.signing), ("mine", &b"s3cret"[..]));
        assert!(!config.keys.admin_is_default && !config.keys.signing_is_random);
        assert!(config.keys.signing_previous.is_none());
        let public: Vec<_> = config.keys.public_api.iter().map(Secret::reveal).collect();
        assert_eq!(public, ["one", "two"]);
        assert_eq!(config.limits.join_per_minute, Limit::Off);
        assert_eq!(config.limits.streams_per_address, Limit::At(1));
        assert_eq!(config.trust_proxy, TrustProxy::Cloudflare);
        assert_eq!(config.public_origin.as_deref(), Some("https://queue.example"));
        assert!(config.tokens.sign_v2 && config.mail.is_some());
        assert_eq!(config.log_format, LogFormat::Json);
    }

    #[test]
    fn wrong_values_are_named_with_their_bound() {
        for (name, value, bound) in [
            ("PORT", "http", "65535"),
            ("PORT", "65536", "65535"),
            ("HOST", "example.com", "IP address"),
            ("HOST", "0.0.0.0", "loopback"),
            ("HOST", "::", "loopback"),
            ("JOIN_LIMIT_PER_MIN", "0", "from 1 to 1000000, or off"),
            ("JOIN_LIMIT_PER_MIN", "1000001", "1000000"),
            ("JOIN_LIMIT_PER_MIN", "1.5", "whole number"),
            ("CHECK_LIMIT_PER_MIN", "-1", "1"),
            ("CHECK_LIMIT_PER_MIN", "+1", "1"),
            ("CHECK_LIMIT_PER_MIN", "many", "off"),
            ("TOKEN_MAX_AGE_SEC", "59", "60"),
            ("TOKEN_MAX_AGE_SEC", "1h", "60"),
            ("QUEUE_COOKIE_MAX_AGE_SEC", "31536001", "31536000"),
            ("ROOM_COOKIE_CAP", "0", "1"),
            ("ROOM_COOKIE_CAP", "51", "50"),
            ("MAX_CONNECTIONS", "0", "1"),
            ("PREQUEUE_MAX", "x", "1"),
            ("HISTORY_RETAIN_DAYS", "-3", "1"),
            ("TRUST_PROXY", "yes", "cf"),
            ("TRUST_PROXY", "-1", "32"),
            ("STORE", "redis", "valkey"),
            ("SIDESTORE", "sqlite", "pg"),
            ("LOG_FORMAT", "xml", "json"),
            ("TOKEN_SIGN_V2", "yes", "0 or 1"),
            ("EMAIL_NOTIFY", "true", "0 or 1"),
            ("SMTP_FROM", "nobody", "mail address"),
            ("PUBLIC_ORIGIN", "https://x.example/path", "origin"),
            ("PUBLIC_ORIGIN", "ftp://x.example", "origin"),
            ("RUST_LOG", "a=b=c", "directives"),
            ("QM_ENV", "prod", "production"),
        ] {
            let lines = parse(&[(name, value)]).unwrap_err();
            assert_eq!(lines.len(), 1, "{lines:?}");
            let line = &lines[0];
            assert!(
                line.starts_with(&format!("{name}={value}: ")) && line.contains(bound),
                "{line}"
            );
        }
    }

    #[test]
    fn secrets_are_refused_without_being_shown() {
        for (name, value) in [
            ("ADMIN_KEY", "hush\u{1}hush"),
            ("SECRET", "hush\nhush"),
            ("SECRET_PREVIOUS", "hush\thush"),
            ("PUBLIC_API_KEY", "hush,,hush"),
            ("EDGE_SECRET", "hush\u{fffd}"),
            ("SMTP_URL", "hush@mail"),
            ("DATABASE_URL", "mysql://u:hush@db/x"),
            ("VALKEY_URL", "redis://a,http://u:hush@b"),
            ("ALERT_WEBHOOK_URL", "hush"),
        ] {
            let lines = parse(&[(name, value)]).unwrap_err();
            assert_eq!(lines.len(), 1, "{lines:?}");
            assert!(lines[0].starts_with(name) && !lines[0].contains("hush"), "{lines:?}");
        }
        let config = parse(&[("ADMIN_KEY", "hush"), ("EDGE_SECRET", "hush")]).unwrap();
        assert!(!format!("{config:?}").contains("hush"));
    }

    #[test]
    fn settings_that_need_each_other() {
        let mail = [("EMAIL_NOTIFY", "1")];
        let valkey = [("STORE", "valkey")];
        let pg = [("STORE", "valkey"), ("SIDESTORE", "pg")];
        let production = [("NODE_ENV", "production")];
        let ours = [("QM_ENV", "production"), ("SIDESTORE", "pg")];
        let unknown = [("QM_JOIN_LIMIT", "5"), ("QUEUE", "x")];
        for (settings, names) in [
            (&mail[..], &["SMTP_URL", "SMTP_FROM"][..]),
            (&valkey, &["SIDESTORE", "VALKEY_URL"]),
            (&pg, &["VALKEY_URL", "DATABASE_URL", "SECRET"]),
            (&production, &["STORE", "SIDESTORE"]),
            (&ours, &["STORE", "DATABASE_URL", "SECRET"]),
            (&unknown, &["QM_JOIN_LIMIT"]),
        ] {
            let lines = parse(settings).unwrap_err();
            let seen: Vec<_> = lines.iter().map(|l| l.split(['=', ':']).next().unwrap()).collect();
            assert_eq!(seen, names, "{lines:?}");
        }
    }

    #[test]
    fn the_default_key_stays_on_loopback() {
        for (host, admin, bound) in [
            ("", "", Some("127.0.0.1:8080")),
            ("localhost", "", Some("127.0.0.1:8080")),
            ("127.0.0.2", "admin-dev", Some("127.0.0.2:8080")),
            ("::1", "", Some("[::1]:8080")),
            ("[::1]", "", Some("[::1]:8080")),
            ("192.0.2.1", "", None),
            ("0.0.0.0", "admin-dev", None),
            ("0.0.0.0", "mine", Some("0.0.0.0:8080")),
            ("", "mine", Some("0.0.0.0:8080")),
        ] {
            let config = parse(&[("HOST", host), ("ADMIN_KEY", admin)]);
            assert_eq!(config.ok().map(|c| c.bind.to_string()).as_deref(), bound, "{host} {admin}");
        }
    }

    #[test]
    fn one_line_whatever_the_value() {
        let lines = parse(&[("PORT", "1\n2\u{1b}[31m")]).unwrap_err();
        assert_eq!(lines.len(), 1);
        assert!(lines[0].starts_with(r"PORT=1\n2\u{1b}[31m: "), "{lines:?}");
    }
}
